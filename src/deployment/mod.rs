//! A deployment as a whole: its stages, what each would change, the lock that keeps two runs from it, and the journal of
//! what a run has done. A caller creates a [`Site`], calls [`planning::plan`], [`apply::Proposal::make`],
//! [`operation::PreparedOperation::make`], [`destroy::Removal::prepare`] or [`status::read_status`], and follows them through a [`Control`]. Nothing here prints, asks, or reads a command line.

pub mod apply;
pub mod backups;
pub mod changes;
pub mod contract;
mod control;
pub mod destroy;
mod error;
pub mod etcd;
mod identity;
pub mod journal;
mod keys;
pub mod kubeconfig;
pub mod lock;
pub mod members;
pub mod observation;
pub mod operation;
pub mod plan;
pub mod planning;
pub mod recorded_operation;
mod reply;
mod site;
pub mod stage;
pub mod status;
mod waiting;

pub use control::{Control, LockRequest, Outcome, Progress, RemainingParts};
pub use error::Error;
pub use identity::Deployment;
pub use site::{Phase, Run, Site, refuse_own_login};
