//! The words for true and false, of Ansible and of the other languages that are read here. Any other word is neither, and
//! never quietly false.

use super::Value;

/// The words for true and for false, in lower case.
const TRUE: [&str; 7] = ["true", "yes", "on", "1", "t", "y", "1.0"];
const FALSE: [&str; 7] = ["false", "no", "off", "0", "f", "n", "0.0"];

/// What a word says; None: it is no boolean.
pub fn of_word(text: &str) -> Option<bool> {
    of_exact_word(text.trim())
}

/// As [`of_word`], where blanks around it make it another word.
pub fn of_exact_word(text: &str) -> Option<bool> {
    let word = text.to_ascii_lowercase();
    let is = |words: [&str; 7]| words.contains(&word.as_str());
    if is(TRUE) { Some(true) } else { is(FALSE).then_some(false) }
}

/// All words for booleans, each also with a capital, as people write them.
pub fn truth_words() -> impl Iterator<Item = String> {
    TRUE.into_iter().chain(FALSE).flat_map(|word| {
        let (first, rest) = word.split_at(1);
        let capital = first.to_ascii_uppercase() + rest;
        [Some(word.to_owned()), (capital != word).then_some(capital)].into_iter().flatten()
    })
}

/// YAML makes `yes` a boolean. The choice that was written, if only one of them can have been.
pub fn choice_of(said: bool, choices: impl IntoIterator<Item = impl AsRef<str>>) -> Option<String> {
    let words = if said { TRUE } else { FALSE };
    let mut meant = choices.into_iter().filter(|choice| words.contains(&choice.as_ref()));
    let choice = meant.next()?.as_ref().to_owned();
    meant.next().is_none().then_some(choice)
}

/// Whether a text counts as true where any text does but the empty one and the words for false.
pub fn of_any_text(text: &str) -> bool {
    !text.is_empty() && of_exact_word(text) != Some(false)
}

/// What a plain scalar of YAML 1.1 says: `yes`, `true` and `on` and their opposites, in lower or upper case or with a capital.
pub fn of_yaml(text: &str) -> Option<bool> {
    let capital = text.starts_with(|first: char| first.is_ascii_uppercase());
    let rest = text.get(1..)?;
    let is_spelled = match capital {
        false => rest.chars().all(|letter| letter.is_ascii_lowercase()),
        true => rest.chars().all(|letter| letter.is_ascii_lowercase()) || rest.chars().all(|l| l.is_ascii_uppercase()),
    };
    is_spelled.then(|| text.to_ascii_lowercase()).and_then(|word| match word.as_str() {
        "yes" | "true" | "on" => Some(true),
        "no" | "false" | "off" => Some(false),
        _ => None,
    })
}

/// What a word of OpenSSH's configuration says.
pub fn of_ssh(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" => Some(true),
        "no" | "false" => Some(false),
        _ => None,
    }
}

/// What the value of a boolean flag or feature gate of Kubernetes' programs says.
pub fn of_flag(text: &str) -> Option<bool> {
    text.to_ascii_lowercase().parse().ok()
}

/// Whether an answer means yes.
pub fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// What a value says: a boolean, 0 and 1, or a word; None: it is no boolean.
pub fn truth_of(value: &Value) -> Option<bool> {
    match value.as_str() {
        Some(text) => of_word(text),
        None if value.is_number() || value.kind() == minijinja::value::ValueKind::Bool => of_word(&value.to_string()),
        None => None,
    }
}

/// What a value says; an error names `what` it is the value of, and the `others` that it may be besides.
pub fn expect(value: &Value, what: &str, others: &[&str]) -> Result<bool, String> {
    truth_of(value).ok_or_else(|| {
        let known = ["true", "false"].iter().chain(others).copied();
        let words: Vec<&str> = known.clone().collect();
        let (last, first) = words.split_last().expect("there are at least two");
        let shown = value.as_str().map_or_else(|| value.to_string(), |text| format!("{text:?}"));
        let message = format!("{what} must be {} or {last}, not {shown}", first.join(", "));
        let all = known.chain(TRUE).chain(FALSE);
        match value.as_str().and_then(|text| super::nearest::did_you_mean(&text.trim().to_lowercase(), all)) {
            Some(hint) => format!("{message} ({hint})"),
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
            assert_eq!(truth_of(&Value::from(value)), Some(said), "{value}");
        }
        assert_eq!([1, 0, 2].map(|number| truth_of(&Value::from(number))), [Some(true), Some(false), None]);
        assert_eq!(truth_of(&Value::from(true)), Some(true));
        for word in ["", "strict", "ask", "enabled", "tofu", "none"] {
            assert_eq!(truth_of(&Value::from(word)), None, "{word}");
        }
        assert_eq!(truth_of(&Value::from(vec![true])), None);
        assert_eq!([" yes", "Yes", "1.0"].map(of_exact_word), [None, Some(true), Some(true)]);
        assert_eq!(["", "Off", "0", "2", "no way"].map(of_any_text), [false, false, false, true, true]);
    }

    #[test]
    fn other_languages_have_their_own_words() {
        let yaml = ["yes", "Yes", "YES", "yEs", "On", "NO", "y", "1", "", "é"].map(of_yaml);
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(yaml, [yes, yes, yes, None, yes, no, None, None, None, None]);
        assert_eq!(["Yes", "false", "on", "ask"].map(of_ssh), [yes, no, None, None]);
        assert_eq!(["True", "false", "yes", "1"].map(of_flag), [yes, no, None, None]);
        assert_eq!(["y", " YES ", "yo", ""].map(is_yes), [true, true, false, false]);
    }

    #[test]
    fn a_boolean_is_the_only_choice_that_it_can_be() {
        assert_eq!(choice_of(true, ["no", "yes", "dist"]).as_deref(), Some("yes"));
        assert_eq!(choice_of(false, ["no", "yes", "dist"]).as_deref(), Some("no"));
        assert_eq!([true, false].map(|said| choice_of(said, ["yes", "on"])), [None, None]);
    }

    #[test]
    fn every_listed_word_is_a_boolean() {
        let words: Vec<String> = truth_words().collect();
        assert!(words.iter().all(|word| of_word(word).is_some()), "{words:?}");
        assert!(
            ["no", "No", "t", "1"].iter().all(|word| words.iter().filter(|it| it == word).count() == 1),
            "{words:?}"
        );
    }

    #[test]
    fn an_error_names_what_may_be_written() {
        let error = |text: &str| expect(&Value::from(text), "become", &["accept-new"]).unwrap_err();
        assert_eq!(error("ture"), "become must be true, false or accept-new, not \"ture\" (did you mean \"true\"?)");
        assert_eq!(
            error("acept-new"),
            "become must be true, false or accept-new, not \"acept-new\" (did you mean \"accept-new\"?)"
        );
        assert_eq!(error("fingerprint"), "become must be true, false or accept-new, not \"fingerprint\"");
    }
}
