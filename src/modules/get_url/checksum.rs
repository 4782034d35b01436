//! The `checksum` argument: what it asks for, and lists of digests as `sha256sum` and BSD's tools write them.

use super::algorithm;
use super::fetched::DownloadSource;
use crate::modules::Error;
use crate::remote::Digest;

/// A digest that a file must have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Checksum {
    pub algorithm: Digest,
    /// Lower-case hex.
    pub digest: String,
}

/// The two parts of `sha256:…`.
pub(super) fn split_checksum(text: &str) -> Result<(&str, &str), Error> {
    text.split_once(':').ok_or_else(|| {
        Error::failed(format!("the checksum {text:?} must be an algorithm, a colon and a digest or an address"))
    })
}

impl Checksum {
    /// Characters that are no letters or digits are left out: copied digests may contain blanks.
    pub(super) fn parse_checksum(name: &str, digest: &str) -> Result<Checksum, Error> {
        let algorithm = algorithm(name).ok_or_else(|| Error::Failed {
            message: format!("unknown checksum algorithm {name:?}"),
            hint: Some("use md5, sha1, sha224, sha256, sha384 or sha512".to_owned()),
        })?;
        let digest: String = digest.chars().filter(|c| c.is_alphanumeric() || *c == '_').collect();
        if digest.is_empty() || !digest.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(Error::failed(format!("the checksum {digest:?} is not hexadecimal")));
        }
        Ok(Checksum { algorithm, digest: digest.to_lowercase() })
    }

    /// An error if the digest of the download differs.
    pub(super) fn check_checksum(&self, url: &DownloadSource, found: String) -> Result<(), Error> {
        if self.digest == found {
            return Ok(());
        }
        Err(Error::failed(format!("the download from {url} has the checksum {found}, not {}", self.digest)))
    }
}

/// The digest of a file in a list; a list of one word is the digest itself.
pub(super) fn find_digest<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    let mut words = list.split_whitespace();
    if let (Some(only), None) = (words.next(), words.next()) {
        return Some(only);
    }
    list.lines().filter_map(entry).find(|(path, _)| *path == name).map(|(_, digest)| digest)
}

/// A line's path and digest: `digest  path`, `digest *./path` or `SHA256 (path) = digest`.
fn entry(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_end_matches('\r');
    if let Some((head, digest)) = line.rsplit_once(')') {
        let digest = digest.trim_start().strip_prefix('=').map(str::trim);
        if let (Some(digest), Some((_, path))) = (digest, head.split_once('(')) {
            return Some((path, digest));
        }
    }
    let (digest, path) = line.split_once(char::is_whitespace)?;
    let path = path.trim_start();
    let path = path.strip_prefix('*').unwrap_or(path);
    Some((path.strip_prefix("./").unwrap_or(path), digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_an_algorithm_and_a_digest() {
        let checksum = Checksum::parse_checksum("SHA1", " AB\u{200b}12 ").unwrap();
        assert_eq!((checksum.algorithm, checksum.digest.as_str()), (Digest::Sha1, "ab12"));
        assert!(split_checksum("abcd").unwrap_err().to_string().contains("\"abcd\" must be an algorithm"));
        assert!(
            Checksum::parse_checksum("crc32", "ab")
                .unwrap_err()
                .to_string()
                .contains("unknown checksum algorithm \"crc32\"")
        );
        for wrong in ["", "xyz", "a_b"] {
            assert!(Checksum::parse_checksum("md5", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_of_every_form_are_read() {
        assert_eq!(find_digest("abc\n", "x"), Some("abc"));
        let list = "11  other\n22 *a b.txt\n33  ./x\nSHA256 (y (1)) = 44\r\n55  x\n";
        for (name, digest) in [("a b.txt", "22"), ("x", "33"), ("y (1)", "44")] {
            assert_eq!(find_digest(list, name), Some(digest), "{name}");
        }
        assert_eq!(find_digest(list, "nothing"), None);
        assert_eq!(find_digest("", "x"), None);
    }
}
