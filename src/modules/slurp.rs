//! `slurp`: the content of a host's file, base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{Controller, Error, Inspect, Outcome};
use crate::remote::{FileKind, Links, Probe};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slurp {
    src: String,
}

impl Inspect for Slurp {
    const DOC: Doc = Doc {
        name: "slurp",
        collection: "ansible.builtin",
        summary: "Read a file of the host",
        arguments: &[Argument::new("src", ArgumentKind::Path, "The file on the host").required().alias(&["path"])],
        free_form: None,
        example: r#"
- name: Read the mount table
  slurp:
    src: /proc/mounts
  register: mounts

- name: Show the mount table
  debug:
    msg: "{{ mounts.content | b64decode }}"
"#,
        returns: &[
            Return::new("content", "The content of the file, base64"),
            Return::new("encoding", "Base64"),
            Return::new("source", "The file"),
            Return::new("exists", "If the task failed: false if the host has no such file"),
        ],
    };
    async fn inspect(&self, probe: &Probe, _: &Controller<'_>) -> Result<Outcome, Error> {
        let path = probe.expand_on_host(&self.src).await?;
        // Files of /proc have no size, so reading is the only way to know; what reading refuses is looked at after.
        let content = match probe.read_file(&path).await {
            Ok(Some(content)) => content,
            Ok(None) => return Err(Error::absent(format!("there is no file {path} on the host"))),
            Err(error) => match probe.stat(&path, Links::Follow).await? {
                Some(stat) if stat.kind == FileKind::Directory => {
                    return Err(Error::failed(format!("{path} is a directory, not a file")));
                }
                _ => return Err(error.into()),
            },
        };
        let outcome = Outcome::default().with("content", STANDARD.encode(content));
        Ok(outcome.with("encoding", "base64").with("source", path))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use super::Error;
    use crate::value::Value;

    #[tokio::test]
    async fn any_bytes_come_back_as_base64() {
        let bench = Bench::new().await;
        bench.on_host("a\nb", [0, 255, 10]);
        let done = bench.check(r#"slurp: {src: "HOST/a\nb"}"#).await.unwrap();
        assert!(!done.changed);
        assert_eq!(
            (value(&done.outcome, "content"), value(&done.outcome, "encoding")),
            ("AP8K".into(), "base64".into())
        );
        let done = bench.run("slurp: {src: /proc/self/mounts}").await.unwrap();
        assert!(value(&done.outcome, "content").len() > 10);
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_named() {
        let bench = Bench::new().await;
        let Err(Error::Answered { message, values, .. }) = bench.run("slurp: {src: HOST/none}").await else { panic!() };
        assert!(message.starts_with("there is no file ") && message.ends_with("/none on the host"), "{message}");
        assert_eq!(values["exists"], Value::from(false));
        let message = bench.failure("slurp: {src: /dev/zero}").await;
        assert_eq!(message, "cannot read /dev/zero: Is a device");
        assert_eq!(value(&bench.run("slurp: {src: /dev/null}").await.unwrap().outcome, "content"), "");
        let message = bench.failure("slurp: {src: HOST}").await;
        assert!(message.ends_with("is a directory, not a file"), "{message}");
    }
}
