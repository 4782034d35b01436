//! The words that Ansible takes for true and false. Any other word is neither, and never quietly false.

use super::Value;

/// The words for true and for false, in lower case.
const TRUE: [&str; 7] = ["true", "yes", "on", "1", "t", "y", "1.0"];
const FALSE: [&str; 7] = ["false", "no", "off", "0", "f", "n", "0.0"];

/// What a word says; None: it is no boolean.
pub fn of_word(text: &str) -> Option<bool> {
    let word = text.trim().to_ascii_lowercase();
    let is = |words: [&str; 7]| words.contains(&word.as_str());
    if is(TRUE) { Some(true) } else { is(FALSE).then_some(false) }
}

/// What a value says: a boolean, 0 and 1, or a word; None: it is no boolean.
pub fn of(value: &Value) -> Option<bool> {
    match value.as_str() {
        Some(text) => of_word(text),
        None if value.is_number() || value.kind() == minijinja::value::ValueKind::Bool => of_word(&value.to_string()),
        None => None,
    }
}

/// What a value says; an error names `what` it is the value of, and the `others` that it may be besides.
pub fn expect(value: &Value, what: &str, others: &[&str]) -> Result<bool, String> {
    of(value).ok_or_else(|| {
        let known = ["true", "false"].iter().chain(others).copied();
        let words: Vec<&str> = known.clone().collect();
        let (last, first) = words.split_last().expect("there are at least two");
        let shown = value.as_str().map_or_else(|| value.to_string(), |text| format!("{text:?}"));
        let message = format!("{what} must be {} or {last}, not {shown}", first.join(", "));
        let all = known.chain(TRUE).chain(FALSE);
        match value.as_str().and_then(|text| super::origin::nearest(&text.trim().to_lowercase(), all)) {
            Some(near) => format!("{message} (did you mean {near}?)"),
            None => message,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_known_words_are_booleans() {
        for (value, said) in [("Yes", true), (" on ", true), ("T", true), ("no", false), ("OFF", false), ("0.0", false)]
        {
            assert_eq!(of(&Value::from(value)), Some(said), "{value}");
        }
        assert_eq!([1, 0, 2].map(|number| of(&Value::from(number))), [Some(true), Some(false), None]);
        assert_eq!(of(&Value::from(true)), Some(true));
        for word in ["", "strict", "ask", "enabled", "tofu", "none"] {
            assert_eq!(of(&Value::from(word)), None, "{word}");
        }
        assert_eq!(of(&Value::from(vec![true])), None);
    }

    #[test]
    fn an_error_names_what_may_be_written() {
        let error = |text: &str| expect(&Value::from(text), "become", &["accept-new"]).unwrap_err();
        assert_eq!(error("ture"), "become must be true, false or accept-new, not \"ture\" (did you mean true?)");
        assert_eq!(
            error("acept-new"),
            "become must be true, false or accept-new, not \"acept-new\" (did you mean accept-new?)"
        );
        assert_eq!(error("fingerprint"), "become must be true, false or accept-new, not \"fingerprint\"");
    }
}
