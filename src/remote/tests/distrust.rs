//! A host that is accepted without being trusted gets no password for sudo.

use super::*;

/// This computer, as one whose key has changed.
#[derive(Debug)]
struct Changed(Local);

#[async_trait]
impl Connection for Changed {
    async fn start(&self, line: &str) -> Result<Process, connection::Error> {
        self.0.start(line).await
    }
    async fn tunnel(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, connection::Error> {
        self.0.tunnel(host, port).await
    }
    fn distrust(&self) -> Option<&str> {
        Some("its host key differs from the one at known_hosts:1")
    }
    fn capacity(&self) -> usize {
        self.0.capacity()
    }
    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
    fn description(&self) -> String {
        "changed".to_owned()
    }
    async fn close(&self) {
        self.0.close().await;
    }
}

#[tokio::test]
async fn a_host_whose_key_changed_does_not_get_the_password_for_sudo() {
    let place = Place::new();
    let sudo = place.at("sudo");
    // An attacker in the middle would ask in any case, and store the answer.
    let script = r#"#!/bin/sh
while [ $# -gt 0 ] && [ "$1" != -p ]; do shift; done
[ $# -gt 0 ] || { echo 'sudo: a password is required' >&2; exit 1; }
printf %s "$2" >&2
read -r word && printf %s "$word" >"$0.heard"
exit 1
"#;
    crate::value::testing::write_program(&sudo, script);
    let user = Become {
        method: Method::Sudo,
        user: "root".into(),
        password: Some(crate::value::Secret::new("hunter2")),
        executable: Some(sudo.clone()),
        flags: None,
    };
    let open = |connection: Arc<dyn Connection>| {
        let user = user.clone();
        async move { Remote::open(&Sessions::new(connection), Some(&user), &IndexMap::new()).await.err().unwrap() }
    };
    let error = open(Arc::new(Changed(Local::new("here", Arc::new(ProcessEnvironment::of_process()))))).await;
    let why = "windlass sends no password to this host, because its host key differs from the one at known_hosts:1";
    assert_eq!(error.hint().as_deref(), Some(why));
    assert!(!Path::new(&place.at("sudo.heard")).exists());

    open(Arc::new(Local::new("here", Arc::new(ProcessEnvironment::of_process())))).await;
    assert_eq!(std::fs::read_to_string(place.at("sudo.heard")).unwrap(), "hunter2");
}
