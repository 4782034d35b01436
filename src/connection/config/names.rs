//! Which host and user names are accepted: they become words of a shell in `ProxyCommand`, as in OpenSSH, so what a
//! shell would understand is refused before any of them is used.

/// What a shell would not take as part of a word.
const OF_SHELLS: &str = "'`\";&<>|(){}";

/// Checks the name or address of a host. `what` says whose it is in the error.
pub(super) fn host(name: &str, what: &str) -> Result<(), String> {
    let bad = |c: char| OF_SHELLS.contains(c) || matches!(c, '$' | '\\') || c.is_whitespace() || c.is_control();
    check(name, what, name.chars().find(|c| bad(*c)), "a host name")
}

/// Checks a user to log in as. A blank and a `$` or a backslash inside are fine: other systems have such users.
pub(super) fn user(name: &str, what: &str) -> Result<(), String> {
    let mut bad = name.chars().find(|c| OF_SHELLS.contains(*c) || c.is_control());
    if bad.is_none() && name.ends_with('\\') {
        bad = Some('\\');
    }
    if name.split(char::is_whitespace).skip(1).any(|word| word.starts_with('-')) {
        return Err(format!(
            "{what} {name:?} has a word that starts with a dash, which programs would read as an option"
        ));
    }
    check(name, what, bad, "a user name")
}

fn check(name: &str, what: &str, bad: Option<char>, kind: &str) -> Result<(), String> {
    match bad {
        _ if name.starts_with('-') => {
            Err(format!("{what} {name:?} starts with a dash, which programs would read as an option"))
        }
        Some(bad) => Err(format!("{what} {name:?} contains {bad:?}, which is not allowed in {kind}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_understand_is_refused() {
        for name in
            ["$(id)", "a;b", "a b", "`id`", "a|b", "a\nb", "-oProxyCommand=x", "a\\b", "a'b", "${IFS}", "a\u{7}"]
        {
            assert!(host(name, "ansible_host").is_err(), "{name}");
        }
        for name in ["$(id)", "a;b", "`id`", "-l", "a\nb", "a -oX", "end\\", "a\"b", "a{b}", "a\tb"] {
            assert!(user(name, "ansible_user").is_err(), "{name}");
        }
        let error = host("$(touch x)", "ansible_host").unwrap_err();
        assert_eq!(error, "ansible_host \"$(touch x)\" contains '$', which is not allowed in a host name");
    }

    #[test]
    fn names_that_are_in_use_pass() {
        for name in ["web1", "10.0.0.1", "fe80::1%eth0", "[::1]", "team/web_1", "münchen.example", "a~b"] {
            host(name, "ansible_host").unwrap();
        }
        for name in ["root", "DOMAIN\\user", "machine$", "first last", "me@example.com", "a-b"] {
            user(name, "ansible_user").unwrap();
        }
    }
}
