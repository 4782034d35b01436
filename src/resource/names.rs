//! The names of groups and variables that this program shares with its playbooks and roles. `tests/roles.rs` compares them with the
//! groups of the plays and with the roles' argument specs.

/// Constants, and the list of them.
macro_rules! names {
    ($($(#[doc = $about:literal])? $constant:ident = $name:literal,)*) => {
        $($(#[doc = $about])? pub const $constant: &str = $name;)*
        pub const ALL: &[&str] = &[$($name),*];
    };
}

/// Groups. Those of components are in the [table](super::TABLE).
pub mod group {
    names! {
        /// All hosts and members of a deployment; its variables are weaker than those of the other groups.
        DEPLOYMENT = "karmada_deployment",
        CONTROL_PLANE = "karmada_control_plane",
        API_SERVER = "karmada_apiserver",
        ETCD = "etcd",
        LOAD_BALANCER = "load_balancer",
        /// The member clusters that are described.
        MEMBERS = "members",
        /// Those that have not joined yet.
        ADD_MEMBER = "add_member",
        /// Clusters that have joined and are not described.
        DEL_MEMBER = "del_member",
        /// The hosts of members' agents. Playbooks fill it, from what members name.
        AGENT_HOSTS = "karmada_agent_hosts",
    }

    /// Those that plays are for. Without a group of its own, a component runs on the control plane's hosts.
    pub const OF_PLAYS: [&str; 6] = [CONTROL_PLANE, ETCD, LOAD_BALANCER, MEMBERS, DEL_MEMBER, AGENT_HOSTS];
}

/// Variables. Those of a component begin with the name of its role.
pub mod variable {
    names! {
        COMPONENT = "component",
        CONFIRM_CLUSTER_NAME = "confirm_cluster_name",
        CONFIRM_INSTANCE = "confirm_instance",
        CREDENTIALS_DIR = "credentials_dir",
        ETCD_ADDRESS = "etcd_address",
        ETCD_ALLOW_EVEN = "etcd_allow_even",
        ETCD_BACKUP_ID = "etcd_backup_id",
        ETCD_BACKUP_LOCAL = "etcd_backup_local",
        ETCD_BACKUP_REHEARSES = "etcd_backup_rehearses",
        ETCD_BACKUP_STAGING = "etcd_backup_staging",
        ETCD_BUNDLE = "etcd_bundle",
        ETCD_CA_PHASES = "etcd_ca_phases",
        ETCD_CLUSTER_NAME = "etcd_cluster_name",
        ETCD_DATA_DIR = "etcd_data_dir",
        ETCD_DEFRAG_COMPACT = "etcd_defrag_compact",
        ETCD_DEFRAG_UNUSED_MB = "etcd_defrag_unused_mb",
        ETCD_DEFRAG_UNUSED_PERCENT = "etcd_defrag_unused_percent",
        ETCD_EXTERNAL = "etcd_external",
        ETCD_EXTRA_NAMES = "etcd_extra_names",
        ETCD_FLAGS = "etcd_flags",
        ETCD_INSTANCE = "etcd_instance",
        ETCD_LOCAL_BACKUP_DIR = "etcd_local_backup_dir",
        ETCD_LOCAL_BACKUP_KEEP = "etcd_local_backup_keep",
        ETCD_LOCAL_BACKUP_MINUTES = "etcd_local_backup_minutes",
        ETCD_MONITORING_DIR = "etcd_monitoring_dir",
        ETCD_QUOTA_BACKEND_BYTES = "etcd_quota_backend_bytes",
        ETCD_REHEARSED_BACKUP = "etcd_rehearsed_backup",
        ETCD_REHEARSED_FILE = "etcd_rehearsed_file",
        ETCD_REMOVED_MEMBERS = "etcd_removed_members",
        ETCD_RESTORE_ABANDONS = "etcd_restore_abandons",
        ETCD_RESTORE_BACKUP = "etcd_restore_backup",
        ETCD_RESTORE_ID = "etcd_restore_id",
        ETCD_RESTORE_LOST = "etcd_restore_lost",
        ETCD_RESTORE_RELEASES = "etcd_restore_releases",
        ETCD_RESTORE_SNAPSHOT = "etcd_restore_snapshot",
        ETCD_SKIP_CHECKS = "etcd_skip_checks",
        FOREIGN_MEMBERS = "foreign_members",
        HOST = "host",
        HOST_LABELS = "host_labels",
        KARMADA_ADDONS = "karmada_addons",
        KARMADA_ADDRESS = "karmada_address",
        KARMADA_BUNDLE = "karmada_bundle",
        KARMADA_CA_CERT = "karmada_ca_cert",
        KARMADA_CA_KEY = "karmada_ca_key",
        KARMADA_DEPLOYMENT = "karmada_deployment",
        KARMADA_ENDPOINT = "karmada_endpoint",
        KARMADA_EXTRA_NAMES = "karmada_extra_names",
        KARMADA_HOST_CLUSTER_KUBECONFIG = "karmada_host_cluster_kubeconfig",
        KARMADA_INSTANCE = "karmada_instance",
        KARMADA_KEEP_ENCRYPTION_KEY = "karmada_keep_encryption_key",
        KARMADA_SERVICE_CIDR = "karmada_service_cidr",
        KARMADA_VERSION = "karmada_version",
        KARMADA_VIRTUAL_ADDRESS = "karmada_virtual_address",
        KEYS_OWNER = "keys_owner",
        LOAD_BALANCER_INTERFACE = "load_balancer_interface",
        LOAD_BALANCER_PACKAGE_FILES = "load_balancer_package_files",
        LOAD_BALANCER_ROUTER_ID = "load_balancer_router_id",
        MEMBER_ADDONS = "member_addons",
        MEMBER_AGENT = "member_agent",
        MEMBER_API_ENDPOINT = "member_api_endpoint",
        MEMBER_CONTEXT = "member_context",
        MEMBER_ESTIMATOR = "member_estimator",
        MEMBER_FORCE = "member_force",
        MEMBER_KUBECONFIG = "member_kubeconfig",
        MEMBER_KUBECONFIG_CONTENT = "member_kubeconfig_content",
        MEMBER_KUBECONFIG_ON_HOST = "member_kubeconfig_on_host",
        MEMBER_LABELS = "member_labels",
        MEMBER_NAME = "member_name",
        MEMBER_PROVIDER = "member_provider",
        MEMBER_REGION = "member_region",
        MEMBER_SYNC_MODE = "member_sync_mode",
        MEMBER_TAINTS = "member_taints",
        MEMBER_WORKLOADS = "member_workloads",
        MEMBER_ZONES = "member_zones",
        PENDING_STAGES = "windlass_pending_stages",
        PREFLIGHT_ARCHITECTURES = "preflight_architectures",
    }
}
