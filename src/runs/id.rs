//! The id of a run: a ULID in lower case. Ids sort by the time at which runs started.

use std::fmt;
use std::time::SystemTime;

/// Crockford's base 32.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LENGTH: usize = 26;

/// 48 bits of milliseconds since 1970, and 80 random ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u128);

impl RunId {
    /// The id of a run that starts at this moment.
    pub fn new_at(at: SystemTime) -> RunId {
        let millis = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        RunId((millis << 80) | (rand::random::<u128>() >> 48))
    }

    /// The id that a text is, in either case.
    pub fn parse_id(text: &str) -> Option<RunId> {
        // The first of 26 digits has three bits only.
        if text.len() != LENGTH || text.as_bytes().first().is_none_or(|first| *first > b'7') {
            return None;
        }
        let digit = |byte: u8| DIGITS.iter().position(|digit| *digit == byte.to_ascii_lowercase());
        text.bytes().try_fold(0u128, |id, byte| Some(id << 5 | digit(byte)? as u128)).map(RunId)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |place: usize| char::from(DIGITS[(self.0 >> (5 * place)) as usize & 31]);
        (0..LENGTH).rev().try_for_each(|place| fmt::Write::write_char(f, digit(place)))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for RunId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written_and_ids_sort_by_time() {
        let at = |millis| RunId::new_at(SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
        let ids = [at(1_469_918_176_385), at(1_469_918_176_386), at(1_800_000_000_000)].map(|id| id.to_string());
        // The example of the ULID specification.
        assert!(ids[0].starts_with("01aryz6s41"), "{ids:?}");
        assert!(ids.is_sorted() && ids.iter().all(|id| id.len() == LENGTH), "{ids:?}");
        for id in &ids {
            assert_eq!(RunId::parse_id(&id.to_uppercase()).unwrap().to_string(), *id);
        }
        for wrong in
            ["", "latest", "81arzyfnw1000000000000000", "01arzyfnw1000000000000000u", "8zzzzzzzzzzzzzzzzzzzzzzzzz"]
        {
            assert_eq!(RunId::parse_id(wrong), None, "{wrong}");
        }
    }
}
