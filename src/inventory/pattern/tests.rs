//! Every kind of pattern, on one small inventory.

use crate::inventory::Inventory;
use crate::value::vault::Keyring;

/// Two web hosts, three database hosts, one host of both, and one of none.
fn inventory() -> Inventory {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hosts.ini");
    std::fs::write(&path, "lone\n[web]\nw1\nw2\nboth\n[db]\nboth\nd1.lan\nd2.lan\n[site:children]\nweb\ndb\n").unwrap();
    Inventory::load(&[path.to_string_lossy().into_owned()], &Keyring::default()).unwrap()
}

fn hosts(pattern: &str) -> String {
    let (hosts, _) = inventory().select(pattern).unwrap();
    hosts.join(" ")
}

#[test]
fn parts_add_keep_and_take_away_whatever_their_order() {
    assert_eq!(hosts("web:db"), "w1 w2 both d1.lan d2.lan");
    assert_eq!(hosts("db,web"), "both d1.lan d2.lan w1 w2");
    assert_eq!(hosts("web:&db"), "both");
    assert_eq!(hosts("&db:web"), "both");
    assert_eq!(hosts("!web:site"), "d1.lan d2.lan");
    assert_eq!(hosts("web,!w1,lone"), "w2 both lone");
    assert_eq!(hosts("!site"), "lone");
}

#[test]
fn all_ungrouped_and_the_empty_pattern() {
    assert_eq!(hosts("all"), "lone w1 w2 both d1.lan d2.lan");
    assert_eq!(hosts("*"), hosts("all"));
    assert_eq!(hosts("ungrouped"), "lone");
    assert_eq!(hosts(""), hosts("all"));
}

#[test]
fn globs_name_groups_and_hosts() {
    assert_eq!(hosts("w*"), "w1 w2 both");
    assert_eq!(hosts("*.lan"), "d1.lan d2.lan");
    assert_eq!(hosts("w[12]x:d?.lan"), "d1.lan d2.lan");
    assert_eq!(hosts("[!w]?.lan"), "d1.lan d2.lan");
    assert_eq!(hosts("w[!1]"), "w2");
}

#[test]
fn a_regular_expression_need_not_match_to_the_end() {
    assert_eq!(hosts("~d[12]"), "d1.lan d2.lan");
    assert_eq!(hosts("~(w|l).*"), "w1 w2 both lone");
    assert_eq!(hosts("~1"), "");
    assert_eq!(hosts("~d(?=2)"), "d2.lan");
}

#[test]
fn subscripts_count_from_either_end_and_ranges_include_both() {
    assert_eq!(hosts("site[0]"), "w1");
    assert_eq!(hosts("site[-1]"), "d2.lan");
    assert_eq!(hosts("site[1:2]"), "w2 both");
    assert_eq!(hosts("site[3:]"), "d1.lan d2.lan");
    assert_eq!(hosts("site[3:99]"), "d1.lan d2.lan");
    assert_eq!(hosts("web[0]:db[-1]"), "w1 d2.lan");
    assert_eq!(hosts("site:!site[0]"), "w2 both d1.lan d2.lan");
    let complaint = inventory().select("web[7]").unwrap_err();
    assert_eq!(complaint.message, "no host matches \"web[7]\": \"web\" has only 3");
}

#[test]
fn localhost_is_there_when_it_is_named_and_not_otherwise() {
    assert_eq!(hosts("localhost"), "localhost");
    assert_eq!(hosts("127.0.0.1"), "127.0.0.1");
    assert_eq!(hosts("::1"), "::1");
    assert_eq!(hosts("local*"), "");
    let inventory = inventory();
    assert_eq!(inventory.host("localhost").unwrap().vars["ansible_connection"].as_str(), Some("local"));
    assert_eq!(inventory.groups_of("localhost").iter().map(|g| &*g.name).collect::<Vec<_>>(), ["all"]);
}

#[test]
fn a_localhost_of_the_inventory_answers_to_the_other_names() {
    let inventory = Inventory::load(&["localhost,".into()], &Keyring::default()).unwrap();
    assert_eq!(inventory.select("127.0.0.1").unwrap().0, ["localhost".into()]);
    assert!(!inventory.host("localhost").unwrap().vars.contains_key("ansible_connection"));
}

#[test]
fn names_that_match_nothing_are_reported_and_have_a_neighbour() {
    let inventory = inventory();
    let (found, unmatched) = inventory.select("wep:db:nope*").unwrap();
    assert_eq!((found.len(), unmatched), (3, vec!["wep".to_owned(), "nope*".to_owned()]));
    assert_eq!(inventory.name_hint("wep").as_deref(), Some("did you mean \"web\"?"));
}

#[test]
fn a_broken_regular_expression_is_named() {
    let complaint = inventory().select("~(").unwrap_err();
    assert!(complaint.message.starts_with("invalid host pattern \"~(\""), "{complaint}");
}

#[test]
fn a_limit_file_holds_a_pattern_a_line_and_an_empty_one_means_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("retry");
    std::fs::write(&file, "w1\nd2.lan\n").unwrap();
    let limit = format!("@{}", file.display());
    assert_eq!(inventory().select_limit(&limit).unwrap().0, ["w1".into(), "d2.lan".into()]);
    std::fs::write(&file, "").unwrap();
    assert!(inventory().select_limit(&limit).unwrap().0.is_empty());
    assert!(inventory().select_limit("@/no/such/file").is_err());
}
