//! Rules in the program's words, and what is done with them by a stand-in that keeps rules as lines.

use std::path::Path;

use super::super::testing::{Bench, value};
use super::{policy, version};

/// Keeps rules in `rules`, chains in `chains`, what it was asked to do in `log`.
const STAND_IN: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 9
case $1 in --version) echo "iptables v1.8.9 (nf_tables)"; exit ;; esac
echo "$*" >>log
[ ! -e locked ] || { echo "Another app is currently holding the xtables lock." >&2; exit 4; }
shift 2
action=$1 chain=$2
shift; [ $# = 0 ] || shift
case $1 in -w) shift 2 ;; esac
case $action in
-C) grep -qxF -- "$chain $*" rules ;;
-A) echo "$chain $*" >>rules ;;
-I) shift; echo "$chain $*" >>rules ;;
-D) grep -vxF -- "$chain $*" rules >new; mv new rules ;;
-N) echo "$chain" >>chains ;;
-X) grep -vx "$chain" chains >new; mv new chains ;;
-P) echo "$1" >policy ;;
-F) : >rules ;;
-L) case $chain in INPUT) echo "Chain INPUT (policy $(cat policy))" ;; *) grep -x "$chain" chains ;; esac ;;
esac
"#;

struct Filter {
    bench: Bench,
    directory: tempfile::TempDir,
}

impl Filter {
    async fn new() -> Filter {
        let directory = tempfile::Builder::new().prefix("windlass-iptables-").tempdir().unwrap();
        for program in ["iptables", "ip6tables"] {
            crate::value::testing::write_program(directory.path().join(program), STAND_IN);
        }
        for (file, text) in [("rules", ""), ("chains", ""), ("policy", "ACCEPT\n"), ("log", "")] {
            std::fs::write(directory.path().join(file), text).unwrap();
        }
        let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
        Filter { bench: Bench::with_environment(&[("PATH", &path)]).await, directory }
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(Path::new(self.directory.path()).join(file)).unwrap()
    }

    /// Check mode reports the change; the task makes it; a second run changes nothing.
    async fn changes_once(&self, arguments: &str) {
        let task = format!("iptables: {{{arguments}}}");
        let before = (self.text("rules"), self.text("chains"), self.text("policy"));
        assert!(self.bench.check(&task).await.unwrap().changed, "{task}");
        assert_eq!(before, (self.text("rules"), self.text("chains"), self.text("policy")), "{task}");
        assert!(self.bench.run(&task).await.unwrap().changed, "{task}");
        assert!(!self.bench.run(&task).await.unwrap().changed, "{task}");
    }
}

#[tokio::test]
async fn a_rule_comes_once_and_goes_once() {
    let filter = Filter::new().await;
    let rule =
        "chain: INPUT, protocol: tcp, source: 10.0.0.0/24, destination_ports: [2379, 2380], jump: ACCEPT, comment: a b";
    filter.changes_once(rule).await;
    let words = "-p tcp -s 10.0.0.0/24 -j ACCEPT -m multiport --dports 2379,2380 -m comment --comment a b";
    assert_eq!(filter.text("rules"), format!("INPUT {words}\n"));
    let done = filter.bench.run(&format!("iptables: {{{rule}}}")).await.unwrap();
    assert_eq!((value(&done.outcome, "rule").as_str(), value(&done.outcome, "table").as_str()), (words, "filter"));
    filter.changes_once(&format!("{rule}, state: absent, wait: '5'")).await;
    assert_eq!(filter.text("rules"), "");
    assert!(filter.text("log").contains("-D INPUT -w 5 -p tcp"));
    filter.bench.close().await;
}

#[tokio::test]
async fn chains_and_policies_are_set_and_tables_flushed() {
    let filter = Filter::new().await;
    filter.changes_once("chain: MINE, chain_management: true").await;
    filter.changes_once("chain: MINE, chain_management: true, state: absent").await;
    filter.changes_once("chain: INPUT, policy: DROP").await;
    filter.changes_once("chain: INPUT, jump: DROP, action: insert, rule_num: '1'").await;
    assert!(filter.text("log").contains("-t filter -I INPUT 1 -j DROP"));
    assert!(filter.bench.run("iptables: {flush: true, table: nat}").await.unwrap().changed);
    assert!(filter.text("log").ends_with("-t nat -F\n") && filter.text("rules").is_empty());
    filter.bench.close().await;
}

