//! Work that blocks its thread.

/// Runs blocking work. Other threads of the runtime take over this thread's tasks meanwhile, such as keeping
/// connections alive.
pub(super) fn waiting<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// The result of a future, in the caller's runtime.
///
/// # Errors
/// The caller has no runtime.
pub fn wait_for<F: Future>(work: F) -> Result<F::Output, String> {
    let runtime =
        tokio::runtime::Handle::try_current().map_err(|_| "internal error: there is no runtime to wait in")?;
    Ok(waiting(|| runtime.block_on(work)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::template::own::ProgramKind;
    use crate::template::{Scope, Templar};
    use crate::value::{SecretTexts, Template};

    /// With one thread: the file that the program waits for comes from another task.
    #[test]
    fn other_tasks_go_on_while_a_program_runs() {
        let scratch = tempfile::tempdir().unwrap();
        let (go, program) = (scratch.path().join("go"), scratch.path().join("own_wait"));
        let waits =
            format!("n=0; until [ -e {} ]; do n=$((n+1)); [ $n -lt 1000 ] || exit 1; sleep 0.1; done", go.display());
        crate::value::testing::write_program(&program, format!("#!/bin/sh\n{waits}; echo 1\n"));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        for text in [
            "{{ 1 | own_wait }}".to_owned(),
            "{{ lookup('own_wait') }}".to_owned(),
            format!("{{{{ lookup('pipe', '{waits}; echo 1') }}}}"),
        ] {
            let templar = Templar::new();
            templar.add_own(ProgramKind::Filter, scratch.path());
            templar.add_own(ProgramKind::Lookup, scratch.path());
            let go = go.clone();
            let said = runtime.block_on(async {
                let value = Template::template_value(&text, None);
                let rendering = tokio::spawn(async move {
                    templar.check_template(&value)?;
                    templar.render_string(&value, &Scope::default())
                });
                let made = tokio::spawn(async move {
                    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
                    std::fs::write(&go, "").unwrap();
                    go
                });
                let said = rendering.await.unwrap();
                std::fs::remove_file(made.await.unwrap()).unwrap();
                said
            });
            assert_eq!(said.unwrap(), "1", "{text}");
        }
    }

    /// All hosts need it at once, and there are more of them than threads.
    #[test]
    fn a_secret_that_is_asked_for_over_the_network_does_not_stop_the_runtime() {
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let said = runtime.block_on(async {
                let secret = crate::value::Deferred::deferred_value("the Secret s", &SecretTexts::default(), || {
                    super::wait_for(tokio::time::sleep(std::time::Duration::from_millis(200)))?;
                    Ok("x".to_owned())
                });
                let scope = Arc::new(Scope::default().with_layer([("s".into(), secret)].into()));
                let host = || {
                    let scope = scope.clone();
                    tokio::spawn(async move {
                        Templar::new().render_string(&Template::template_value("{{ s }}", None), &scope)
                    })
                };
                futures::future::join_all((0..8).map(|_| host())).await
            });
            done.send(said.into_iter().map(|one| one.unwrap().unwrap()).collect::<Vec<_>>()).unwrap();
        });
        let said = ended.recv_timeout(std::time::Duration::from_secs(60)).expect("the runtime stands still");
        assert_eq!(said, vec!["x"; 8]);
    }
}
