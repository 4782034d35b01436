//! Requests that are sent again: with the header Idempotency-Key, a run is started once.

use std::collections::VecDeque;

use axum::http::StatusCode;

use super::access::sha256_hex;
use super::problem::Problem;
use crate::runs::RunId;
use crate::value::mutex::Mutex;

/// How many are remembered. They are forgotten when the server ends.
const MOST: usize = 1000;

/// The longest key, in bytes.
const LONGEST_KEY: usize = 255;

/// The longest body of a request with a key, in bytes: the names of a thousand members that a plan removes.
const LONGEST_BODY: usize = 1 << 17;

/// A request that started a run, or is about to.
struct Repeatable {
    who: String,
    key: String,
    /// SHA-256 of the path and the body.
    digest: String,
    run: RunId,
}

#[derive(Default)]
pub(super) struct Repeats(Mutex<VecDeque<Repeatable>>);

impl Repeats {
    /// The run that such a request has started before. None: it is the first, and `run` is what it starts.
    ///
    /// # Errors
    /// The key was used for another request, or it or the body is too long.
    pub(super) fn earlier_run(
        &self,
        (who, key): (&str, &str),
        path: &str,
        body: &[u8],
        run: RunId,
    ) -> Result<Option<RunId>, Problem> {
        if key.is_empty() || key.len() > LONGEST_KEY {
            return Err(Problem::bad_request(format!("Idempotency-Key must have 1 to {LONGEST_KEY} bytes")));
        }
        if body.len() > LONGEST_BODY {
            let detail = format!("a body of a request with an Idempotency-Key has at most {LONGEST_BODY} bytes");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", detail));
        }
        let digest = sha256_hex(&[path.as_bytes(), b"\0", body].concat());
        let mut known = self.0.lock();
        if let Some(found) = known.iter().find(|found| found.who == who && found.key == key) {
            let detail = "this Idempotency-Key was used for another request";
            let other = || Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "KeyReused", detail);
            return if found.digest == digest { Ok(Some(found.run)) } else { Err(other()) };
        }
        if known.len() == MOST {
            known.pop_front();
        }
        known.push_back(Repeatable { who: who.to_owned(), key: key.to_owned(), digest, run });
        Ok(None)
    }

    /// Forgets a request that started no run.
    pub(super) fn forget(&self, run: RunId) {
        self.0.lock().retain(|found| found.run != run);
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn bodies_are_not_kept() {
        let repeats = Repeats::default();
        let run = RunId::new_at(UNIX_EPOCH);
        repeats.earlier_run(("alice", "k"), &"p".repeat(10_000), &vec![b' '; LONGEST_BODY], run).unwrap();
        let kept = repeats.0.lock();
        let Repeatable { who, key, digest, run: _ } = &kept[0];
        assert_eq!((who.len(), key.len(), digest.len()), (5, 1, 64));
    }
}
