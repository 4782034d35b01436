//! What a kubeconfig of somebody else must not have.

use kube::config::Kubeconfig;

/// The first field that refers to a file or program of the machine that uses the kubeconfig: the name of its cluster or user, and
/// the field. None: the kubeconfig is complete in itself.
pub fn outside_reference(kubeconfig: &Kubeconfig) -> Option<(String, &'static str)> {
    let clusters = kubeconfig.clusters.iter().filter_map(|named| Some((&named.name, named.cluster.as_ref()?)));
    let users = kubeconfig.auth_infos.iter().filter_map(|named| Some((&named.name, named.auth_info.as_ref()?)));
    clusters
        .map(|(name, cluster)| (name, "certificate-authority", cluster.certificate_authority.is_some()))
        .chain(users.flat_map(|(name, user)| {
            [
                (name, "exec", user.exec.is_some()),
                (name, "auth-provider", user.auth_provider.is_some()),
                (name, "tokenFile", user.token_file.is_some()),
                (name, "client-certificate", user.client_certificate.is_some()),
                (name, "client-key", user.client_key.is_some()),
            ]
        }))
        .find(|(.., there)| *there)
        .map(|(name, field, _)| (name.clone(), field))
}
