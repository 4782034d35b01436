//! Names of objects of the API, as people write them.

/// What the name of an object of the API begins with, where a file could be named, too.
pub const LIVE: &str = "kube:";

/// An object: `[CONTEXT/]NAMESPACE/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveName {
    /// Of the kubeconfig. None: the current one.
    pub context: Option<String>,
    pub namespace: String,
    pub name: String,
}

impl LiveName {
    /// Reads the text after `kube:`. None: it has other parts.
    pub fn parse(text: &str) -> Option<LiveName> {
        let mut parts = text.rsplitn(3, '/');
        let (name, namespace, context) = (parts.next()?, parts.next()?, parts.next());
        let whole = ![name, namespace].contains(&"") && context != Some("");
        whole.then(|| LiveName {
            context: context.map(str::to_owned),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_may_have_slashes_and_a_namespace_is_needed() {
        let parsed = LiveName::parse("arn:aws:eks/prod/ops/main").unwrap();
        assert_eq!(parsed.context.as_deref(), Some("arn:aws:eks/prod"));
        assert_eq!((&*parsed.namespace, &*parsed.name), ("ops", "main"));
        assert_eq!(LiveName::parse("ops/main").unwrap().context, None);
        for text in ["", "main", "/main", "ops/", "/ops/main"] {
            assert_eq!(LiveName::parse(text), None, "{text}");
        }
    }
}
