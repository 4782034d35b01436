//! Requests that are sent again: with the header Idempotency-Key, a run is started once.

use std::collections::VecDeque;

use axum::body::Bytes;
use axum::http::StatusCode;

use super::problem::Problem;
use crate::runs::RunId;
use crate::value::mutex::Mutex;

/// How many are remembered. They are forgotten when the server ends.
const MOST: usize = 1000;

/// The longest key, in bytes.
const LONGEST_KEY: usize = 255;

/// A request that started a run, or is about to.
struct Repeatable {
    who: String,
    key: String,
    path: String,
    body: Bytes,
    run: RunId,
}

#[derive(Default)]
pub(super) struct Repeats(Mutex<VecDeque<Repeatable>>);

impl Repeats {
    /// The run that such a request has started before. None: it is the first, and `run` is what it starts.
    ///
    /// # Errors
    /// The key was used for another request, or is too long.
    pub(super) fn earlier_run(
        &self,
        (who, key): (&str, &str),
        path: &str,
        body: &Bytes,
        run: RunId,
    ) -> Result<Option<RunId>, Problem> {
        if key.is_empty() || key.len() > LONGEST_KEY {
            return Err(Problem::bad_request(format!("Idempotency-Key must have 1 to {LONGEST_KEY} bytes")));
        }
        let mut known = self.0.lock();
        if let Some(found) = known.iter().find(|found| found.who == who && found.key == key) {
            let detail = "this Idempotency-Key was used for another request";
            let other = || Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "KeyReused", detail);
            return if found.path == path && found.body == *body { Ok(Some(found.run)) } else { Err(other()) };
        }
        if known.len() == MOST {
            known.pop_front();
        }
        let (who, key, path) = (who.to_owned(), key.to_owned(), path.to_owned());
        known.push_back(Repeatable { who, key, path, body: body.clone(), run });
        Ok(None)
    }

    /// Forgets a request that started no run.
    pub(super) fn forget(&self, run: RunId) {
        self.0.lock().retain(|found| found.run != run);
    }
}
