//! The Kubernetes API that a user's kubeconfig names, or the one of the cluster that this process runs in. Knows nothing of
//! deployments' hosts.

mod cluster;
mod kubeconfig;
mod name;

pub use cluster::{CREDENTIALS_TYPE, Cluster, error_text, is_absent, limited, one_segment};
pub use kubeconfig::outside_reference;
pub use name::{LIVE, LiveName};
