//! Limits on log-ins with a password. A try counts before the password is looked at, so that many at once are no way around; a success
//! takes it back. Names count whether there is such an account or not.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::value::mutex::Mutex;

/// Tries of one account from one address before each has to wait for twice as long as the one before.
const FREE: u32 = 5;
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// Wrong passwords from one address, for whatever accounts, within a quarter of an hour.
const MOST_OF_ADDRESS: u32 = 30;
const ADDRESS_WINDOW: Duration = Duration::from_secs(15 * 60);

/// Wrong passwords of one account from all addresses that it was not used from before, within an hour.
const MOST_OF_ACCOUNT: u32 = 60;
const ACCOUNT_WINDOW: Duration = Duration::from_secs(60 * 60);

/// How many names and addresses are remembered, and for how long a success is.
const MOST_REMEMBERED: usize = 10_000;
const SUCCESS_REMEMBERED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Tries, since when, and until when there may be no other.
#[derive(Clone, Copy)]
struct Tries {
    since: Instant,
    last: Instant,
    count: u32,
}

#[derive(Default)]
struct Counts {
    of_pair: HashMap<(String, IpAddr), Tries>,
    of_account: HashMap<String, Tries>,
    of_address: HashMap<IpAddr, Tries>,
    /// Where accounts were used from.
    proven: HashMap<(String, IpAddr), Tries>,
}

#[derive(Default)]
pub(super) struct Attempts(Mutex<Counts>);

/// A try that was let through.
pub(super) struct Attempt {
    account: String,
    address: IpAddr,
}

/// A try that has to wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wait(pub Duration);

impl Attempts {
    /// Counts a try.
    ///
    /// # Errors
    /// There were too many: how long to wait.
    pub(super) fn begin(&self, account: &str, address: IpAddr, now: Instant) -> Result<Attempt, Wait> {
        let address = network(address);
        let pair = (account.to_owned(), address);
        let mut counts = self.0.lock();
        let left = |until: Instant| until.saturating_duration_since(now);
        let mut wait = Duration::ZERO;
        let tried = counts.of_pair.get(&pair).filter(|tries| tries.last + 2 * LONGEST_WAIT > now).copied();
        if let Some(tries) = tried {
            wait = wait.max(left(tries.last + pause(tries.count)));
        }
        let is_full = |tries: Option<&Tries>, most: u32, window: Duration| match tries {
            Some(tries) if tries.count >= most => left(tries.since + window),
            _ => Duration::ZERO,
        };
        wait = wait.max(is_full(counts.of_address.get(&address), MOST_OF_ADDRESS, ADDRESS_WINDOW));
        // Strangers cannot keep out who comes from where the account was used before.
        let proven = counts.proven.get(&pair).is_some_and(|tries| tries.last + SUCCESS_REMEMBERED > now);
        if !proven {
            wait = wait.max(is_full(counts.of_account.get(account), MOST_OF_ACCOUNT, ACCOUNT_WINDOW));
        }
        if !wait.is_zero() {
            return Err(Wait(wait));
        }
        count(&mut counts.of_pair, pair, 2 * LONGEST_WAIT, true, now);
        count(&mut counts.of_address, address, ADDRESS_WINDOW, false, now);
        if !proven {
            count(&mut counts.of_account, account.to_owned(), ACCOUNT_WINDOW, false, now);
        }
        Ok(Attempt { account: account.to_owned(), address })
    }

    /// Takes a try back that was right, and those of this account from this address before it.
    pub(super) fn succeeded(&self, attempt: Attempt, now: Instant) {
        let mut counts = self.0.lock();
        self.take_back(&mut counts, &attempt);
        let pair = (attempt.account, attempt.address);
        counts.of_pair.remove(&pair);
        count(&mut counts.proven, pair, SUCCESS_REMEMBERED, true, now);
    }

    /// Takes a try back whose password was not looked at.
    pub(super) fn not_tried(&self, attempt: Attempt) {
        let mut counts = self.0.lock();
        self.take_back(&mut counts, &attempt);
        if let Some(tries) = counts.of_pair.get_mut(&(attempt.account, attempt.address)) {
            tries.count = tries.count.saturating_sub(1);
        }
    }

    fn take_back(&self, counts: &mut Counts, attempt: &Attempt) {
        let Counts { of_account, of_address, .. } = counts;
        for tries in [of_account.get_mut(&attempt.account), of_address.get_mut(&attempt.address)].into_iter().flatten()
        {
            tries.count = tries.count.saturating_sub(1);
        }
    }
}

/// How long to wait after so many tries.
fn pause(tries: u32) -> Duration {
    match tries.checked_sub(FREE) {
        None => Duration::ZERO,
        Some(more) => Duration::from_secs(1u64.checked_shl(more).unwrap_or(u64::MAX)).min(LONGEST_WAIT),
    }
}

