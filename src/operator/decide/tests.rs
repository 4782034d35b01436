//! Properties that hold whatever is known, over many states made at random; and the states that people meet.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

const LIMITS: Limits = Limits { look_every: 600, may_run: true, may_look: true };
const NOW: Seconds = 1_800_000_000;

fn pick<T: Clone>(random: &mut StdRng, from: &[T]) -> T {
    from[random.random_range(0..from.len())].clone()
}

fn any_view(random: &mut StdRng) -> DeploymentView {
    let any = |random: &mut StdRng| random.random_bool(0.3);
    let time = |random: &mut StdRng| NOW - random.random_range(0..4000);
    let digest = |random: &mut StdRng| pick(random, &["a", "b"]).to_owned();
    let runs = (0..random.random_range(0..30))
        .map(|number| RunView {
            name: format!("run-{number}"),
            operation: pick(
                random,
                &[RunOperation::Apply, RunOperation::Upgrade, RunOperation::Destroy, RunOperation::Backup],
            ),
            plan_digest: any(random).then(|| digest(random)),
            stop: any(random),
            deleted: random.random_bool(0.1),
            attempts: random.random_range(0..7),
            has_changed: any(random),
            state: match random.random_range(0..12) {
                0 => RunState::Waiting,
                1 => RunState::Running,
                2 => RunState::Lost,
                _ => RunState::Ended { well: any(random), at: time(random) },
            },
        })
        .collect();
    DeploymentView {
        generation: random.random_range(1..4),
        apply: pick(random, &[ApplyPolicy::Automatic, ApplyPolicy::Approve, ApplyPolicy::Never]),
        paused: any(random),
        window: if any(random) { Window::Closed { until: NOW + 5000 } } else { Window::Open },
        deleted: random.random_bool(0.2),
        deletion_policy: pick(random, &[DeletionPolicy::Keep, DeletionPolicy::Destroy]),
        look: random.random_bool(0.8).then(|| LookView {
            at: time(random),
            generation: random.random_range(1..4),
            failed: any(random),
            plan: random.random_bool(0.7).then(|| PlanView {
                digest: digest(random),
                refused: any(random),
                removes: any(random),
            }),
        }),
        changed_since_run: any(random),
        destroyed: any(random),
        changed_since_destroyed: any(random),
        looking: any(random),
        runs,
    }
}

/// What changes hosts, at once or soon.
fn changes(decision: &Decision) -> usize {
    decision.actions.iter().filter(|action| matches!(action, Action::Start(_) | Action::Apply { .. })).count()
}

#[test]
fn whatever_is_known_one_change_at_a_time_and_none_where_none_is_allowed() {
    let mut random = StdRng::seed_from_u64(7);
    for _ in 0..200_000 {
        let view = any_view(&mut random);
        let limits = Limits { look_every: 600, may_run: random.random_bool(0.7), may_look: random.random_bool(0.7) };
        let decision = decide(&view, limits, NOW);
        let count = changes(&decision);
        let running = view.runs.iter().filter(|run| run.state == RunState::Running).count();
        assert!(running == 0 || count == 0, "a second run: {view:#?} {decision:?}");
        assert!(count <= 1, "two changes at once: {view:#?} {decision:?}");
        assert!(limits.may_run || count == 0, "a change over the limit: {view:#?} {decision:?}");
        assert!(!(view.looking && count > 0), "a change during a look: {view:#?} {decision:?}");
        for action in &decision.actions {
            match action {
                Action::Apply { digest } => {
                    let look = view.look.as_ref().unwrap();
                    let plan = look.plan.as_ref().unwrap();
                    assert!(view.apply == ApplyPolicy::Automatic && !plan.refused && !plan.removes && !view.deleted);
                    assert!(look.generation == view.generation && plan.digest == *digest && !view.paused);
                    assert_eq!(view.window, Window::Open);
                }
                Action::Start(name) => {
                    let run = view.runs.iter().find(|run| run.name == *name).unwrap();
                    assert!(matches!(run.state, RunState::Waiting | RunState::Lost) && !run.stop && !run.deleted);
                    assert!(!view.deleted || run.operation == RunOperation::Destroy);
                    let changes = run.operation.changes_hosts();
                    assert!(!changes || view.window == Window::Open || run.has_changed, "outside of a window");
                    assert!(!changes || !view.paused, "a change while paused: {view:#?} {decision:?}");
                }
                Action::End { run, .. } => {
                    let run = view.runs.iter().find(|it| it.name == *run).unwrap();
                    assert!(matches!(run.state, RunState::Waiting | RunState::Lost));
                }
                Action::Forget(name) => {
                    let run = view.runs.iter().find(|run| run.name == *name).unwrap();
                    assert!(matches!(run.state, RunState::Ended { .. }));
                }
                Action::Release => {
                    let open = |run: &RunView| !matches!(run.state, RunState::Ended { .. });
                    let ends = |run: &RunView| {
                        decision
                            .actions
                            .iter()
                            .any(|it| matches!(it, Action::End { run: name, .. } if *name == run.name))
                    };
                    assert!(view.deleted && !view.runs.iter().any(|run| open(run) && !ends(run)));
                    assert!(view.deletion_policy == DeletionPolicy::Keep || view.destroyed);
                }
                Action::Look => assert!(limits.may_look && !view.looking && running == 0),
            }
        }
        assert!(decision.again >= 1 && decision.again <= 600, "{decision:?}");
        // Either something is done, something is at work, a reason is given, or there is nothing to do.
        let at_work = running > 0 || view.looking || !limits.may_look;
        let settled = view.look.as_ref().is_some_and(|look| {
            look.generation == view.generation
                && (look.failed || look.plan.is_none() || view.apply == ApplyPolicy::Never)
        });
        let done = decision.actions.iter().any(|action| !matches!(action, Action::Forget(_)));
        assert!(done || at_work || decision.blocked.is_some() || settled, "nothing happens: {view:#?} {decision:?}");
    }
}

