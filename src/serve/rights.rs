//! What a login may do, and with which deployments.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name for all deployments.
pub const ALL: &str = "*";

/// What may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// See deployments, plans, runs and their logs.
    See,
    /// Look at the hosts, check etcd, and make plans.
    Plan,
    /// Write the document of the deployment and its credentials, and delete them.
    Edit,
    /// Approve a plan, which carries it out; and take backups of etcd.
    Approve,
    /// Stop a run.
    Stop,
    /// Destroy the deployment, with its etcd and all data in it.
    Destroy,
    /// Create and revoke tokens, and read the audit log. Only for all deployments.
    Admin,
}

impl Right {
    pub const EVERY: [Right; 7] =
        [Right::See, Right::Plan, Right::Edit, Right::Approve, Right::Stop, Right::Destroy, Right::Admin];

    /// As in JSON and on the command line.
    pub fn right_name(self) -> &'static str {
        match self {
            Right::See => "see",
            Right::Plan => "plan",
            Right::Edit => "edit",
            Right::Approve => "approve",
            Right::Stop => "stop",
            Right::Destroy => "destroy",
            Right::Admin => "admin",
        }
    }

    pub fn right_named(name: &str) -> Option<Right> {
        Right::EVERY.into_iter().find(|right| right.right_name() == name)
    }
}

/// The rights of a login, by the name of a deployment or `*` for all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Rights(pub BTreeMap<String, BTreeSet<Right>>);

impl Rights {
    /// All rights on all deployments.
    pub fn all() -> Rights {
        Rights::on(ALL, Right::EVERY)
    }

    /// These rights on a deployment, or on `*`.
    pub fn on(deployment: &str, rights: impl IntoIterator<Item = Right>) -> Rights {
        Rights(BTreeMap::from([(deployment.to_owned(), rights.into_iter().collect())]))
    }

    /// Whether they include a right on a deployment. None: on what belongs to no deployment, or to all.
    pub fn include(&self, right: Right, deployment: Option<&str>) -> bool {
        let named = deployment.filter(|_| right != Right::Admin);
        [Some(ALL), named].into_iter().flatten().any(|name| self.0.get(name).is_some_and(|has| has.contains(&right)))
    }

    /// Whether they include a right on any deployment.
    pub fn include_somewhere(&self, right: Right) -> bool {
        self.0.values().any(|has| has.contains(&right))
    }

    /// `see=prod plan=prod`
    pub fn rights_text(&self) -> String {
        let words = self.0.iter().flat_map(|(deployment, rights)| {
            rights.iter().map(move |right| format!("{}={deployment}", right.right_name()))
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// What is wrong with them as the rights of a token or an account.
    pub fn fault(&self) -> Option<String> {
        if self.0.values().all(BTreeSet::is_empty) {
            return Some("at least one right is needed".to_owned());
        }
        let admin = self.0.iter().find(|(name, has)| *name != ALL && has.contains(&Right::Admin));
        admin.map(|(name, _)| format!("the right admin is for all deployments (*), not for {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_on_one_deployment_are_none_on_another() {
        let rights = Rights::on("prod", [Right::See, Right::Plan]);
        assert!(rights.include(Right::See, Some("prod")) && rights.include_somewhere(Right::Plan));
        assert!(!rights.include(Right::See, Some("test")) && !rights.include(Right::See, None));
        assert!(!rights.include(Right::Approve, Some("prod")) && !rights.include_somewhere(Right::Admin));
        assert!(Rights::all().include(Right::Stop, Some("prod")) && Rights::all().include(Right::See, None));
    }

    #[test]
    fn admin_counts_for_all_deployments_only() {
        let rights = Rights::on("prod", [Right::Admin]);
        assert!(!rights.include(Right::Admin, Some("prod")));
        assert_eq!(rights.fault().unwrap(), "the right admin is for all deployments (*), not for prod");
        assert_eq!(Rights::default().fault().unwrap(), "at least one right is needed");
        assert_eq!(Rights::all().fault(), None);
    }

    #[test]
    fn every_right_has_one_name() {
        for right in Right::EVERY {
            assert_eq!(serde_json::json!(right), right.right_name());
            assert_eq!(Right::right_named(right.right_name()), Some(right));
        }
    }
}