/// Counts one more. `from_last`: it is forgotten so long after the last one, not after the first.
fn count<K: Hash + Eq + Clone>(
    counts: &mut HashMap<K, Tries>,
    key: K,
    window: Duration,
    from_last: bool,
    now: Instant,
) {
    let is_over = |tries: &Tries| (if from_last { tries.last } else { tries.since }) + window <= now;
    if counts.len() >= MOST_REMEMBERED && !counts.contains_key(&key) {
        counts.retain(|_, tries| !is_over(tries));
        // Those with few tries go first: what many tries were spent on is not pushed out by names that were made up.
        if counts.len() >= MOST_REMEMBERED
            && let Some(least) =
                counts.iter().min_by_key(|(_, tries)| (tries.count, tries.last)).map(|(key, _)| key.clone())
        {
            counts.remove(&least);
        }
    }
    let tries = counts.entry(key).or_insert(Tries { since: now, last: now, count: 0 });
    if is_over(tries) {
        *tries = Tries { since: now, last: now, count: 0 };
    }
    *tries = Tries { last: now, count: tries.count.saturating_add(1), ..*tries };
}

/// What one person can have: an address, or a network of 2^64 addresses.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn each_try_after_the_fifth_waits_longer_until_a_success() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for _ in 0..5 {
            assert!(attempts.begin("alice", address(1), start).is_ok());
        }
        let wait = |now| attempts.begin("alice", address(1), now).err().map(|Wait(wait)| wait.as_secs());
        assert_eq!(wait(start), Some(1));
        let second = Duration::from_secs(1);
        assert_eq!(wait(start + second), None);
        assert_eq!(wait(start + second), Some(2));
        assert_eq!(wait(start + 3 * second), None);
        assert_eq!(wait(start + 3 * second), Some(4));
        assert!(attempts.begin("bob", address(1), start).is_ok(), "another account");
        assert!(attempts.begin("alice", address(2), start).is_ok(), "another address");
        let attempt = attempts.begin("alice", address(1), start + 7 * second).unwrap();
        attempts.succeeded(attempt, start + 7 * second);
        for _ in 0..5 {
            assert!(attempts.begin("alice", address(1), start + 7 * second).is_ok());
        }
        assert_eq!(pause(30), LONGEST_WAIT);
        assert_eq!(pause(u32::MAX), LONGEST_WAIT);
    }

    #[test]
    fn an_address_that_tries_many_names_has_to_wait() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for at in 0..MOST_OF_ADDRESS {
            assert!(attempts.begin(&format!("name{at}"), address(1), start).is_ok());
        }
        let Wait(wait) = attempts.begin("another", address(1), start).err().unwrap();
        assert_eq!(wait, ADDRESS_WINDOW);
        assert!(attempts.begin("another", address(2), start).is_ok());
        assert!(attempts.begin("another", address(1), start + ADDRESS_WINDOW).is_ok(), "for ever");
        // A person with IPv6 has more addresses than there are passwords.
        let of = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, last]);
        for at in 0..MOST_OF_ADDRESS {
            assert!(attempts.begin(&format!("name{at}"), of(u16::try_from(at).unwrap()), start).is_ok());
        }
        assert!(attempts.begin("another", of(999), start).is_err());
    }

    #[test]
    fn an_account_is_closed_to_strangers_after_many_tries_and_open_to_who_was_there() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        let attempt = attempts.begin("alice", address(200), start).unwrap();
        attempts.succeeded(attempt, start);
        for at in 0..MOST_OF_ACCOUNT {
            assert!(attempts.begin("alice", address(u8::try_from(at).unwrap()), start).is_ok(), "{at}");
        }
        let Wait(wait) = attempts.begin("alice", address(100), start).err().unwrap();
        assert_eq!(wait, ACCOUNT_WINDOW);
        assert!(attempts.begin("alice", address(200), start).is_ok(), "it was used from there");
        assert!(attempts.begin("alice", address(100), start + ACCOUNT_WINDOW).is_ok());
    }

    #[test]
    fn a_try_that_was_not_made_does_not_count() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for _ in 0..100 {
            attempts.not_tried(attempts.begin("alice", address(1), start).unwrap());
        }
    }

    #[test]
    fn names_that_are_made_up_push_nothing_out() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for _ in 0..5 {
            attempts.begin("alice", address(1), start).unwrap();
        }
        for at in 0..u32::try_from(MOST_REMEMBERED).unwrap() + 100 {
            let from = IpAddr::from([10, 0, at.to_be_bytes()[2], at.to_be_bytes()[3]]);
            attempts.begin(&format!("name{at}"), from, start).unwrap();
        }
        assert!(attempts.begin("alice", address(1), start).is_err());
        assert!(attempts.0.lock().of_pair.len() <= MOST_REMEMBERED);
    }
}
