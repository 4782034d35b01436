//! The documentation of filters, tests, lookups and functions for `windlass doc`, which is next to each of them.

pub use super::environment::{filter_words as filters, test_words as tests};
use super::{functions, lookups};
use crate::value::doc::LanguageItem;

/// All lookups, sorted by name.
pub fn lookups() -> Vec<&'static LanguageItem> {
    lookups::LOOKUPS.iter().map(|(word, _)| word).collect()
}

/// All functions, sorted by name.
pub fn functions() -> Vec<&'static LanguageItem> {
    functions::FUNCTIONS.iter().map(|(word, _)| word).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Scope, Templar, environment};
    use super::*;
    use crate::value::Template;

    fn all() -> Vec<&'static LanguageItem> {
        [filters(), super::tests(), lookups(), functions()].concat()
    }

    #[test]
    fn every_word_is_explained_with_an_example_that_has_it() {
        for word in all() {
            assert!(word.about.ends_with('.') && word.about.len() > 8, "{}: {:?}", word.name, word.about);
            assert!(word.example.contains(word.name), "{}: {:?}", word.name, word.example);
        }
    }

    #[test]
    fn every_example_gives_what_is_said() {
        let templar = Templar::new();
        let mut wrong = Vec::new();
        for word in all().into_iter().filter(|word| !word.gives.is_empty()) {
            let template = Template::template_value(&format!("{{{{ {} }}}}", word.example), None);
            match templar.render_string(&template, &Scope::default()) {
                Ok(given) if given == word.gives => {}
                other => wrong.push(format!("{}: {} gives {other:?}, not {:?}", word.name, word.example, word.gives)),
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_example_is_a_template_without_mistakes() {
        for word in all() {
            Templar::new().check_expression(word.example, None).unwrap_or_else(|e| panic!("{}: {e}", word.name));
        }
    }

    #[test]
    fn every_function_of_the_engine_is_documented() {
        let functions = functions();
        for (name, _) in environment::new().globals() {
            assert!(functions.iter().any(|word| word.name == name), "{name}");
        }
    }
}