#[tokio::test]
async fn both_versions_get_the_rule() {
    let filter = Filter::new().await;
    let done = filter.bench.run("iptables: {chain: INPUT, jump: DROP, ip_version: both}").await.unwrap();
    assert!(done.changed);
    assert_eq!(filter.text("rules"), "INPUT -j DROP\nINPUT -j DROP\n");
    filter.bench.close().await;
}

#[tokio::test]
async fn every_kind_of_match_has_its_words() {
    let filter = Filter::new().await;
    for (arguments, words) in [
        ("source: '!10.0.0.1', in_interface: eth+, jump: DROP", "! -s 10.0.0.1 -j DROP -i eth+"),
        ("ctstate: [NEW, RELATED], jump: ACCEPT", "-j ACCEPT -m conntrack --ctstate NEW,RELATED"),
        ("match: [state], ctstate: NEW, jump: ACCEPT", "-m state -j ACCEPT --state NEW"),
        ("protocol: tcp, reject_with: tcp-reset", "-p tcp -j REJECT --reject-with tcp-reset"),
        (
            "log_prefix: 'X: ', log_level: info, limit: 2/second, limit_burst: '20'",
            "-j LOG --log-prefix X:  --log-level info -m limit --limit 2/second --limit-burst 20",
        ),
        (
            "protocol: tcp, tcp_flags: {flags: ALL, flags_set: [ACK, SYN]}, jump: DROP",
            "-p tcp --tcp-flags ALL ACK,SYN -j DROP",
        ),
        ("src_range: 1.1.1.1-1.1.1.9, jump: DROP", "-j DROP -m iprange --src-range 1.1.1.1-1.1.1.9"),
        ("match_set: admins, match_set_flags: src, jump: ACCEPT", "-j ACCEPT -m set --match-set admins src"),
        ("uid_owner: '!root', jump: DROP", "-j DROP -m owner ! --uid-owner root"),
        (
            "protocol: tcp, destination_port: '22', syn: match, jump: ACCEPT",
            "-p tcp -j ACCEPT --destination-port 22 --syn",
        ),
        ("protocol: icmp, icmp_type: echo-request, jump: ACCEPT", "-p icmp -j ACCEPT --icmp-type echo-request"),
        ("jump: DSCP, set_dscp_mark: '8'", "-j DSCP --set-dscp 8"),
        ("table: nat, jump: REDIRECT, to_ports: '8600'", "-j REDIRECT --to-ports 8600"),
        ("jump: TEE, gateway: 10.0.0.9", "-j TEE --gateway 10.0.0.9"),
    ] {
        let done = filter.bench.check(&format!("iptables: {{chain: INPUT, {arguments}}}")).await.unwrap();
        assert_eq!(value(&done.outcome, "rule"), words);
    }
    filter.bench.close().await;
}

#[tokio::test]
async fn what_does_not_go_together_is_refused() {
    let filter = Filter::new().await;
    for (arguments, words) in [
        ("jump: DROP", "chain is required"),
        ("chain: INPUT, flush: true, policy: DROP", "only flush or policy"),
        ("chain: INPUT, jump: TEE", "needs gateway"),
        ("chain: INPUT, jump: DROP, log_prefix: x", "jump: LOG"),
        ("chain: INPUT, set_dscp_mark: '1'", "need jump"),
    ] {
        let message = filter.bench.failure(&format!("iptables: {{{arguments}}}")).await;
        assert!(message.contains(words), "{message}");
    }
    filter.bench.close().await;
}

#[test]
fn versions_and_policies_are_read() {
    assert_eq!(version("iptables v1.8.9 (nf_tables)\n"), [1, 8, 9]);
    assert!(version("iptables v1.4.21\n") < [1, 6, 0]);
    assert_eq!(policy("Chain INPUT (policy DROP 5 packets)\n").as_deref(), Some("DROP"));
    assert_eq!(policy("Chain MINE (0 references)\n"), None);
}

/// A rule that could not be looked for counts neither as there nor as gone.
#[tokio::test]
async fn tables_that_another_program_has_locked_are_an_error() {
    let filter = Filter::new().await;
    std::fs::write(filter.directory.path().join("locked"), "").unwrap();
    for rule in ["chain: INPUT, protocol: tcp, jump: ACCEPT", "chain: INPUT, chain_management: true"] {
        for state in ["present", "absent"] {
            let message = filter.bench.failure(&format!("iptables: {{{rule}, state: {state}}}")).await;
            assert!(
                message.ends_with("failed with code 4: Another app is currently holding the xtables lock."),
                "{message}"
            );
        }
    }
}
