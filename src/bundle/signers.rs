//! Whose signatures count: OpenSSH's file of allowed signers, and a list of revoked keys.

use std::path::Path;

use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use russh::keys::ssh_key::public::KeyData;
use russh::keys::{HashAlg, PublicKey};

use super::Error;
use super::signature::{NAMESPACE, unfit};
use crate::value::ProcessEnvironment;
use crate::value::pattern::matches_list;

/// Such a file is not larger than this.
const LARGEST: u64 = 4 << 20;
/// How OpenSSH's compiled lists of revoked keys begin.
const COMPILED: &[u8] = b"SSHKRL\n\0";

/// The lines of a file of allowed signers.
#[derive(Debug)]
pub(super) struct Signers(Vec<Signer>);

/// One line: a key, who has it, and what it may sign.
#[derive(Debug)]
struct Signer {
    line: usize,
    /// As written: patterns with commas between them.
    principals: String,
    namespaces: Option<String>,
    valid_after: Option<DateTime<Utc>>,
    valid_before: Option<DateTime<Utc>>,
    key: KeyData,
}

impl Signers {
    /// Reads the file. Refused: it has a line that is not understood, or none at all.
    pub(super) fn read_signers(path: &Path, around: &ProcessEnvironment) -> Result<Signers, Error> {
        let text = read_text(path, around)?;
        let mut signers = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let signer = Signer::parse(index + 1, line);
            signers.push(signer.map_err(|why| Error::new(format!("{}:{}: {why}", path.display(), index + 1)))?);
        }
        match signers.is_empty() {
            true => Err(Error::new(format!("{} names no signers", path.display()))),
            false => Ok(Signers(signers)),
        }
    }

    /// Who signs with a key now; why nobody does. `principals`: only these count, if there are some.
    pub(super) fn who(&self, key: &KeyData, principals: &[String], now: DateTime<Utc>) -> Result<&str, String> {
        let mut why = "the key is not that of an allowed signer".to_owned();
        for signer in self.0.iter().filter(|signer| signer.key == *key) {
            match signer.may_sign(principals, now) {
                Ok(()) => return Ok(&signer.principals),
                Err(reason) => why = reason,
            }
        }
        Err(why)
    }
}

impl Signer {
    fn parse(line: usize, text: &str) -> Result<Signer, String> {
        let (principals, mut rest) = word(text)?;
        let (mut namespaces, mut valid_after, mut valid_before) = (None, None, None);
        if !is_kind_of_key(rest) {
            let (options, key) = word(rest)?;
            rest = key;
            for option in split_outside_quotes(options, ',') {
                let (name, value) = match option.split_once('=') {
                    Some((name, value)) => (name.to_ascii_lowercase(), Some(unquoted(value))),
                    None => (option.to_ascii_lowercase(), None),
                };
                let twice = match (name.as_str(), value) {
                    ("namespaces", Some(list)) => namespaces.replace(list.to_owned()).is_some(),
                    ("valid-after", Some(text)) => valid_after.replace(time(text)?).is_some(),
                    ("valid-before", Some(text)) => valid_before.replace(time(text)?).is_some(),
                    ("cert-authority", None) => {
                        return Err("cert-authority is not supported: name each signer's own key".to_owned());
                    }
                    _ => return Err(format!("unknown option {option:?}")),
                };
                if twice {
                    return Err(format!("the option {name} is there twice"));
                }
            }
        }
        let key = PublicKey::from_openssh(rest).map_err(|_| "expected PRINCIPALS [OPTIONS] KEY".to_owned())?;
        let key = key.key_data().clone();
        if let Some(why) = unfit(&key) {
            return Err(why);
        }
        Ok(Signer { line, principals: unquoted(principals).to_owned(), namespaces, valid_after, valid_before, key })
    }

