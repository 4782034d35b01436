//! References to secrets: where one is, and never the secret itself.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Where a secret is. It is read only when it is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new(
    "[has(self.file), has(self.env), has(self.vault), has(self.command), has(self.secret)].filter(given, given).size() == 1"
).message("a reference to a secret must have exactly one of file, env, vault, command and secret"))]
pub struct Reference {
    /// A file on the machine that windlass runs on, absolute or relative to the directory of this document. It may be
    /// encrypted with `windlass vault`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub file: Option<String>,
    /// An environment variable of windlass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub env: Option<String>,
    /// The secret itself, encrypted with `windlass vault encrypt-string`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32768))]
    #[x_kube(validation = Rule::new("self.startsWith('$ANSIBLE_VAULT;')")
        .message("this is not a vault value: it must start with $ANSIBLE_VAULT; (windlass vault encrypt-string \
            creates one)"))]
    pub vault: Option<String>,
    /// A program and its arguments, run on the machine that windlass runs on. Its output is the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(max = 4096)))]
    pub command: Option<Vec<String>>,
    /// A key of a Kubernetes Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretKey>,
}

/// A key of a Kubernetes Secret, in the cluster of the user's kubeconfig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretKey {
    /// Its namespace (default: that of this resource).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')")
        .message("a namespace must consist of lowercase letters, digits and dashes"))]
    pub namespace: Option<String>,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$') && !self.contains('..')")
        .message("the name of a Secret must consist of lowercase letters, digits, dashes and single dots"))]
    pub name: String,
    /// The key in its data.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// A file on the machine that windlass runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileReference {
    /// Absolute, or relative to the directory of this document.
    #[schemars(length(min = 1, max = 4096))]
    pub file: String,
}
