//! Windlass: an SSH-driven, agentless orchestrator.
//!
//! The folders are floors, listed from the ground up. A file uses lower floors only; names on one
//! floor do not know each other. `ARCHITECTURE.md` describes the house.

// floor 0: the one dynamic type, where things were written, module documentation
pub mod value;
// floor 1: data and text; no deeds on hosts
pub mod bundle;
pub mod connection;
pub mod playbook;
pub mod resource;
pub mod runs;
pub mod settings;
pub mod template;
// floor 2: one host; the Kubernetes API
pub mod kubernetes;
pub mod remote;
// floor 3: HTTP, through a host or from here; where credentials are kept
pub mod credentials;
pub(crate) mod http;
// floor 4: all hosts
pub mod inventory;
// floor 5: what a task can do to one host; bundles from what projects publish; objects in buckets
pub mod modules;
pub mod s3;
pub mod upstream;
// floor 6: the run
pub mod engine;
// floor 7: settings, inventories and playbooks to a run; events to words
pub mod launch;
pub mod report;
// floor 8: a deployment as a whole; what can be said of playbooks without a run
pub mod deployment;
pub mod lint;
pub mod schema;
// floor 9: a look or a run of the operator, in a process of its own
pub mod worker;
// floor 10: custom resources that are acted on day and night; an API for programs and a page for people
pub mod operator;
pub mod serve;
// floor 11: the command line
pub mod cli;
