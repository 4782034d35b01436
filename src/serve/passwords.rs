//! Passwords of accounts: which are good enough, and their hashes.

use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};

/// The setting of the OWASP Password Storage Cheat Sheet for argon2id: 19 MiB of memory, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// OWASP ASVS 5.0, 6.2.1 and 6.2.9: 15 characters, and no limit that a person meets.
pub(super) const SHORTEST_PASSWORD: usize = 15;
pub(super) const LONGEST_PASSWORD: usize = 1024;

/// How many characters must be left when all that is well known is taken out.
const FEWEST_OWN: usize = 8;

/// What common passwords are made of. Our own list: the words that stand at the top of every published list of leaked passwords (of Have I
/// Been Pwned, the NCSC and SplashData), the phrases that people take for long ones, and what this program is about.
const KNOWN_WORDS: &[&str] = &[
    "correcthorsebatterystaple",
    "thequickbrownfoxjumpsoverthelazydog",
    "maytheforcebewithyou",
    "tobeornottobe",
    "iloveyou",
    "letmein",
    "changeme",
    "changeit",
    "trustno1",
    "passphrase",
    "password",
    "passwort",
    "passwd",
    "pass",
    "welcome",
    "administrator",
    "admin",
    "superuser",
    "sysadmin",
    "root",
    "user",
    "default",
    "secret",
    "private",
    "master",
    "login",
    "access",
    "test",
    "demo",
    "guest",
    "monkey",
    "dragon",
    "football",
    "baseball",
    "superman",
    "batman",
    "sunshine",
    "princess",
    "shadow",
    "michael",
    "jordan",
    "computer",
    "internet",
    "server",
    "cluster",
    "production",
    "staging",
    "company",
    "spring",
    "summer",
    "autumn",
    "winter",
    "windlass",
    "karmada",
    "kubernetes",
    "etcd",
    "woaini",
    "mima",
];

/// Rows of keyboards, and what people count in; forwards and backwards.
const SEQUENCES: &[&str] = &[
    "abcdefghijklmnopqrstuvwxyz",
    "01234567890123456789",
    "qwertyuiop",
    "qwertzuiop",
    "azertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
    "1q2w3e4r5t6y7u8i9o0p",
];

/// The shortest part of a sequence that counts as one.
const SHORTEST_SEQUENCE: usize = 3;

/// What is wrong with a password for an account of this name. None: it can be used. Any characters may be in it.
pub fn password_fault(name: &str, password: &str) -> Option<&'static str> {
    let length = password.chars().count();
    if length < SHORTEST_PASSWORD {
        return Some("a password has at least 15 characters");
    }
    if length > LONGEST_PASSWORD {
        return Some("a password has at most 1024 characters");
    }
    let lower: Vec<char> = password.to_lowercase().chars().collect();
    if repeated_part(&lower).len() < SHORTEST_PASSWORD {
        return Some("the password repeats a short text");
    }
    match own_characters(name, &lower) < FEWEST_OWN {
        true => Some(
            "the password is made of common passwords, sequences of keys or the name: choose one that others do not",
        ),
        false => None,
    }
}

/// What a text repeats: `abab` is `ab`, and `abcd` itself.
fn repeated_part(text: &[char]) -> &[char] {
    let repeats = |length: &usize| text.iter().zip(&text[*length..]).all(|(before, after)| before == after);
    let length = (1..text.len()).find(repeats).unwrap_or(text.len());
    &text[..length]
}

/// How many different letters and digits are left without all that is well known.
fn own_characters(name: &str, lower: &[char]) -> usize {
    let plain: Vec<char> =
        lower.iter().copied().filter(|letter| !letter.is_ascii() || letter.is_ascii_alphanumeric()).collect();
    let (mut at, mut own) = (0, 0);
    while at < plain.len() {
        let rest = &plain[at..];
        let known = known_length(name, rest);
        at += known.max(1);
        // The same character again is no secret either.
        let repeats = at >= 2 && known == 0 && plain[at - 1] == plain[at - 2];
        own += usize::from(known == 0 && !repeats);
    }
    own
}

/// The length of what is well known at the start of a text.
fn known_length(name: &str, text: &[char]) -> usize {
    let starts_with = |word: &str| {
        let mut letters = text.iter();
        word.chars().all(|letter| letters.next().is_some_and(|found| spelled(*found) == spelled(letter)))
    };
    let name: String = name.to_lowercase().chars().filter(|letter| letter.is_alphanumeric()).collect();
    let named = if starts_with(&name) { name.chars().count() } else { 0 };
    let words = KNOWN_WORDS.iter().filter(|word| starts_with(word)).map(|word| word.len());
    let sequences = SEQUENCES.iter().map(|sequence| {
        let forwards: Vec<char> = sequence.chars().collect();
        let backwards: Vec<char> = sequence.chars().rev().collect();
        common_run(&forwards, text).max(common_run(&backwards, text))
    });
    let sequence = sequences.max().filter(|length| *length >= SHORTEST_SEQUENCE).unwrap_or(0);
    words.max().unwrap_or(0).max(sequence).max(named)
}

