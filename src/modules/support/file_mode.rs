//! File permissions as people write them: octal, or symbolic as for `chmod`.

/// What a `mode` argument asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::modules) enum Mode {
    Exact(u32),
    /// `u=rw,g+w`: depends on what the mode is now.
    Symbolic(String),
    /// As the source's.
    Preserve,
}

impl Mode {
    /// Reads a coerced argument of kind `Mode`.
    pub(in crate::modules) fn parse_mode(text: &str) -> Mode {
        match u32::from_str_radix(text.strip_prefix("0o").unwrap_or(text), 8) {
            Ok(mode) => Mode::Exact(mode),
            Err(_) if text == "preserve" => Mode::Preserve,
            Err(_) => Mode::Symbolic(text.to_owned()),
        }
    }

    /// The mode that something of mode `now` is to get. `umask` counts where a symbolic mode names no user (`+x`).
    pub(in crate::modules) fn apply_mode(&self, now: u32, directory: bool, umask: u32) -> u32 {
        match self {
            Mode::Exact(mode) => *mode,
            Mode::Preserve => now,
            Mode::Symbolic(text) => {
                text.split(',').fold(now, |now, clause| apply_clause(clause, now, directory, umask))
            }
        }
    }
}

/// `0644`, as Ansible shows a mode.
pub(in crate::modules) fn octal(mode: u32) -> String {
    format!("{mode:04o}")
}

/// One clause, `ug+r-w`: the users, then operators with permissions.
fn apply_clause(clause: &str, now: u32, directory: bool, umask: u32) -> u32 {
    let rest = clause.trim_start_matches(['u', 'g', 'o', 'a']);
    let users = &clause[..clause.len() - rest.len()];
    let masked = if users.is_empty() { umask } else { 0 };
    let users = if users.is_empty() || users.contains('a') { "ugo" } else { users };
    let mut mode = now;
    let mut rest = rest;
    while let Some(operator) = rest.chars().next() {
        let end = rest[1..].find(['+', '-', '=']).map_or(rest.len(), |at| at + 1);
        let permissions = &rest[1..end];
        rest = &rest[end..];
        // A later user of the clause must not see what an earlier one got: `ug=o` copies the old bits to both.
        let before = mode;
        for user in users.chars() {
            let bits = bits_of(user, permissions, before, directory) & !masked;
            mode = match operator {
                '+' => mode | bits,
                '-' => mode & !bits,
                _ => mode & !all_bits(user) | bits,
            };
        }
    }
    mode
}

fn shift(user: char) -> u32 {
    match user {
        'u' => 6,
        'g' => 3,
        _ => 0,
    }
}

/// The bits that `=` clears for a user.
fn all_bits(user: char) -> u32 {
    let special = match user {
        'u' => 0o4000,
        'g' => 0o2000,
        _ => 0o1000,
    };
    special | 0o7 << shift(user)
}

fn bits_of(user: char, permissions: &str, now: u32, directory: bool) -> u32 {
    let bit = |permission| match permission {
        'r' => 0o4 << shift(user),
        'w' => 0o2 << shift(user),
        'x' => 0o1 << shift(user),
        'X' if directory || now & 0o111 != 0 => 0o1 << shift(user),
        's' if user == 'u' => 0o4000,
        's' if user == 'g' => 0o2000,
        't' if user == 'o' => 0o1000,
        'u' | 'g' | 'o' => (now >> shift(permission) & 0o7) << shift(user),
        _ => 0,
    };
    permissions.chars().map(bit).fold(0, |bits, bit| bits | bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(text: &str, now: u32, directory: bool) -> String {
        octal(Mode::parse_mode(text).apply_mode(now, directory, 0o022))
    }

    #[test]
    fn octal_modes_are_taken_as_they_are() {
        assert_eq!(applied("0640", 0o777, false), "0640");
        assert_eq!(applied("1777", 0, true), "1777");
        assert_eq!(applied("0o755", 0, false), "0755");
        assert_eq!(applied("preserve", 0o640, false), "0640");
    }

    #[test]
    fn symbolic_modes_change_what_is_there_as_chmod_does() {
        assert_eq!(applied("u=rwx,g=rx,o=", 0o666, false), "0750");
        assert_eq!(applied("u+x", 0o644, false), "0744");
        assert_eq!(applied("go-w", 0o666, false), "0644");
        assert_eq!(applied("a=r", 0o777, false), "0444");
        assert_eq!(applied("g=u", 0o640, false), "0660");
        assert_eq!(applied("ug=o", 0o614, false), "0444");
        assert_eq!(applied("u+s,g+s,o+t", 0o755, false), "7755");
        assert_eq!(applied("u=rw-x+x", 0o000, false), "0700");
    }

    #[test]
    fn a_large_x_is_for_directories_and_what_someone_may_execute() {
        assert_eq!(applied("a+X", 0o644, false), "0644");
        assert_eq!(applied("a+X", 0o744, false), "0755");
        assert_eq!(applied("a+X", 0o644, true), "0755");
    }

    #[test]
    fn a_clause_without_users_respects_the_umask() {
        assert_eq!(applied("+w", 0o444, false), "0644");
        assert_eq!(applied("a+w", 0o444, false), "0666");
    }
}