/// Runs the decisions as the operator would, with processes that end, and some that are killed.
#[test]
fn a_deployment_gets_where_its_spec_says_whatever_ends_in_the_middle() {
    for seed in 0..300 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut view = plain();
        view.apply = ApplyPolicy::Automatic;
        let (mut now, mut applied, mut looks) = (NOW, false, 0);
        for _ in 0..400 {
            let decision = decide(&view, LIMITS, now);
            assert!(view.runs.iter().filter(|run| run.state == RunState::Running).count() <= 1);
            for action in decision.actions {
                match action {
                    Action::Look => view.looking = true,
                    Action::Start(name) => {
                        view.runs.iter_mut().find(|run| run.name == name).unwrap().state = RunState::Running;
                    }
                    Action::Apply { digest } => {
                        let name = format!("run-{}", view.runs.len());
                        view.runs.push(run(&name, RunOperation::Apply, RunState::Waiting, Some(&digest)));
                    }
                    Action::Forget(name) => view.runs.retain(|run| run.name != name),
                    other => panic!("{other:?}"),
                }
            }
            now += decision.again;
            // The operator may have been killed: it knows nothing of a look that was under way.
            if view.looking {
                view.looking = false;
                if random.random_bool(0.7) {
                    looks += 1;
                    let plan = (!applied).then(|| PlanView { digest: "d".into(), refused: false, removes: false });
                    view.look = Some(LookView { at: now, generation: view.generation, failed: false, plan });
                }
            }
            for run in view.runs.iter_mut().filter(|run| run.state == RunState::Running) {
                now += 1;
                run.state = match random.random_range(0..4) {
                    0 => RunState::Lost,
                    1 => RunState::Ended { well: false, at: now },
                    2 => RunState::Running,
                    _ => {
                        applied = true;
                        RunState::Ended { well: true, at: now }
                    }
                };
            }
        }
        assert!(applied && looks > 1, "seed {seed}: {view:#?}");
        assert!(view.look.as_ref().unwrap().plan.is_none());
    }
}

fn run(name: &str, operation: RunOperation, state: RunState, digest: Option<&str>) -> RunView {
    let plan_digest = digest.map(str::to_owned);
    RunView {
        name: name.into(),
        operation,
        plan_digest,
        stop: false,
        deleted: false,
        attempts: 1,
        has_changed: state != RunState::Waiting,
        state,
    }
}

fn plain() -> DeploymentView {
    DeploymentView {
        generation: 1,
        apply: ApplyPolicy::Approve,
        paused: false,
        window: Window::Open,
        deleted: false,
        deletion_policy: DeletionPolicy::Keep,
        look: None,
        changed_since_run: false,
        destroyed: false,
        changed_since_destroyed: false,
        looking: false,
        runs: Vec::new(),
    }
}

fn planned(digest: &str) -> DeploymentView {
    let plan = Some(PlanView { digest: digest.into(), refused: false, removes: false });
    DeploymentView { look: Some(LookView { at: NOW - 10, generation: 1, failed: false, plan }), ..plain() }
}

