//! Values of INI inventories: what Python reads as a literal is that (`True`, `8080`, `['a', 'b']`, `80,443`),
//! everything else is text. Knows the values' syntax, not where they are.

mod number;
mod string;

use crate::value::{Origin, Template, Value};

/// Nesting beyond this is text; Python gives up there as well.
const DEEPEST: usize = 100;

/// The value of a text. Strings in it become templates when they have template marks.
pub(super) fn parse_literal(text: &str, origin: Option<&Origin>) -> Value {
    let mut reader = Reader { rest: text.trim_start_matches([' ', '\t']), origin };
    reader.document().unwrap_or_else(|| Template::template_value(text, origin))
}

/// Reads a literal from the left; every function gives None when this is no literal.
struct Reader<'a> {
    rest: &'a str,
    origin: Option<&'a Origin>,
}

impl<'a> Reader<'a> {
    /// One value, or several with commas between them, which make a list; then at most a comment.
    fn document(&mut self) -> Option<Value> {
        let first = self.value(0)?;
        let value = if self.peek() == Some(',') {
            let mut items = vec![first];
            while self.take(',') {
                if matches!(self.peek(), None | Some('#')) {
                    break;
                }
                items.push(self.value(0)?);
            }
            Value::from(items)
        } else {
            first
        };
        matches!(self.peek(), None | Some('#')).then_some(value)
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        match self.peek()? {
            '[' => {
                self.take('[');
                self.items(']', depth).map(|(items, _)| Value::from(items))
            }
            '(' => {
                self.take('(');
                let (mut items, commas) = self.items(')', depth)?;
                // Parentheses around one value are only parentheses.
                if items.len() == 1 && !commas { items.pop() } else { Some(Value::from(items)) }
            }
            '{' => self.braces(depth),
            '0'..='9' | '.' => self.number_or_dots(),
            sign @ ('+' | '-') => {
                self.take(sign);
                self.skip_blanks();
                if !self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
                    return None;
                }
                self.number(sign == '-')
            }
            _ => self.word_or_string(),
        }
    }

    /// The values up to a closing bracket, and whether there was a comma.
    fn items(&mut self, close: char, depth: usize) -> Option<(Vec<Value>, bool)> {
        let (mut items, mut commas) = (Vec::new(), false);
        loop {
            if self.take(close) {
                return Some((items, commas));
            }
            items.push(self.value(depth + 1)?);
            if self.take(',') {
                commas = true;
            } else if self.peek() != Some(close) {
                return None;
            }
        }
    }

    /// A dictionary, or a set, which becomes a list.
    fn braces(&mut self, depth: usize) -> Option<Value> {
        self.take('{');
        if self.take('}') {
            return Some(Value::from_pairs(Vec::<(Value, Value)>::new()));
        }
        let first = self.value(depth + 1)?;
        if !self.take(':') {
            return self.set(first, depth);
        }
        let mut pairs = vec![(first, self.value(depth + 1)?)];
        while self.take(',') {
            if self.peek() == Some('}') {
                break;
            }
            let key = self.value(depth + 1)?;
            if !self.take(':') {
                return None;
            }
            pairs.push((key, self.value(depth + 1)?));
        }
        self.take('}').then(|| Value::from_pairs(pairs))
    }

    fn set(&mut self, first: Value, depth: usize) -> Option<Value> {
        let mut items = vec![first];
        if self.take(',') {
            items.extend(self.items('}', depth)?.0);
        } else if !self.take('}') {
            return None;
        }
        let mut seen: Vec<Value> = Vec::new();
        items.into_iter().for_each(|item| {
            if !seen.contains(&item) {
                seen.push(item);
            }
        });
        Some(Value::from(seen))
    }

    fn number_or_dots(&mut self) -> Option<Value> {
        if let Some(rest) = self.rest.strip_prefix("...") {
            self.rest = rest;
            return Some(Value::from("..."));
        }
        self.number(false)
    }

    fn number(&mut self, negative: bool) -> Option<Value> {
        let (value, rest) = number::read_number(self.rest, negative)?;
        self.rest = rest;
        Some(value)
    }

    fn word_or_string(&mut self) -> Option<Value> {
        if let Some((text, rest)) = string::read_string(self.rest) {
            self.rest = rest;
            return Some(Template::template_value(&text, self.origin));
        }
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let value = match word {
            "True" => Value::from(true),
            "False" => Value::from(false),
            "None" => Value::from(()),
            "set" => {
                self.rest = rest;
                return (self.take('(') && self.take(')')).then(|| Value::from(Vec::<Value>::new()));
            }
            _ => return None,
        };
        self.rest = rest;
        Some(value)
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\x0c']);
    }

    /// The next character that is no blank.
    fn peek(&mut self) -> Option<char> {
        self.skip_blanks();
        self.rest.chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.rest = &self.rest[wanted.len_utf8()..];
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::parse_literal;
    use crate::value::Value;

    fn shown(text: &str) -> String {
        serde_json::to_string(&parse_literal(text, None)).unwrap()
    }

    #[test]
    fn what_python_reads_as_a_literal_is_one() {
        assert_eq!(shown("True"), "true");
        assert_eq!(shown("None"), "null");
        assert_eq!(shown("8080"), "8080");
        assert_eq!(shown("- 1.5"), "-1.5");
        assert_eq!(shown("['a', \"b\", 3,]"), r#"["a","b",3]"#);
        assert_eq!(shown("{'a': [1, (2, 3)], 'b': {}}"), r#"{"a":[1,[2,3]],"b":{}}"#);
        assert_eq!(shown("{1, 2, 1}"), "[1,2]");
        assert_eq!(shown("(7)"), "7");
        assert_eq!(shown("(7,)"), "[7]");
        assert_eq!(shown("()"), "[]");
        assert_eq!(shown("set()"), "[]");
        assert_eq!(shown("'it' \"'s\""), r#""it's""#);
        assert_eq!(shown("80,443"), "[80,443]");
        assert_eq!(shown("5 # five"), "5");
    }

    #[test]
    fn what_python_does_not_read_stays_text() {
        for text in [
            "",
            "yes",
            "true",
            "10.0.0.1",
            "012",
            "1abc",
            "1-2",
            "2026-01-01",
            "--5",
            "-True",
            "a,b",
            "['a'",
            "f'x'",
            "[a]",
            "foo # bar",
            "5 5",
            "{1: }",
            "0x",
            "1__0",
            "/usr/bin",
            "%",
            "# x",
            "'a' b",
        ] {
            assert_eq!(parse_literal(text, None), Value::from(text), "{text:?}");
        }
    }

    #[test]
    fn strings_with_marks_become_templates_also_inside() {
        let value = parse_literal("['{{ a }}', 'b']", None);
        let first = value.get_item_by_index(0).unwrap();
        assert!(first.downcast_object_ref::<crate::value::Template>().is_some());
        assert!(parse_literal("{{ a }}", None).downcast_object_ref::<crate::value::Template>().is_some());
    }

    #[test]
    fn endless_nesting_is_text() {
        let text = "[".repeat(5000);
        assert_eq!(parse_literal(&text, None), Value::from(text));
    }
}
