//! Logins, tokens and the audit log in a real database.

use super::super::rights::Right;
use super::sessions::{SESSION_AGE, SESSION_IDLE};
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
    let (session, login) = store.use_link(&link, "-", start()).unwrap().unwrap();
    assert_eq!((login.name.as_str(), &login.rights), ("alice", &Rights::all()));
    assert_eq!(store.use_link(&link, "-", start()).unwrap(), None, "a second use");
    assert_eq!(store.use_link(&late, "-", start() + LINK_AGE).unwrap(), None, "after its time");
    assert_eq!(store.use_link(&session, "-", start()).unwrap(), None, "a session is no link");
    assert_eq!(store.find_session(&session, start()).unwrap(), Some(login));
}

#[test]
fn a_session_ends_by_logout_when_idle_and_after_twelve_hours() {
    let (_directory, mut store) = store();
    let begin = |store: &mut AccessStore| {
        let link = store.create_link("alice", start()).unwrap();
        store.use_link(&link, "-", start()).unwrap().unwrap().0
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
    let token = Token { name: "ci".into(), account: None, rights: rights.clone(), created, ends, last_used: None };
    let secret = store.create_token(&token).unwrap().unwrap();
    assert!(secret.starts_with(TOKEN_PREFIX));
    assert_eq!(store.create_token(&token).unwrap(), None, "the name is taken");
    let login = Login { name: "token ci".into(), account: None, session: None, rights, ends };
    assert_eq!(store.find_token(&secret, start()).unwrap(), Some(login));
    assert_eq!(store.tokens().unwrap()[0].last_used, Some(start()));
    assert_eq!(store.find_token(&secret, ends).unwrap(), None, "after its end");
    assert_eq!(store.find_session(&secret, start()).unwrap(), None, "a token is no session");
    assert!(store.delete_token("ci").unwrap());
    assert_eq!(store.find_token(&secret, start()).unwrap(), None, "revoked");
    assert!(!store.delete_token("ci").unwrap());
}

const HASH: &str = "$argon2id$of alice";

fn account(store: &mut AccessStore, name: &str) -> Rights {
    let rights = Rights::on("prod", [Right::See]);
    assert!(store.create_account(name, HASH, &rights, start()).unwrap());
    rights
}

fn begin(store: &mut AccessStore, name: &str) -> String {
    store.begin_account_session(name, HASH, "192.0.2.1", start()).unwrap().unwrap().0
}

#[test]
fn an_account_has_sessions_with_the_rights_that_it_has_now() {
    let (_directory, mut store) = store();
    let rights = account(&mut store, "alice");
    assert!(!store.create_account("alice", "other", &Rights::all(), start()).unwrap(), "the name is taken");
    assert_eq!(store.password_hash("alice").unwrap().as_deref(), Some(HASH));
    assert_eq!(store.begin_account_session("alice", "$argon2id$before", "-", start()).unwrap(), None);
    assert_eq!(store.begin_account_session("bob", HASH, "-", start()).unwrap(), None);
    let (secret, login) = store.begin_account_session("alice", HASH, "192.0.2.1", start()).unwrap().unwrap();
    assert_eq!((login.person(), &login.account, &login.rights), ("alice", &Some("alice".to_owned()), &rights));
    assert_eq!(store.find_session(&secret, start()).unwrap(), Some(login));
    assert_eq!(store.accounts().unwrap()[0].last_login, Some(start()));

    let other = begin(&mut store, "alice");
    assert!(store.set_rights("alice", &Rights::on("prod", [Right::Plan])).unwrap());
    assert_eq!(
        store.find_session(&secret, start()).unwrap(),
        None,
        "a session has its rights from its start to its end"
    );
    assert_eq!(store.find_session(&other, start()).unwrap(), None);
    let (_, login) = store.begin_account_session("alice", HASH, "-", start()).unwrap().unwrap();
    assert_eq!(login.rights, Rights::on("prod", [Right::Plan]));
    assert!(!store.set_rights("bob", &rights).unwrap());
}

#[test]
fn a_new_password_ends_the_other_sessions() {
    let (_directory, mut store) = store();
    account(&mut store, "alice");
    account(&mut store, "bob");
    let (kept, ended, of_bob) = (begin(&mut store, "alice"), begin(&mut store, "alice"), begin(&mut store, "bob"));
    let id = store.find_session(&kept, start()).unwrap().unwrap().session.unwrap();
    assert!(!store.set_password("alice", "new", Some("changed meanwhile"), Some(&id), start()).unwrap());
    assert!(store.find_session(&ended, start()).unwrap().is_some());
    assert!(store.set_password("alice", "new", Some(HASH), Some(&id), start()).unwrap());
    let mut is_open = |secret: &str| store.find_session(secret, start()).unwrap().is_some();
    assert_eq!([is_open(&kept), is_open(&ended), is_open(&of_bob)], [true, false, true]);
    assert!(store.set_password("alice", "newer", None, None, start()).unwrap());
    assert_eq!(store.find_session(&kept, start()).unwrap(), None);
    assert!(!store.set_password("carol", "new", None, None, start()).unwrap());
}

#[test]
fn a_removed_account_takes_its_sessions_links_and_tokens_with_it() {
    let (_directory, mut store) = store();
    account(&mut store, "alice");
    let session = begin(&mut store, "alice");
    let link = store.create_link("alice", start()).unwrap();
    let used = store.create_link("alice", start()).unwrap();
    let (by_link, _) = store.use_link(&used, "-", start()).unwrap().unwrap();
    let token = |name: &str, account: Option<&str>| Token {
        name: name.into(),
        account: account.map(str::to_owned),
        rights: Rights::all(),
        created: start(),
        ends: start() + LINK_AGE,
        last_used: None,
    };
    let own = store.create_token(&token("own", Some("alice"))).unwrap().unwrap();
    let other = store.create_token(&token("other", None)).unwrap().unwrap();
    let login = store.find_token(&own, start()).unwrap().unwrap();
    assert_eq!((login.name.as_str(), login.person()), ("token own of alice", "alice"));
    assert!(store.remove_account("alice").unwrap());
    assert!(!store.remove_account("alice").unwrap());
    assert_eq!(store.find_session(&session, start()).unwrap(), None);
    assert_eq!(store.find_session(&by_link, start()).unwrap(), None);
    assert_eq!(store.use_link(&link, "-", start()).unwrap(), None);
    assert_eq!(store.find_token(&own, start()).unwrap(), None);
    assert!(store.find_token(&other, start()).unwrap().is_some());
    // Somebody else may get the name.
    account(&mut store, "alice");
    assert_eq!(store.find_token(&own, start()).unwrap(), None);
    assert_eq!(store.find_session(&session, start()).unwrap(), None);
}

#[test]
fn sessions_are_listed_and_ended_by_their_ids() {
    let (_directory, mut store) = store();
    account(&mut store, "alice");
    account(&mut store, "bob");
    let (first, second) = (begin(&mut store, "alice"), begin(&mut store, "bob"));
    let open = store.open_sessions(start()).unwrap();
    assert_eq!(open.len(), 2);
    let of = |name: &str| open.iter().find(|session| session.name == name).unwrap();
    assert_eq!((of("alice").address.as_str(), of("alice").ends()), ("192.0.2.1", start() + SESSION_IDLE));
    assert!(!first.contains(&of("alice").id), "a part of the secret");
    let id = of("bob").id.clone();
    assert_eq!(store.end_session_with_id(&id, Some("alice")).unwrap(), None, "that of another");
    assert_eq!(store.end_session_with_id(&id, None).unwrap().as_deref(), Some("bob"));
    assert_eq!(store.end_session_with_id(&id, None).unwrap(), None);
    assert_eq!(store.find_session(&second, start()).unwrap(), None);
    let id = of("alice").id.clone();
    assert_eq!(store.end_session_with_id(&id, Some("alice")).unwrap().as_deref(), Some("alice"));
    begin(&mut store, "alice");
    assert!(store.open_sessions(start() + SESSION_IDLE).unwrap().is_empty());
}

#[test]
fn names_of_accounts_cannot_be_mistaken() {
    for fine in ["alice", "a.b-c_d@example.com", "7"] {
        assert_eq!(Account::name_fault(fine), None, "{fine}");
    }
    let long = "a".repeat(64);
    // The second has a Cyrillic letter.
    for wrong in
        ["Alice", "\u{430}lice", "token ci", "a b", "", "-a", "@a", "a\n", "a\u{202e}b", "a\u{300}", "\u{ff41}", &long]
    {
        assert!(Account::name_fault(wrong).is_some(), "{wrong:?}");
    }
}

/// An earlier version of windlass wrote it.
#[test]
fn a_database_without_accounts_is_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let (connection, _) = open_private_database(directory.path(), ACCESS_FILE, &LAYOUTS[..1]).unwrap();
    let insert = "INSERT INTO tokens (name, hash, rights, created, ends) VALUES ('ci', ?1, '{\"*\":[\"see\"]}', 0, ?2)";
    connection.execute(insert, params![hash("wl_x"), i64::MAX]).unwrap();
    connection.execute("INSERT INTO sessions VALUES ('h', 'alice', '{}', 0, 0)", ()).unwrap();
    drop(connection);
    let mut store = AccessStore::open_access(directory.path()).unwrap();
    assert_eq!(store.find_token("wl_x", start()).unwrap().unwrap().name, "token ci");
    assert!(store.open_sessions(start()).unwrap().is_empty());
    account(&mut store, "alice");
}

