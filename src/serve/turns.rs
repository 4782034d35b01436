//! Turns for requests that may work for long, such as the check of a document: so many at once for all and for each person, so that
//! log-ins, sessions, requests to stop and the end of the server always find a thread.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::Problem;
use super::rights::Right;
use super::routes::{Needs, Route};
use crate::value::mutex::Mutex;

/// How many requests work at once.
const AT_ONCE: usize = 16;
const AT_ONCE_OF_PERSON: usize = 4;

/// How many requests of a person work or wait for their turn, and how long they wait at most.
const MOST_OF_PERSON: usize = 32;
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// When a client that found no turn is to come back.
const BUSY: Duration = Duration::from_secs(5);

/// Whether requests of a route wait for their turn: all but those that are quick, those with a limit of their own, and those with which
/// people end what others do.
pub(super) fn takes_turn(route: &Route) -> bool {
    let is_exempt = matches!(route.needs, Needs::Nothing | Needs::Right(Right::Admin | Right::Stop));
    !is_exempt && !route.path.starts_with("/session") && !route.path.ends_with("/host-keys")
}

pub(super) struct Turns {
    all: Arc<Semaphore>,
    people: Mutex<HashMap<String, OnePerson>>,
    longest_wait: Duration,
}

/// The requests of a person.
struct OnePerson {
    turns: Arc<Semaphore>,
    requests: usize,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { all: Arc::new(Semaphore::new(AT_ONCE)), people: Mutex::default(), longest_wait: LONGEST_WAIT }
    }
}

impl Turns {
    /// Waits for a turn, which lasts until the answer is dropped.
    ///
    /// # Errors
    /// The person has too many requests, or the server too many of all people.
    pub(super) async fn wait_for_turn(&self, person: &str) -> Result<Turn<'_>, Problem> {
        let (counted, of_person) = self.count(person)?;
        let wait = async |turns: Arc<Semaphore>| {
            tokio::time::timeout(self.longest_wait, turns.acquire_owned()).await.ok()?.ok()
        };
        let own = wait(of_person).await.ok_or_else(too_many)?;
        let all = wait(self.all.clone()).await.ok_or_else(|| {
            let detail = "too many requests are in progress";
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "Busy", detail);
            problem.with_retry_after(BUSY.as_secs()).with_hint("try again in a moment")
        })?;
        Ok(Turn { _permits: [own, all], _counted: counted })
    }

    fn count(&self, person: &str) -> Result<(Counted<'_>, Arc<Semaphore>), Problem> {
        let mut people = self.people.lock();
        let new = || OnePerson { turns: Arc::new(Semaphore::new(AT_ONCE_OF_PERSON)), requests: 0 };
        let found = people.entry(person.to_owned()).or_insert_with(new);
        if found.requests >= MOST_OF_PERSON {
            return Err(too_many());
        }
        found.requests += 1;
        Ok((Counted { turns: self, person: person.to_owned() }, found.turns.clone()))
    }
}

fn too_many() -> Problem {
    let detail = "too many requests of this login are in progress";
    let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", detail);
    problem.with_retry_after(BUSY.as_secs()).with_hint("wait until earlier requests have been answered")
}

/// The turn of a request, until it is dropped.
pub(super) struct Turn<'a> {
    _permits: [OwnedSemaphorePermit; 2],
    _counted: Counted<'a>,
}

/// A request that counts, until it is dropped.
struct Counted<'a> {
    turns: &'a Turns,
    person: String,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let mut people = self.turns.people.lock();
        if let Some(found) = people.get_mut(&self.person) {
            found.requests -= 1;
            if found.requests == 0 {
                people.remove(&self.person);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::routes::ROUTES;
    use super::*;

    fn code(entered: Result<Turn<'_>, Problem>) -> &'static str {
        entered.map_or_else(|problem| problem.code, |_| "a turn")
    }

    #[tokio::test]
    async fn one_person_does_not_get_all_turns() {
        let turns = Turns { longest_wait: Duration::from_millis(50), ..Turns::default() };
        let mut held = Vec::new();
        for _ in 0..AT_ONCE_OF_PERSON {
            held.push(turns.wait_for_turn("alice").await.unwrap());
        }
        assert_eq!(code(turns.wait_for_turn("alice").await), "TooManyRequests");
        assert_eq!(code(turns.wait_for_turn("bob").await), "a turn");
        for person in 1..AT_ONCE / AT_ONCE_OF_PERSON {
            for _ in 0..AT_ONCE_OF_PERSON {
                held.push(turns.wait_for_turn(&format!("person {person}")).await.unwrap());
            }
        }
        assert_eq!(code(turns.wait_for_turn("bob").await), "Busy");
        held.pop();
        assert_eq!(code(turns.wait_for_turn("bob").await), "a turn");
        drop(held);
        assert!(turns.people.lock().is_empty());
        assert_eq!(turns.all.available_permits(), AT_ONCE);
    }

    #[tokio::test]
    async fn requests_wait_for_a_turn_and_not_too_many_wait() {
        let turns = Turns::default();
        let held = turns.wait_for_turn("alice").await.unwrap();
        let mut waiting =
            Box::pin(futures::future::join_all((1..MOST_OF_PERSON).map(|_| turns.wait_for_turn("alice"))));
        assert!(futures::poll!(&mut waiting).is_pending());
        assert_eq!(code(turns.wait_for_turn("alice").await), "TooManyRequests");
        drop(held);
        drop(waiting);
        assert_eq!(code(turns.wait_for_turn("alice").await), "a turn");
    }

    #[test]
    fn what_ends_the_work_of_others_takes_no_turn() {
        let exempt: Vec<String> = ROUTES
            .iter()
            .filter(|route| !takes_turn(route))
            .map(|route| format!("{} {}", route.method.method(), route.path))
            .collect();
        for path in
            ["POST /sessions", "GET /session", "DELETE /session", "POST /runs/{run}/stop", "DELETE /tokens/{token}"]
        {
            assert!(exempt.iter().any(|exempt| exempt == path), "{path}");
        }
        let works = ["/check", "/document", "/log", "/tasks", "/deployments", "/runs"];
        assert!(!exempt.iter().any(|path| works.iter().any(|work| path.ends_with(work))), "{exempt:?}");
    }
}
