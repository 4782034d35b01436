//! Names of variables: what may be one.

use crate::value::Origin;
use crate::value::origin::Diagnostic;

/// Words that expressions need for themselves.
const RESERVED: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "false", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
    "none", "nonlocal", "not", "or", "pass", "raise", "return", "true", "try", "while", "with", "yield",
];

/// Whether a variable may have that name: letters, digits and underscores, no digit first, no reserved word.
pub(super) fn is_valid(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !RESERVED.contains(&name)
}

/// Says what is wrong with the name of a variable, if something is.
pub(super) fn wrong(name: &str, origin: &Origin) -> Option<Diagnostic> {
    if is_valid(name) {
        return None;
    }
    let complaint = Diagnostic::new(format!("invalid variable name {name:?}"), Some(origin));
    if RESERVED.contains(&name) {
        return Some(complaint.hint("the template language reserves this word; choose another"));
    }
    let mut better: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if better.starts_with(|c: char| c.is_ascii_digit()) {
        better.insert(0, '_');
    }
    let rule = "use letters, digits and underscores, not beginning with a digit";
    let hint = if is_valid(&better) { format!("{rule}, for example {better:?}") } else { rule.to_owned() };
    Some(complaint.hint(hint))
}

#[cfg(test)]
mod tests {
    use super::is_valid;

    #[test]
    fn names_are_identifiers_and_no_words_of_the_language() {
        assert!(is_valid("etcd_version") && is_valid("_x1"));
        assert!(
            !is_valid("etcd-version")
                && !is_valid("1x")
                && !is_valid("")
                && !is_valid("is")
                && !is_valid("none")
                && !is_valid("é")
        );
    }
}
