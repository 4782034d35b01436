//! The connections of a run: one per target, opened when first needed, kept to the end.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::sync::{Mutex, OnceCell, Semaphore};

use crate::connection::{self, Open, Target};
use crate::remote::{DeploymentLease, Sessions};
use crate::value::Vars;

type Cell = Arc<OnceCell<Arc<Sessions>>>;

pub(crate) struct Pool {
    cells: Mutex<HashMap<Target, Cell>>,
    ways: Arc<dyn Open>,
    /// How many hosts may get file content at once; None: any number.
    uploads: Option<Arc<Semaphore>>,
    /// The run's hold on its deployment.
    hold: Option<DeploymentLease>,
}

impl Pool {
    pub(super) fn new(ways: Arc<dyn Open>, uploads: Option<NonZeroUsize>, hold: Option<DeploymentLease>) -> Self {
        let uploads = uploads.map(|uploads| Arc::new(Semaphore::new(uploads.get().min(Semaphore::MAX_PERMITS))));
        Pool { cells: Mutex::default(), ways, uploads, hold }
    }

    /// The sessions of a target; the first caller opens the connection, the others wait for it.
    pub(super) async fn sessions(&self, target: &Target) -> Result<Arc<Sessions>, connection::Error> {
        let cell = {
            let mut open = self.cells.lock().await;
            let lost = |cell: &Cell| cell.get().is_some_and(|sessions| sessions.connection().is_closed());
            if open.get(target).is_some_and(lost) {
                open.remove(target);
            }
            open.entry(target.clone()).or_default().clone()
        };
        let proof = self.hold.as_ref().map(|hold| hold.on(&target.name));
        cell.get_or_try_init(|| async {
            Ok(Sessions::sharing(self.ways.open(target).await?, self.uploads.clone(), proof))
        })
        .await
        .cloned()
    }

    /// Takes in the addresses that a host of the inventory says are its own.
    pub(super) fn admit(&self, facts: &Vars) {
        for name in ["ansible_all_ipv4_addresses", "ansible_all_ipv6_addresses"] {
            let addresses = facts.get(name).and_then(|addresses| addresses.try_iter().ok());
            addresses.into_iter().flatten().for_each(|address| self.ways.admit(&address.to_string()));
        }
    }

    /// Forgets a target; the next task reconnects (`meta: reset_connection`, a reboot).
    pub(super) async fn reset(&self, target: &Target) {
        let cell = self.cells.lock().await.remove(target);
        if let Some(sessions) = cell.as_ref().and_then(|cell| cell.get()) {
            sessions.close().await;
        }
    }

    /// Ends all sessions, side by side.
    pub(super) async fn close(&self) {
        let cells: Vec<Cell> = self.cells.lock().await.drain().map(|(_, cell)| cell).collect();
        let open = cells.iter().filter_map(|cell| cell.get());
        futures::future::join_all(open.map(|sessions| sessions.close())).await;
    }
}
