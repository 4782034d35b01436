//! Refusals of requests without a login, in the audit log: of each address one entry a minute, so that nobody can fill it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::Server;
use super::access::AuditEntry;
use super::attempts::network;
use crate::runs::timestamp_text;
use crate::value::mutex::Mutex;

const MINUTE: Duration = Duration::from_secs(60);

/// Of how many addresses there are entries in a minute; others are counted together.
const MOST_ADDRESSES: usize = 60;

/// What is written down at once, and how many came after it.
struct Refused {
    since: Instant,
    more: u32,
}

#[derive(Default)]
struct Counts {
    of_address: HashMap<Option<IpAddr>, Refused>,
    others: Option<Refused>,
}

/// Counts refusals.
#[derive(Default)]
pub(super) struct Refusals(Mutex<Counts>);

impl Refusals {
    /// Counts one. Whether it is to be written down now: the first one of an address.
    pub(super) fn may_log(&self, address: Option<IpAddr>, now: Instant) -> bool {
        let address = address.map(network);
        let Counts { of_address, others } = &mut *self.0.lock();
        let is_full = of_address.len() >= MOST_ADDRESSES;
        let refused = match of_address.entry(address) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) if !is_full => {
                entry.insert(Refused { since: now, more: 0 });
                return true;
            }
            Entry::Vacant(_) => others.get_or_insert(Refused { since: now, more: 0 }),
        };
        refused.more = refused.more.saturating_add(1);
        false
    }

    /// Takes what was counted in minutes that are over: from where, and how many.
    fn take_due(&self, now: Instant) -> Vec<(String, u32)> {
        let mut counts = self.0.lock();
        let mut due = Vec::new();
        counts.of_address.retain(|address, refused| {
            if refused.since + MINUTE > now {
                return true;
            }
            let more = std::mem::take(&mut refused.more);
            if more > 0 {
                due.push((address.map_or_else(|| "-".to_owned(), |address| address.to_string()), more));
            }
            refused.since = now;
            more > 0
        });
        if let Some(others) = counts.others.take_if(|others| others.since + MINUTE <= now) {
            due.push(("other addresses".to_owned(), others.more));
        }
        due
    }
}

/// Writes what was counted into the audit log, for ever.
pub(super) async fn write_refusals(server: Arc<Server>) {
    loop {
        tokio::time::sleep(MINUTE / 6).await;
        write_due(&server, Instant::now()).await;
    }
}

/// Writes what was counted in minutes that are over.
pub(super) async fn write_due(server: &Arc<Server>, now: Instant) {
    let write = move |server: &Server| {
        for (from, count) in server.refusals.take_due(now) {
            server.access.lock().add_audit_entry(AuditEntry {
                sequence: 0,
                time: timestamp_text(SystemTime::now()),
                who: "-".to_owned(),
                from,
                action: "ask without a login".to_owned(),
                target: String::new(),
                detail: format!("{count} more, which have no entries"),
                outcome: "refused".to_owned(),
            })?;
        }
        Ok(())
    };
    if let Err(problem) = server.blocking(write).await {
        tracing::error!("cannot write the audit log: {}", problem.detail);
    }
}

/// How long the end of the server waits for that.
const LONGEST_END: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(3) };

/// Writes what was counted until now: the server ends.
pub(super) async fn write_rest(server: &Arc<Server>) {
    let written = write_due(server, Instant::now() + MINUTE);
    if tokio::time::timeout(LONGEST_END, written).await.is_err() {
        tracing::error!("cannot write the audit log: it took longer than {LONGEST_END:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_entry_a_minute() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        assert!(refusals.may_log(address(1), start));
        assert!((0..100).all(|_| !refusals.may_log(address(1), start)));
        assert!(refusals.may_log(address(2), start), "another address");
        assert!(refusals.take_due(start + MINUTE / 2).is_empty());
        assert_eq!(refusals.take_due(start + MINUTE), [("192.0.2.1".to_owned(), 100)]);
        assert!(!refusals.may_log(address(1), start + MINUTE), "it had its entry");
        assert!(refusals.may_log(address(2), start + MINUTE), "its minute is over");
        assert_eq!(refusals.take_due(start + 2 * MINUTE), [("192.0.2.1".to_owned(), 1)]);
        assert!(refusals.take_due(start + 3 * MINUTE).is_empty());
        assert!(refusals.may_log(address(1), start + 3 * MINUTE));
    }

    #[test]
    fn many_addresses_are_counted_together() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        let of = |at: u16| Some(IpAddr::from([0x2001, 0xdb8, 0, at, 0, 0, 0, 1]));
        let logged = (0..1000).filter(|at| refusals.may_log(of(*at), start)).count();
        assert_eq!(logged, MOST_ADDRESSES);
        assert_eq!(refusals.take_due(start + MINUTE), [("other addresses".to_owned(), 1000 - 60)]);
        assert!(refusals.0.lock().of_address.is_empty());
    }

    #[tokio::test]
    async fn the_end_of_the_server_does_not_wait_for_ever() {
        let fixture = super::super::tests::Fixture::new();
        let server = fixture.server.clone();
        let now = Instant::now();
        assert!(server.refusals.may_log(None, now) && !server.refusals.may_log(None, now));
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (hold, held) = tokio::sync::oneshot::channel();
        let holder = server.clone();
        let thread = std::thread::spawn(move || {
            let _access = holder.access.lock();
            hold.send(()).unwrap();
            assert!(released.recv().is_err(), "nothing is sent");
        });
        held.await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(20), write_rest(&server)).await;
        drop(release);
        thread.join().unwrap();
        assert!(ended.is_ok(), "it waits for what another thread holds");
    }
}