/// How long the longest part of a sequence is that a text starts with.
fn common_run(sequence: &[char], text: &[char]) -> usize {
    let from = |at: usize| sequence[at..].iter().zip(text).take_while(|(one, other)| one == other).count();
    (0..sequence.len()).map(from).max().unwrap_or(0)
}

/// Digits and signs that people write for letters.
fn spelled(letter: char) -> char {
    match letter {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' => 'a',
        '5' => 's',
        '7' => 't',
        other => other,
    }
}

fn hasher() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("a setting that argon2 allows");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// The hash of a password, with its salt and setting. Takes a while.
///
/// # Errors
/// There is no memory for it.
pub fn hash_password(password: &str) -> Result<String, argon2::password_hash::Error> {
    let hash = hasher().hash_password_with_salt(password.as_bytes(), &rand::random::<[u8; 16]>())?;
    Ok(hash.to_string())
}

/// The hash of a password that nobody knows: for names without an account, so that they take as long as others.
pub(super) fn hash_of_nobody() -> String {
    // Its salt and digest mean nothing.
    format!(
        "$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}$d2luZGxhc3M0bm9ib2R5$BYzyhShWZIvvAGpXf2HGPQ2QnuFkWcwaOBUqOnL9lYk"
    )
}

/// Whether a hash is that of a password. Takes as long as hashing does.
pub(super) fn is_password(password: &str, hash: &str) -> bool {
    hasher().verify_password(password.as_bytes(), hash).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_says_its_setting_and_fits_one_password() {
        let password = "crème brûlée 火锅 at nine";
        let hash = hash_password(password).unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(is_password(password, &hash));
        assert!(!is_password("crème brûlée 火锅 at ten!", &hash) && !is_password("", &hash));
        assert_ne!(hash, hash_password(password).unwrap(), "without a salt");
        let nobody = hash_of_nobody();
        assert!(!is_password(password, &nobody));
    }

    /// A hash that cannot be read, or has another setting, would be refused sooner, and show which names have an account.
    #[test]
    fn the_hash_of_nobody_takes_as_long_as_others() {
        use argon2::password_hash::{Error, phc::PasswordHash};
        let (known, nobody) = (hash_password("crème brûlée at nine").unwrap(), hash_of_nobody());
        let parsed = [&known, &nobody].map(|hash| PasswordHash::new(hash).unwrap());
        let setting = |hash: &PasswordHash| (hash.algorithm.to_string(), hash.version, hash.params.to_string());
        assert_eq!(setting(&parsed[0]), setting(&parsed[1]));
        let length = |hash: &PasswordHash| hash.hash.as_ref().unwrap().len();
        assert_eq!(length(&parsed[0]), length(&parsed[1]));
        let refused = hasher().verify_password(b"wrong horse at nine", nobody.as_str()).unwrap_err();
        assert!(matches!(refused, Error::PasswordInvalid), "{refused}");
    }

    #[test]
    fn long_random_or_own_passwords_are_accepted() {
        for password in [
            "seven green boats wait",
            "crème brûlée 火锅 at nine",
            "xK9#mQ2$vL7!pR4",
            "    spaces count too, at both ends    ",
            "我的猫每天早上六点半叫我起床吃饭",
            "my password manager wrote this: zebra",
            "🦀🐢🦊🐙🦉🐝🦋🐳🦄🐞🦕🐌🦩🐿🦔",
        ] {
            assert_eq!(password_fault("alice", password), None, "{password}");
        }
    }

    #[test]
    fn short_and_common_passwords_and_the_name_are_refused() {
        let cases = [
            ("fourteen chars", "at least 15"),
            ("日本語のパスワード", "at least 15"),
            ("aaaaaaaaaaaaaaaaaaaa", "repeats"),
            ("passwordpassword", "repeats"),
            ("abc123abc123abc123", "repeats"),
            ("Password123456789", "common"),
            ("P4ssw0rd-P4ssw0rd!2026", "common"),
            ("qwertyuiopasdfghjkl", "common"),
            ("1qaz2wsx3edc4rfv", "common"),
            ("correct horse battery staple", "common"),
            ("abcdefghijklmnopq", "common"),
            ("zyxwvutsrqponmlk", "common"),
            ("123456789012345", "repeats"),
            ("alice.alice.alice.2026", "common"),
            ("alice-windlass-admin", "common"),
            ("Kubernetes!Karmada!1", "common"),
            ("aaaaaaabbbbbbbccccccc", "common"),
        ];
        for (password, why) in cases {
            let fault = password_fault("alice", password).unwrap_or("none");
            assert!(fault.contains(why), "{password}: {fault}");
        }
        assert!(password_fault("alice", &"long words differ ".repeat(80)).unwrap().contains("at most 1024"));
    }
}
