//! `/usr/sbin/policy-rc.d`, which decides whether packages may start services.

use crate::modules::Error;
use crate::remote::{Attributes, Remote};

/// The answer to packages that start services, while it replaces the host's own policy.
pub(super) struct Policy {
    is_set: bool,
    own: Option<Vec<u8>>,
}

impl Policy {
    const PATH: &str = "/usr/sbin/policy-rc.d";

    pub(super) async fn set_policy(remote: &Remote, code: Option<i64>) -> Result<Policy, Error> {
        let Some(code) = code else { return Ok(Policy { is_set: false, own: None }) };
        let own = remote.read_file(Policy::PATH).await?;
        let text = format!("#!/bin/sh\nexit {code}\n");
        let attributes = Attributes { mode: Some(0o755), ..Attributes::default() };
        remote.write(Policy::PATH, text.as_bytes(), &attributes).await?;
        Ok(Policy { is_set: true, own })
    }

    pub(super) async fn put_back(self, remote: &Remote) -> Result<(), Error> {
        match self.own {
            _ if !self.is_set => {}
            Some(own) => remote.write(Policy::PATH, &own, &Attributes::default()).await?,
            None => remote.remove(Policy::PATH).await?,
        }
        Ok(())
    }
}