#[test]
fn a_plan_waits_for_a_run_that_names_it() {
    let mut view = planned("a");
    let decision = decide(&view, LIMITS, NOW);
    assert_eq!((decision.actions.len(), decision.blocked), (0, Some(Blocked::AwaitingApproval)));
    view.runs.push(run("mine", RunOperation::Apply, RunState::Waiting, Some("a")));
    assert_eq!(decide(&view, LIMITS, NOW).actions, [Action::Start("mine".into())]);
    view.paused = true;
    let decision = decide(&view, LIMITS, NOW);
    assert_eq!((decision.actions.len(), decision.blocked), (0, Some(Blocked::Paused)));
}

#[test]
fn a_plan_waits_also_while_the_hosts_are_looked_at_again() {
    let mut view = planned("a");
    let later = NOW + LIMITS.look_every;
    let decision = decide(&view, LIMITS, later);
    assert_eq!((decision.actions, decision.blocked), (vec![Action::Look], Some(Blocked::AwaitingApproval)));
    view.looking = true;
    let decision = decide(&view, LIMITS, later);
    assert_eq!((decision.actions.len(), decision.blocked), (0, Some(Blocked::AwaitingApproval)));
    // A plan of another spec, or from before a run, is none.
    view.generation = 2;
    assert_eq!(decide(&view, LIMITS, later).blocked, None);
    view.generation = 1;
    view.runs.push(run("done", RunOperation::Apply, RunState::Ended { well: true, at: NOW }, Some("a")));
    assert_eq!(decide(&view, LIMITS, later).blocked, None);
}

#[test]
fn a_change_waits_for_a_window_and_one_that_was_begun_does_not() {
    let mut view = planned("a");
    view.window = Window::Closed { until: NOW + 300 };
    view.apply = ApplyPolicy::Automatic;
    let decision = decide(&view, LIMITS, NOW);
    assert_eq!(decision.blocked, Some(Blocked::OutsideWindow { until: NOW + 300 }));
    assert_eq!((decision.actions.len(), decision.again), (0, 300));
    view.runs.push(run("r", RunOperation::Upgrade, RunState::Waiting, None));
    assert_eq!(decide(&view, LIMITS, NOW).blocked, Some(Blocked::OutsideWindow { until: NOW + 300 }));
    // Its process has ended before it changed anything, and afterwards.
    view.runs[0].state = RunState::Lost;
    assert_eq!(decide(&view, LIMITS, NOW).blocked, Some(Blocked::OutsideWindow { until: NOW + 300 }));
    view.runs[0].has_changed = true;
    assert_eq!(decide(&view, LIMITS, NOW).actions, [Action::Start("r".into())]);
    view.runs.clear();
    view.look = None;
    assert_eq!(decide(&view, LIMITS, NOW).actions, [Action::Look]);
}

#[test]
fn members_leave_only_by_approval() {
    let mut view = planned("a");
    view.apply = ApplyPolicy::Automatic;
    assert_eq!(decide(&view, LIMITS, NOW).actions, [Action::Apply { digest: "a".into() }]);
    view.look.as_mut().unwrap().plan.as_mut().unwrap().removes = true;
    assert_eq!(decide(&view, LIMITS, NOW).blocked, Some(Blocked::AwaitingApproval));
}

#[test]
fn a_process_that_was_lost_is_replaced_before_anything_else() {
    let mut view = planned("a");
    view.runs.push(run("lost", RunOperation::Upgrade, RunState::Lost, None));
    view.runs.insert(0, run("waits", RunOperation::Apply, RunState::Waiting, None));
    assert_eq!(decide(&view, LIMITS, NOW).actions, [Action::Start("lost".into())]);
    // Not for ever.
    view.runs[1].attempts = 5;
    let actions = decide(&view, LIMITS, NOW).actions;
    assert_eq!(actions, [Action::End { run: "lost".into(), reason: "WorkersEnded" }, Action::Start("waits".into())]);
}

#[test]
fn of_two_waiting_applies_the_newer_counts() {
    let mut view = planned("b");
    view.runs.push(run("old", RunOperation::Apply, RunState::Waiting, Some("a")));
    view.runs.push(run("new", RunOperation::Apply, RunState::Waiting, Some("b")));
    let actions = decide(&view, LIMITS, NOW).actions;
    assert_eq!(actions, [Action::End { run: "old".into(), reason: "Superseded" }, Action::Start("new".into())]);
    // Not if it will not be done itself.
    view.runs[1].stop = true;
    let actions = decide(&view, LIMITS, NOW).actions;
    assert_eq!(actions, [Action::End { run: "new".into(), reason: "Stopped" }, Action::Start("old".into())]);
}

