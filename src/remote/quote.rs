//! Text for the shell on the host: the one place where arguments, paths and bytes become shell words.

use std::fmt::Write;

use super::Error;

/// One word for a POSIX shell, whatever is in it. A NUL byte cannot be in a word; [`quote_word`] is for text checked by
/// [`quote_path`] or [`checked`], or known to have none.
pub(super) fn quote_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A path as a word that no tool takes for an option.
pub(super) fn quote_path(path: &str) -> Result<String, Error> {
    if path.is_empty() {
        return Err(Error::Refused { what: "use an empty path".into(), reason: "a path has a name".into() });
    }
    let path = checked(path, "path")?;
    Ok(if path.starts_with('-') { quote_word(&format!("./{path}")) } else { quote_word(path) })
}

/// The text, if a program can be given it as an argument.
pub(super) fn checked<'a>(text: &'a str, kind: &str) -> Result<&'a str, Error> {
    if text.contains('\0') {
        let what = format!("use the {kind} {text:?}");
        return Err(Error::Refused { what, reason: "it must not contain a NUL byte".into() });
    }
    Ok(text)
}

/// Words of a command line.
pub(super) fn quote_arguments(argv: &[String]) -> Result<String, Error> {
    let mut line = String::new();
    for argument in argv {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&quote_word(checked(argument, "argument")?));
    }
    Ok(line)
}

/// `export A='x' B='y'`, or nothing. A name that no shell takes is an error.
pub(super) fn exports<'a>(variables: impl IntoIterator<Item = (&'a String, &'a String)>) -> Result<String, Error> {
    let mut line = String::new();
    for (name, value) in variables {
        let mut letters = name.chars();
        let good = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !good {
            let what = format!("set the environment variable {name:?}");
            return Err(Error::Refused { what, reason: "a name may contain only letters, digits and _".into() });
        }
        checked(value, &format!("value of the environment variable {name}, which is"))
            .map_err(|_| Error::Refused {
                what: format!("set the environment variable {name}"),
                reason: "it must not contain a NUL byte".into(),
            })
            .map(|value| {
                write!(line, " {name}={}", quote_word(value)).expect("a String takes any text");
            })?;
    }
    Ok(if line.is_empty() { line } else { format!("export{line}") })
}

/// Shell text that prints exactly these bytes, with the shell's own `printf`: nothing shows in a process list.
pub(super) fn printf_script(content: &[u8]) -> String {
    // Where printf is a program after all, an argument must stay well below the kernel's limit of 128 KiB.
    const CHUNK: usize = 8 * 1024;
    let mut text = String::with_capacity(content.len() + content.len() / 8 + 16);
    for (i, chunk) in content.chunks(CHUNK).enumerate() {
        text.push_str(if i == 0 { "printf '" } else { " && printf '" });
        for &byte in chunk {
            match byte {
                b'%' => text.push_str("%%"),
                // At the beginning it would be an option.
                b'-' if text.ends_with("printf '") => text.push_str("\\055"),
                b'\n' | b'\t' | b' '..=b'~' if byte != b'\\' && byte != b'\'' => text.push(char::from(byte)),
                _ => {
                    write!(text, "\\{byte:03o}").expect("a String takes any text");
                }
            }
        }
        text.push('\'');
    }
    if text.is_empty() { ":".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn shell(line: &str) -> Vec<u8> {
        std::process::Command::new("/bin/sh").args(["-c", line]).output().unwrap().stdout
    }

    #[test]
    fn words_come_out_as_they_went_in() {
        for text in ["", "a", "it's", "a b\n'\"$HOME`id`\\", "*", "~", "ä€", "a=b", "!x", "#no"] {
            assert_eq!(shell(&format!("printf %s {}", quote_word(text))), text.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn printed_bytes_are_exact() {
        let all: Vec<u8> = (0..=255u8).cycle().take(20_000).collect();
        for shells in ["dash", "bash --posix", "busybox sh"] {
            let script = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(script.path(), printf_script(&all)).unwrap();
            let line = format!("{shells} {}", script.path().display());
            assert_eq!(shell(&line), all, "{shells}");
        }
        assert_eq!(shell(&printf_script(b"")), b"");
        assert_eq!(shell(&printf_script(b"-x")), b"-x");
        assert_eq!(shell(&printf_script(b"100%s\\n'x'")), b"100%s\\n'x'");
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        assert!(quote_path("").is_err());
        assert!(quote_path("a\0b").is_err());
        assert_eq!(quote_path("-rf").unwrap(), "./-rf");
        let pair = |name: &str, value: &str| exports([(&name.to_owned(), &value.to_owned())]);
        assert_eq!(pair("A", "it's").unwrap(), r"export A='it'\''s'");
        assert!(pair("A B", "x").is_err());
        assert!(!pair("PASSWORD", "se\0cret").unwrap_err().to_string().contains("cret"));
    }
}
