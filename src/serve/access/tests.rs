//! Logins, tokens and the audit log in a real database.

use super::super::rights::Right;
use super::*;

fn store() -> (tempfile::TempDir, AccessStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = AccessStore::open_access(directory.path()).unwrap();
    (directory, store)
}

fn start() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

#[test]
fn a_link_works_once_and_not_for_long() {
    let (_directory, mut store) = store();
    let link = store.create_link("alice", start()).unwrap();
    let late = store.create_link("bob", start()).unwrap();
    let (session, login) = store.use_link(&link, start()).unwrap().unwrap();
    assert_eq!((login.name.as_str(), &login.rights), ("alice", &Rights::all()));
    assert_eq!(store.use_link(&link, start()).unwrap(), None, "a second use");
    assert_eq!(store.use_link(&late, start() + LINK_AGE).unwrap(), None, "after its time");
    assert_eq!(store.use_link(&session, start()).unwrap(), None, "a session is no link");
    assert_eq!(store.find_session(&session, start()).unwrap(), Some(login));
}

#[test]
fn a_session_ends_by_logout_when_idle_and_after_twelve_hours() {
    let (_directory, mut store) = store();
    let begin = |store: &mut AccessStore| {
        let link = store.create_link("alice", start()).unwrap();
        store.use_link(&link, start()).unwrap().unwrap().0
    };
    let session = begin(&mut store);
    store.end_session(&session).unwrap();
    assert_eq!(store.find_session(&session, start()).unwrap(), None, "after a logout");

    let session = begin(&mut store);
    assert!(store.find_session(&session, start() + SESSION_IDLE / 2).unwrap().is_some());
    assert!(store.find_session(&session, start() + SESSION_IDLE).unwrap().is_some(), "it was used meanwhile");
    assert_eq!(store.find_session(&session, start() + SESSION_IDLE * 2).unwrap(), None, "idle");

    let session = begin(&mut store);
    let mut now = start();
    while now < start() + SESSION_AGE {
        assert!(store.find_session(&session, now).unwrap().is_some(), "in use");
        now += SESSION_IDLE / 2;
    }
    assert_eq!(store.find_session(&session, now).unwrap(), None, "after its longest time");
}

#[test]
fn a_token_has_its_rights_until_it_ends_or_is_revoked() {
    let (_directory, mut store) = store();
    let rights = Rights::on("prod", [Right::See]);
    let (created, ends) = (start(), start() + Duration::from_secs(3600));
    let token = Token { name: "ci".into(), rights: rights.clone(), created, ends, last_used: None };
    let secret = store.create_token(&token).unwrap().unwrap();
    assert!(secret.starts_with(TOKEN_PREFIX));
    assert_eq!(store.create_token(&token).unwrap(), None, "the name is taken");
    let login = Login { name: "token ci".into(), rights, ends };
    assert_eq!(store.find_token(&secret, start()).unwrap(), Some(login));
    assert_eq!(store.tokens().unwrap()[0].last_used, Some(start()));
    assert_eq!(store.find_token(&secret, ends).unwrap(), None, "after its end");
    assert_eq!(store.find_session(&secret, start()).unwrap(), None, "a token is no session");
    assert!(store.delete_token("ci").unwrap());
    assert_eq!(store.find_token(&secret, start()).unwrap(), None, "revoked");
    assert!(!store.delete_token("ci").unwrap());
}

#[test]
fn the_database_holds_no_secret_and_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, mut store) = store();
    let link = store.create_link("alice", start()).unwrap();
    let other = store.create_link("bob", start()).unwrap();
    let (session, _) = store.use_link(&link, start()).unwrap().unwrap();
    let token =
        Token { name: "t".into(), rights: Rights::all(), created: start(), ends: start() + LINK_AGE, last_used: None };
    let token = store.create_token(&token).unwrap().unwrap();
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let path = entry.unwrap().path();
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!([&link, &other, &session, &token].iter().all(|secret| !text.contains(*secret)), "{}", path.display());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o077, 0, "{}", path.display());
    }
}

#[test]
fn a_changed_or_missing_audit_entry_is_found() {
    let entry = |action: &str| AuditEntry {
        sequence: 0,
        time: "2026-11-27T09:00:00.000Z".into(),
        who: "alice".into(),
        from: "127.0.0.1".into(),
        action: action.into(),
        target: "prod".into(),
        detail: "plan".into(),
        outcome: "201".into(),
    };
    let (_directory, mut store) = store();
    for action in ["start run", "stop run", "create token"] {
        store.add_audit_entry(entry(action)).unwrap();
    }
    let entries = store.audit_entries(None, 2).unwrap();
    let seen: Vec<(u64, &str)> = entries.iter().map(|entry| (entry.sequence, entry.action.as_str())).collect();
    assert_eq!(seen, [(3, "create token"), (2, "stop run")]);
    assert_eq!(store.audit_entries(Some(2), 10).unwrap().len(), 1);
    assert_eq!(store.first_changed_audit_entry().unwrap(), None);
    let changes = [
        ("UPDATE audit SET entry = replace(entry, 'alice', 'mallory') WHERE sequence = 2", 2),
        ("DELETE FROM audit WHERE sequence = 2", 3),
    ];
    for (change, found) in changes {
        let transaction = store.connection.unchecked_transaction().unwrap();
        store.connection.execute(change, ()).unwrap();
        assert_eq!(store.first_changed_audit_entry().unwrap(), Some(found), "{change}");
        transaction.rollback().unwrap();
    }
}