#[test]
fn failures_make_the_pauses_longer_and_a_success_ends_them() {
    let failed = |at| run("f", RunOperation::Apply, RunState::Ended { well: false, at }, Some("a"));
    let mut view = planned("a");
    view.apply = ApplyPolicy::Automatic;
    view.runs = vec![failed(NOW - 100), failed(NOW - 90)];
    assert_eq!(decide(&view, LIMITS, NOW).blocked, Some(Blocked::BackOff { until: NOW - 90 + 120 }));
    assert_eq!(decide(&view, LIMITS, NOW + 30).actions, [Action::Apply { digest: "a".into() }]);
    view.runs.push(run("good", RunOperation::Apply, RunState::Ended { well: true, at: NOW - 80 }, Some("a")));
    assert_eq!(decide(&view, LIMITS, NOW).actions, [Action::Apply { digest: "a".into() }]);
}

#[test]
fn the_hosts_are_looked_at_when_something_changed_and_from_time_to_time() {
    assert_eq!(decide(&plain(), LIMITS, NOW).actions, [Action::Look]);
    let mut view = planned("a");
    assert_eq!(decide(&view, LIMITS, NOW).again, 590);
    assert_eq!(decide(&view, LIMITS, NOW + 590).actions, [Action::Look]);
    view.generation = 2;
    assert_eq!(decide(&view, LIMITS, NOW).actions, [Action::Look]);
    view.generation = 1;
    view.runs.push(run("r", RunOperation::Apply, RunState::Ended { well: true, at: NOW - 5 }, None));
    assert_eq!(decide(&view, LIMITS, NOW).actions, [Action::Look]);
    view.looking = true;
    assert!(decide(&view, LIMITS, NOW).actions.is_empty());
}

#[test]
fn an_object_that_was_deleted_goes_at_once_or_after_its_hosts_were_cleaned() {
    let mut view = DeploymentView { deleted: true, ..planned("a") };
    assert_eq!(decide(&view, LIMITS, NOW).actions, [Action::Release]);
    view.deletion_policy = DeletionPolicy::Destroy;
    assert_eq!(decide(&view, LIMITS, NOW).blocked, Some(Blocked::AwaitingDestroy));
    view.runs.push(run("a", RunOperation::Apply, RunState::Waiting, None));
    view.runs.push(run("d", RunOperation::Destroy, RunState::Waiting, None));
    let actions = decide(&view, LIMITS, NOW).actions;
    assert_eq!(actions, [Action::End { run: "a".into(), reason: "DeploymentDeleted" }, Action::Start("d".into())]);
    view.runs.pop();
    view.runs.push(run("d", RunOperation::Destroy, RunState::Ended { well: true, at: NOW }, None));
    view.destroyed = true;
    assert!(decide(&view, LIMITS, NOW).actions.contains(&Action::Release));
    view.destroyed = false;
    assert_eq!(decide(&view, LIMITS, NOW).blocked, Some(Blocked::AwaitingDestroy));
}

#[test]
fn what_was_destroyed_is_not_installed_again_unasked() {
    let mut view = planned("a");
    view.apply = ApplyPolicy::Automatic;
    view.destroyed = true;
    let decision = decide(&view, LIMITS, NOW);
    assert_eq!((decision.actions.len(), decision.blocked), (0, Some(Blocked::Destroyed)));
    // Another window, or paused and not any more: that says nothing about the hosts.
    view.changed_since_run = true;
    assert_eq!(decide(&view, LIMITS, NOW).blocked, Some(Blocked::Destroyed));
    view.changed_since_destroyed = true;
    assert_eq!(decide(&view, LIMITS, NOW).actions, [Action::Apply { digest: "a".into() }]);
}

#[test]
fn it_is_known_that_a_deployment_was_destroyed_until_it_is_installed_again() {
    let ended = |operation, well, at| run("r", operation, RunState::Ended { well, at }, None);
    let destroy = ended(RunOperation::Destroy, true, NOW);
    let before = ended(RunOperation::Apply, true, NOW - 50);
    assert_eq!(destroyed_at(None, std::slice::from_ref(&before)), None);
    assert_eq!(destroyed_at(None, &[before.clone(), ended(RunOperation::Destroy, false, NOW)]), None);
    assert_eq!(destroyed_at(None, &[before.clone(), destroy.clone()]), Some(NOW));
    // Its Run was deleted.
    assert_eq!(destroyed_at(Some(NOW), std::slice::from_ref(&before)), Some(NOW));
    // One that was refused has installed nothing.
    let refused = RunView { has_changed: false, ..ended(RunOperation::Apply, false, NOW + 50) };
    assert_eq!(destroyed_at(None, &[before.clone(), destroy.clone(), refused]), Some(NOW));
    assert_eq!(destroyed_at(None, &[destroy.clone(), ended(RunOperation::Apply, false, NOW + 50)]), None);
    assert_eq!(destroyed_at(Some(NOW), &[run("r", RunOperation::Apply, RunState::Running, None)]), None);
}

