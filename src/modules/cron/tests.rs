//! Jobs and variables in files, and in a crontab that a stand-in for the program keeps.

use super::super::testing::{Bench, value};
use super::table::Table;

#[tokio::test]
async fn a_job_is_added_changed_disabled_and_removed() {
    let bench = Bench::new().await;
    let task = "cron: {name: a b, minute: '5', hour: 1-3, user: root, cron_file: HOST/jobs, job: 'x > /dev/null'}";
    let checked = bench.check(task).await.unwrap();
    let done = bench.run_twice(task).await;
    assert_eq!((checked.diff, bench.mode("jobs")), (done.diff, 0o644));
    assert_eq!(bench.text("jobs"), "#Ansible: a b\n5 1-3 * * * root x > /dev/null\n");
    assert_eq!((value(&done.outcome, "jobs").as_str(), value(&done.outcome, "envs").as_str()), ("['a b']", "[]"));
    bench
        .run_twice("cron: {name: a b, special_time: daily, user: root, cron_file: HOST/jobs, job: y, disabled: true}")
        .await;
    assert_eq!(bench.text("jobs"), "#Ansible: a b\n#@daily root y\n");
    bench.run_twice("cron: {name: other, user: root, cron_file: HOST/jobs, job: z}").await;
    bench.run_twice("cron: {name: a b, cron_file: HOST/jobs, state: absent}").await;
    assert_eq!(bench.text("jobs"), "#Ansible: other\n* * * * * root z\n");
    let task = "cron: {name: other, cron_file: HOST/jobs, state: absent}";
    assert!(bench.check(task).await.unwrap().changed);
    bench.run_twice(task).await;
    assert!(!bench.host("jobs").exists());
    bench.close().await;
}

#[tokio::test]
async fn lines_of_others_that_are_not_utf8_stay_as_they_are() {
    let bench = Bench::new().await;
    std::fs::write(bench.host("jobs"), b"1 2 * * * root /opt/caf\xe9/run\n").unwrap();
    bench.run_twice("cron: {name: \u{e9}, user: root, cron_file: HOST/jobs, job: x}").await;
    let found = std::fs::read(bench.host("jobs")).unwrap();
    assert_eq!(found, b"1 2 * * * root /opt/caf\xe9/run\n#Ansible: \xc3\xa9\n* * * * * root x\n");
    bench.close().await;
}

#[tokio::test]
async fn a_variable_stands_on_top_or_beside_another() {
    let bench = Bench::new().await;
    bench.on_host("jobs", "B=\"2\"\n* * * * * root x\n");
    let base = "user: root, cron_file: HOST/jobs, env: true";
    bench.run_twice(&format!("cron: {{name: A, value: 1, {base}}}")).await;
    bench.run_twice(&format!("cron: {{name: D, value: 4, {base}, insertafter: B}}")).await;
    bench.run_twice(&format!("cron: {{name: C, value: 3, {base}, insertbefore: D}}")).await;
    bench.run_twice(&format!("cron: {{name: B, value: two, {base}}}")).await;
    assert_eq!(bench.text("jobs"), "A=\"1\"\nB=\"two\"\nC=\"3\"\nD=\"4\"\n* * * * * root x\n");
    bench.run_twice(&format!("cron: {{name: A, {base}, state: absent}}")).await;
    assert!(bench.text("jobs").starts_with("B="));
    let message = bench.failure(&format!("cron: {{name: E, value: 1, {base}, insertafter: none}}")).await;
    assert_eq!(message, "the crontab has no variable \"none\"");
    bench.close().await;
}

#[tokio::test]
async fn the_crontab_of_a_user_is_read_and_written_by_its_program() {
    let here = std::env::temp_dir();
    let programs = tempfile::Builder::new().prefix("windlass-crontab-").tempdir_in(here).unwrap();
    let kept = programs.path().join("kept");
    let script = format!(
        "#!/bin/sh\nkept={}\ncase $1 in\n-u) echo \"$2\" >>$kept.users; shift 2 ;;\nesac\n\
         case $1 in\n-l) [ -e $kept ] && cat $kept || {{ echo 'no crontab for x' >&2; exit 1; }} ;;\n-) cat >$kept ;;\n*) exit 2 ;;\nesac\n",
        kept.display()
    );
    let program = programs.path().join("crontab");
    crate::value::testing::write_program(&program, script);
    let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
    let bench = Bench::with_environment(&[("PATH", &path)]).await;
    let task = "cron: {name: n, job: x, backup: true}";
    assert!(bench.check(task).await.unwrap().changed && !kept.exists());
    let first = bench.run(task).await.unwrap();
    let text = || std::fs::read_to_string(&kept).unwrap();
    assert_eq!((first.changed, text().as_str()), (true, "#Ansible: n\n* * * * * x\n"));
    assert!(!bench.run(task).await.unwrap().changed);
    let done = bench.run("cron: {name: n, job: y, user: nobody-else, backup: true}").await.unwrap();
    let backup = value(&done.outcome, "backup_file");
    assert_eq!(std::fs::read_to_string(&backup).unwrap(), "#Ansible: n\n* * * * * x\n");
    std::fs::remove_file(backup).unwrap();
    std::fs::remove_file(value(&first.outcome, "backup_file")).unwrap();
    assert_eq!(std::fs::read_to_string(programs.path().join("kept.users")).unwrap(), "nobody-else\nnobody-else\n");
    assert!(bench.run("cron: {name: n, state: absent}").await.unwrap().changed && text().is_empty());
    bench.close().await;
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let bench = Bench::new().await;
    for (arguments, words) in [
        ("name: x, job: y, cron_file: /etc/crontab, user: root", "/etc/crontab"),
        ("name: x, job: y, cron_file: HOST/f", "needs user"),
        ("name: x, cron_file: HOST/f, user: root", "job is required"),
        ("name: x, job: y, special_time: daily, hour: '1', cron_file: HOST/f, user: root", "special_time"),
        ("name: x y, value: z, env: true, cron_file: HOST/f, user: root", "no spaces"),
        ("name: x, job: y, insertafter: z, cron_file: HOST/f, user: root", "env: true"),
        ("name: x, job: \"y\\n* * * * * root z\", cron_file: HOST/f, user: root", "must each be one line"),
        ("name: \"x\\n* * * * * root z\", job: y, cron_file: HOST/f, user: root", "must each be one line"),
        ("name: x, job: y, minute: \"1\\n\", cron_file: HOST/f, user: root", "must each be one line"),
    ] {
        let message = bench.failure(&format!("cron: {{{arguments}}}")).await;
        assert!(message.contains(words), "{message}");
    }
    bench.close().await;
}

#[test]
fn a_job_written_by_hand_gets_its_name() {
    let mut table = Table::parse_crontab("# DO NOT EDIT THIS FILE - edit the master and reinstall.\n* * * * * x\n");
    assert!(table.set_job("n", "* * * * * x") && !table.set_job("n", "* * * * * x"));
    assert_eq!(table.render_crontab(), "#Ansible: n\n* * * * * x\n");
    let mut table = Table::parse_crontab("#Ansible: None\n* * * * * x\n");
    assert!(table.set_job("n", "* * * * * x"));
    assert_eq!(table.jobs(), ["n"]);
}

#[tokio::test]
async fn a_table_without_an_end_of_line_gets_one() {
    let bench = Bench::new().await;
    bench.on_host("jobs", "#Ansible: n\n* * * * * root x");
    bench.run_twice("cron: {name: n, job: x, user: root, cron_file: HOST/jobs}").await;
    assert!(bench.text("jobs").ends_with("x\n"));
    bench.close().await;
}