    fn may_sign(&self, principals: &[String], now: DateTime<Utc>) -> Result<(), String> {
        let line = self.line;
        if self.namespaces.as_ref().is_some_and(|list| !matches_list(list, NAMESPACE)) {
            return Err(format!("the signer may not sign bundles (namespaces in line {line})"));
        }
        if !principals.is_empty() && !principals.iter().any(|wanted| matches_list(&self.principals, wanted)) {
            return Err(format!("the signer is {}, not {}", self.principals, principals.join(" or ")));
        }
        let shown = |time: DateTime<Utc>| time.format("%Y-%m-%dT%H:%M:%SZ");
        match (self.valid_after, self.valid_before) {
            (Some(after), _) if now < after => Err(format!("the key counts from {} on (line {line})", shown(after))),
            (_, Some(before)) if now > before => Err(format!("the key counted until {} (line {line})", shown(before))),
            _ => Ok(()),
        }
    }
}

/// Keys that do not count any more.
#[derive(Debug, Default)]
pub(super) struct RevokedKeys {
    keys: Vec<KeyData>,
    /// `SHA256:...`
    fingerprints: Vec<String>,
}

impl RevokedKeys {
    /// Reads the file: a public key or a fingerprint in each line. Refused: a line is something else.
    pub(super) fn read_revoked(path: &Path, around: &ProcessEnvironment) -> Result<RevokedKeys, Error> {
        let text = read_text(path, around)?;
        let mut revoked = RevokedKeys::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let first = line.split_ascii_whitespace().next().unwrap_or_default();
            if is_fingerprint(first) {
                revoked.fingerprints.push(first.to_owned());
                continue;
            }
            let key = PublicKey::from_openssh(line).map_err(|_| {
                let place = format!("{}:{}", path.display(), index + 1);
                Error::new(format!("{place}: expected a public key or SHA256:FINGERPRINT"))
            })?;
            revoked.keys.push(key.key_data().clone());
        }
        Ok(revoked)
    }

    pub(super) fn has(&self, key: &KeyData) -> bool {
        let fingerprint = key.fingerprint(HashAlg::Sha256).to_string();
        self.keys.contains(key) || self.fingerprints.contains(&fingerprint)
    }
}

/// 43 characters of base 64 are 32 bytes.
fn is_fingerprint(text: &str) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    text.strip_prefix("SHA256:").is_some_and(|rest| rest.len() == 43 && rest.bytes().all(is_base64))
}

/// Reads a file that decides what windlass trusts.
fn read_text(path: &Path, around: &ProcessEnvironment) -> Result<String, Error> {
    let cannot = |error: std::io::Error| Error::io("read", path, &error);
    if !path.metadata().map_err(cannot)?.is_file() {
        return Err(cannot(std::io::Error::other("it is not a regular file")));
    }
    if let Some(doubt) = around.doubt_about(path) {
        return Err(Error::new(format!("refusing to rely on {}: {doubt}", path.display())));
    }
    let mut content = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, LARGEST + 1), &mut content).map_err(cannot)?;
    if content.len() as u64 > LARGEST {
        return Err(Error::new(format!("{} is too large", path.display())));
    }
    if content.starts_with(COMPILED) {
        return Err(Error::new(format!("{} is a compiled list of revoked keys", path.display()))
            .hint("write the public keys or their fingerprints into a text file, one in each line"));
    }
    String::from_utf8(content).map_err(|_| Error::new(format!("{} is not text", path.display())))
}

/// The first word, with quotes as they are, and what follows.
fn word(text: &str) -> Result<(&str, &str), String> {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_ascii_whitespace() && !quoted => return Ok((&text[..at], text[at..].trim_start())),
            _ => {}
        }
    }
    Err(if quoted { "a quote is not closed".to_owned() } else { "expected PRINCIPALS [OPTIONS] KEY".to_owned() })
}

fn split_outside_quotes(text: &str, mark: char) -> Vec<&str> {
    let mut quoted = false;
    text.split(|c: char| {
        quoted ^= c == '"';
        c == mark && !quoted
    })
    .collect()
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text)
}

/// Whether a text begins with the name of a kind of key, and not with options.
fn is_kind_of_key(text: &str) -> bool {
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    ["ssh-", "ecdsa-", "sk-", "webauthn-"].iter().any(|kind| first.starts_with(kind))
}