#[test]
fn the_database_holds_no_secret_and_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, mut store) = store();
    let link = store.create_link("alice", start()).unwrap();
    let other = store.create_link("bob", start()).unwrap();
    let (session, _) = store.use_link(&link, "-", start()).unwrap().unwrap();
    let token = Token {
        name: "t".into(),
        account: None,
        rights: Rights::all(),
        created: start(),
        ends: start() + LINK_AGE,
        last_used: None,
    };
    let token = store.create_token(&token).unwrap().unwrap();
    let (in_cookie, key) = session.split_once('.').unwrap();
    let random = token.strip_prefix(TOKEN_PREFIX).unwrap();
    let secrets = [link.as_str(), &other, in_cookie, key, random];
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let path = entry.unwrap().path();
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(secrets.iter().all(|secret| !text.contains(secret)), "{}", path.display());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o077, 0, "{}", path.display());
    }
}

fn entry(action: &str) -> AuditEntry {
    AuditEntry {
        sequence: 0,
        time: "2026-11-27T09:00:00.000Z".into(),
        who: "alice".into(),
        from: "127.0.0.1".into(),
        action: action.into(),
        target: "prod".into(),
        detail: "plan".into(),
        outcome: "201".into(),
    }
}

#[test]
fn long_texts_are_cut_in_the_audit_log() {
    let (_directory, mut store) = store();
    let long = "é".repeat(1 << 20);
    let fits = "x".repeat(200);
    store.add_audit_entry(AuditEntry { target: long.clone(), detail: long, ..entry("start a run") }).unwrap();
    store.add_audit_entry(AuditEntry { target: fits.clone(), ..entry("start a run") }).unwrap();
    let entries = store.audit_entries(None, 10).unwrap();
    let cut = format!("{} [cut]", "é".repeat(200));
    assert_eq!((&entries[1].target, &entries[1].detail), (&cut, &cut));
    assert_eq!(entries[0].target, fits);
    assert_eq!(store.first_changed_audit_entry().unwrap(), None);
}

#[test]
fn a_part_of_the_audit_log_has_so_many_bytes() {
    let (_directory, mut store) = store();
    for at in 0..10 {
        store.add_audit_entry(AuditEntry { target: at.to_string().repeat(200), ..entry("stop a run") }).unwrap();
    }
    let part = |before, bytes| store.some_audit_entries(before, 200, bytes).unwrap();
    let numbers = |entries: Vec<AuditEntry>| entries.iter().map(|entry| entry.sequence).collect::<Vec<_>>();
    assert_eq!(numbers(part(None, 1000)), [10, 9]);
    assert_eq!(numbers(part(Some(9), 1)), [8], "one at least");
    assert_eq!(part(None, 1 << 20).len(), 10);
}

#[test]
fn a_changed_or_missing_audit_entry_is_found() {
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