#[test]
fn old_runs_are_forgotten_and_the_newest_failure_is_not() {
    let mut view = planned("a");
    let ended = |number: i64, well| {
        run(&format!("r{number}"), RunOperation::Apply, RunState::Ended { well, at: NOW - 1000 + number }, None)
    };
    view.runs = (0..25).map(|number| ended(number, number != 1)).collect();
    let forgotten: Vec<Action> = decide(&view, LIMITS, NOW).actions;
    let names = ["r4", "r3", "r2", "r0"].map(|name| Action::Forget(name.into()));
    assert_eq!(forgotten, names);
}

#[test]
fn nothing_keeps_a_backup_from_beginning_but_what_is_under_way() {
    let backup = || run("b", RunOperation::Backup, RunState::Waiting, None);
    let apply = |state| RunView { has_changed: false, ..run("a", RunOperation::Apply, state, Some("d")) };
    let begun = |view: &DeploymentView| {
        let actions = decide(view, LIMITS, NOW).actions;
        actions.iter().any(|action| *action == Action::Start("b".into()))
    };
    for state in [RunState::Waiting, RunState::Lost] {
        let mut view = planned("d");
        view.runs = vec![apply(state), backup()];
        assert!(!begun(&view), "what came before comes first");
        let paused = DeploymentView { paused: true, ..view.clone() };
        let closed = DeploymentView { window: Window::Closed { until: NOW + 5000 }, ..view.clone() };
        assert!(begun(&paused) && begun(&closed));
        view.runs[0].state = RunState::Running;
        assert!(!begun(&view));
        // A look that is due comes before it, so that frequent ones do not prevent looks.
        let mut due = planned("d");
        due.runs = vec![backup()];
        assert!(begun(&due));
        due.generation += 1;
        assert_eq!(decide(&due, LIMITS, NOW).actions, [Action::Look]);
    }
    // It changes nothing, so that the last look counts.
    let mut view = planned("d");
    let look = view.look.as_ref().unwrap().at;
    view.runs = vec![run("b", RunOperation::Backup, RunState::Ended { well: true, at: look + 1 }, None)];
    assert!(!decide(&view, LIMITS, NOW).actions.contains(&Action::Look));
    view.runs = vec![run("a", RunOperation::Apply, RunState::Ended { well: true, at: look + 1 }, None)];
    assert!(decide(&view, LIMITS, NOW).actions.contains(&Action::Look));
}

#[test]
fn frequent_backups_do_not_push_out_what_changed_the_hosts() {
    let mut view = planned("a");
    let ended = |name: &str, operation| run(name, operation, RunState::Ended { well: true, at: NOW - 1000 }, None);
    view.runs = vec![ended("apply", RunOperation::Apply)];
    view.runs.extend((0..22).map(|number| ended(&format!("b{number}"), RunOperation::Backup)));
    assert_eq!(decide(&view, LIMITS, NOW).actions, ["b1", "b0"].map(|name| Action::Forget(name.into())));
}

#[test]
fn what_ends_a_restore_waits_for_no_window_but_a_restore_does() {
    let mut view = planned("d");
    view.window = Window::Closed { until: NOW + 5000 };
    for (operation, begins) in [
        (RunOperation::Restore, false),
        (RunOperation::Upgrade, false),
        (RunOperation::UndoRestore, true),
        (RunOperation::ReleaseRestore, true),
    ] {
        let waiting = RunView { has_changed: false, ..run("r", operation, RunState::Waiting, None) };
        view.runs = vec![waiting];
        let decision = decide(&view, LIMITS, NOW);
        assert_eq!(decision.actions.contains(&Action::Start("r".into())), begins, "{operation:?}");
        assert_eq!(decision.blocked.is_some(), !begins, "{operation:?}");
        let paused = DeploymentView { paused: true, ..view.clone() };
        assert_eq!(decide(&paused, LIMITS, NOW).blocked, Some(Blocked::Paused), "{operation:?}");
    }
}