/// `YYYYMMDD`, `YYYYMMDDHHMM` or `YYYYMMDDHHMMSS`; with a `Z` in UTC, without one in local time.
fn time(text: &str) -> Result<DateTime<Utc>, String> {
    let wrong = || format!("{text:?} is not a time: expected YYYYMMDD[HHMM[SS]][Z]");
    let utc = text.strip_suffix(['Z', 'z']).or_else(|| text.strip_suffix("UTC"));
    let digits = utc.unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let parsed = match digits.len() {
        8 => NaiveDate::parse_from_str(digits, "%Y%m%d").ok().map(|date| date.and_time(NaiveTime::MIN)),
        12 => NaiveDateTime::parse_from_str(&format!("{digits}00"), "%Y%m%d%H%M%S").ok(),
        14 => NaiveDateTime::parse_from_str(digits, "%Y%m%d%H%M%S").ok(),
        _ => None,
    };
    let parsed = parsed.ok_or_else(wrong)?;
    match utc {
        Some(_) => Ok(parsed.and_utc()),
        // A time that a change of the clock skips is none.
        None => Local.from_local_datetime(&parsed).earliest().map(|time| time.to_utc()).ok_or_else(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPKSUTyz1HwHReFVvD5obVsALAgJRNarH4TRpNePnAS";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE3m0mUkAy09vKkPMmbVtoLTx4DZYUyQuhzRs7CUpfwR";

    fn key(text: &str) -> KeyData {
        PublicKey::from_openssh(text).unwrap().key_data().clone()
    }

    fn read(text: &str) -> Result<Signers, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let read = Signers::read_signers(file.path(), &ProcessEnvironment::default());
        read.map_err(|error| error.message.replace(&file.path().display().to_string(), "FILE"))
    }

    fn who(text: &str, principals: &[&str], now: &str) -> Result<String, String> {
        let principals: Vec<String> = principals.iter().map(|one| (*one).to_owned()).collect();
        let signers = read(text)?;
        signers.who(&key(KEY), &principals, time(now).unwrap()).map(str::to_owned)
    }

    #[test]
    fn a_line_says_who_may_sign_what_and_when() {
        let good = |text: &str| assert_eq!(who(text, &[], "20260601Z").as_deref(), Ok("me@x"), "{text}");
        good(&format!("me@x {KEY}\n"));
        good(&format!("# people\n\n  me@x   {KEY} a comment\n"));
        good(&format!("me@x namespaces=\"git,windlass-*\" {KEY}"));
        good(&format!("me@x valid-after=\"20260101\",valid-before=\"202612312359Z\" {KEY}"));
        good(&format!("\"me@x\" Valid-Before=20260601000000Z {KEY}"));
        // The first line that fits counts.
        good(&format!("old namespaces=\"git\" {KEY}\nme@x {KEY}"));
        let bad = |text: &str, why: &str| assert_eq!(who(text, &[], "20260601Z").unwrap_err(), why, "{text}");
        bad(&format!("me@x {OTHER}"), "the key is not that of an allowed signer");
        bad(&format!("me@x namespaces=\"git\" {KEY}"), "the signer may not sign bundles (namespaces in line 1)");
        bad(
            &format!("me@x namespaces=\"*,!windlass-bundle\" {KEY}"),
            "the signer may not sign bundles (namespaces in line 1)",
        );
        bad(&format!("me@x valid-after=\"20260602Z\" {KEY}"), "the key counts from 2026-06-02T00:00:00Z on (line 1)");
        bad(&format!("me@x valid-before=20260531235959Z {KEY}"), "the key counted until 2026-05-31T23:59:59Z (line 1)");
    }

    #[test]
    fn only_wanted_principals_count() {
        let line = format!("*@release.example,!eve@release.example {KEY}");
        assert!(who(&line, &["bob@release.example"], "20260601Z").is_ok());
        assert!(who(&line, &["eve@release.example", "x"], "20260601Z").unwrap_err().starts_with("the signer is *@"));
        assert!(who(&line, &["eve@release.example", "bob@release.example"], "20260601Z").is_ok());
    }

    #[test]
    fn a_file_with_a_line_that_is_not_understood_is_refused_as_a_whole() {
        for (line, why) in [
            (format!("me cert-authority {OTHER}"), "cert-authority is not supported: name each signer's own key"),
            (format!("me no-touch {OTHER}"), "unknown option \"no-touch\""),
            (format!("me namespaces {OTHER}"), "unknown option \"namespaces\""),
            (format!("me namespaces=\"a\",namespaces=\"b\" {OTHER}"), "the option namespaces is there twice"),
            (format!("me namespaces=\"a {OTHER}"), "a quote is not closed"),
            (
                format!("me valid-before=\"20261301Z\" {OTHER}"),
                "\"20261301Z\" is not a time: expected YYYYMMDD[HHMM[SS]][Z]",
            ),
            (
                format!("me valid-before=\"tomorrow\" {OTHER}"),
                "\"tomorrow\" is not a time: expected YYYYMMDD[HHMM[SS]][Z]",
            ),
            (OTHER.to_owned(), "expected PRINCIPALS [OPTIONS] KEY"),
            ("me ssh-ed25519 AAAA".to_owned(), "expected PRINCIPALS [OPTIONS] KEY"),
            (
                "me ssh-future AAAAC3NzaC1lZDI1NTE5AAAAIE3m0mUkAy09vKkPMmbVtoLTx4DZYUyQuhzRs7CUpfwR".to_owned(),
                "expected PRINCIPALS [OPTIONS] KEY",
            ),
            ("me".to_owned(), "expected PRINCIPALS [OPTIONS] KEY"),
        ] {
            let text = format!("me {KEY}\n{line}\n");
            let refused = read(&text).unwrap_err();
            assert_eq!(refused, format!("FILE:2: {why}"), "{line}");
        }
        assert_eq!(read("# nobody\n").unwrap_err(), "FILE names no signers");
        assert!(read("me ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDT").is_err());
    }

    #[test]
    fn files_that_others_can_write_to_are_not_relied_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("signers");
        let refused = |path: &Path| Signers::read_signers(path, &ProcessEnvironment::default()).unwrap_err().message;
        assert!(refused(&path).contains("No such file"));
        assert!(refused(directory.path()).contains("not a regular file"));
        std::fs::write(&path, format!("me {KEY}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        assert!(refused(&path).contains("every user can write to"), "{}", refused(&path));
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        std::fs::write(&path, b"me \xff\n").unwrap();
        assert!(refused(&path).ends_with("is not text"));
    }

    #[test]
    fn revoked_keys_are_listed_whole_or_by_fingerprint() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("revoked");
        let fingerprint = key(OTHER).fingerprint(HashAlg::Sha256).to_string();
        std::fs::write(&path, format!("# lost\n{KEY} laptop\n")).unwrap();
        let around = ProcessEnvironment::default();
        let revoked = RevokedKeys::read_revoked(&path, &around).unwrap();
        assert!(revoked.has(&key(KEY)) && !revoked.has(&key(OTHER)));
        std::fs::write(&path, format!("{fingerprint} the other\n")).unwrap();
        let revoked = RevokedKeys::read_revoked(&path, &around).unwrap();
        assert!(!revoked.has(&key(KEY)) && revoked.has(&key(OTHER)));
        for (bad, why) in [
            (b"SHA256:short\n".as_slice(), "expected a public key or SHA256:FINGERPRINT"),
            (b"MD5:aa:bb\n", "expected a public key or SHA256:FINGERPRINT"),
            (b"SSHKRL\n\0\0\0\0\x01", "is a compiled list of revoked keys"),
        ] {
            std::fs::write(&path, bad).unwrap();
            let refused = RevokedKeys::read_revoked(&path, &around).unwrap_err().message;
            assert!(refused.ends_with(why), "{refused}");
        }
    }
}
