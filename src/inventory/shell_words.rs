//! Splits a host line into words as a POSIX shell would: quotes, backslashes, `#` comments.

/// A word with its quotes taken off, and the column (from 1, in characters) where it begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub text: String,
    pub column: usize,
}

/// What is wrong with the line, and the column.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnclosedQuote {
    pub message: &'static str,
    pub column: usize,
}

/// The words of a line. `#` ends the line also in the middle of an unquoted word, as Ansible has it.
pub(super) fn split_shell_words(line: &str) -> Result<Vec<Word>, UnclosedQuote> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut chars = line.chars().zip(1..);
    while let Some((c, column)) = chars.next() {
        match c {
            '#' => break,
            ' ' | '\t' | '\r' => words.extend(word.take()),
            _ => {
                let word = word.get_or_insert_with(|| Word { text: String::new(), column });
                match c {
                    '\'' | '"' => quoted(c, column, &mut chars, &mut word.text)?,
                    '\\' => match chars.next() {
                        Some((c, _)) => word.text.push(c),
                        None => return Err(UnclosedQuote { message: "the text ends with a backslash", column }),
                    },
                    c => word.text.push(c),
                }
            }
        }
    }
    words.extend(word);
    Ok(words)
}

/// The rest of a quoted part. In double quotes a backslash escapes a double quote and itself, nothing else.
fn quoted(
    quote: char,
    column: usize,
    chars: &mut impl Iterator<Item = (char, usize)>,
    text: &mut String,
) -> Result<(), UnclosedQuote> {
    let unfinished = UnclosedQuote { message: "a quote is not closed", column };
    loop {
        match chars.next() {
            None => return Err(unfinished),
            Some((c, _)) if c == quote => return Ok(()),
            Some(('\\', _)) if quote == '"' => match chars.next() {
                None => return Err(unfinished),
                Some((c, _)) => {
                    if c != '"' && c != '\\' {
                        text.push('\\');
                    }
                    text.push(c);
                }
            },
            Some((c, _)) => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{UnclosedQuote, split_shell_words};

    fn texts(line: &str) -> Vec<String> {
        split_shell_words(line).unwrap().into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn quotes_join_and_vanish() {
        assert_eq!(texts(r#"web a="b c" d='e "f"' g=h\ i"#), ["web", "a=b c", r#"d=e "f""#, "g=h i"]);
        assert_eq!(texts(r#"a="x\"y\\z\n" ''"#), [r#"a=x"y\z\n"#, ""]);
    }

    #[test]
    fn a_hash_ends_the_line_even_inside_a_word() {
        assert_eq!(texts("web a=b#c d=e"), ["web", "a=b"]);
        assert_eq!(texts("web a='b#c' # d"), ["web", "a=b#c"]);
    }

    #[test]
    fn words_know_their_columns() {
        let columns: Vec<usize> = split_shell_words("web  a=1\tb=2").unwrap().iter().map(|word| word.column).collect();
        assert_eq!(columns, [1, 6, 10]);
    }

    #[test]
    fn an_open_quotation_is_refused_where_it_opens() {
        assert_eq!(split_shell_words("web a='b"), Err(UnclosedQuote { message: "a quote is not closed", column: 7 }));
        assert!(split_shell_words("web a=\\").is_err());
    }
}
