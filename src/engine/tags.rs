//! Which tasks `--tags` and `--skip-tags` let run.

use std::sync::Arc;

#[derive(Debug, Clone, Default)]
pub struct Tags {
    /// Empty: all.
    pub only: Vec<String>,
    pub skip: Vec<String>,
}

impl Tags {
    /// Ansible's rules: `always` runs unless skipped by name, `never` only when selected by name or by another tag of
    /// the same task, `tagged`, `untagged` and `all` are sets.
    pub fn allow(&self, tags: &[Arc<str>]) -> bool {
        let has = |name: &str| tags.iter().any(|tag| tag.as_ref() == name);
        let named = |list: &[String]| list.iter().any(|name| has(name));
        let asks = |list: &[String], name: &str| list.iter().any(|asked| asked == name);
        let tagged = !tags.is_empty();
        let only_default = ["all".to_string()];
        let only: &[String] = if self.only.is_empty() { &only_default } else { &self.only };

        let always = has("always") && !asks(&self.skip, "always");
        let run = always
            || named(only)
            || (asks(only, "all") && !has("never"))
            || (asks(only, "tagged") && tagged && !has("never"))
            || (asks(only, "untagged") && !tagged);
        let skip = named(&self.skip)
            || (asks(&self.skip, "all") && !always)
            || (asks(&self.skip, "tagged") && tagged)
            || (asks(&self.skip, "untagged") && !tagged);
        run && !skip
    }
}

#[cfg(test)]
mod tests {
    use super::Tags;

    fn allow(only: &[&str], skip: &[&str], tags: &[&str]) -> bool {
        let words = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let tags: Vec<_> = tags.iter().map(|tag| std::sync::Arc::from(*tag)).collect();
        Tags { only: words(only), skip: words(skip) }.allow(&tags)
    }

    #[test]
    fn without_a_choice_everything_but_never_runs() {
        assert!(allow(&[], &[], &[]));
        assert!(allow(&[], &[], &["a"]));
        assert!(!allow(&[], &[], &["never"]));
        assert!(!allow(&[], &[], &["never", "a"]));
    }

    #[test]
    fn a_choice_takes_its_own_and_always() {
        assert!(allow(&["a"], &[], &["a", "b"]));
        assert!(!allow(&["a"], &[], &["b"]));
        assert!(!allow(&["a"], &[], &[]));
        assert!(allow(&["a"], &[], &["always"]));
        assert!(!allow(&["a"], &["always"], &["always"]));
        assert!(allow(&["a"], &[], &["never", "a"]));
    }

    #[test]
    fn skipping_wins_over_choosing() {
        assert!(!allow(&["a"], &["b"], &["a", "b"]));
        assert!(!allow(&[], &["tagged"], &["a"]));
        assert!(allow(&[], &["tagged"], &[]));
        assert!(allow(&["untagged"], &[], &[]));
        assert!(!allow(&["tagged"], &[], &[]));
    }
}
