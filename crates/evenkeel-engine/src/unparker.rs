//! Brings runs back into the queue that waited for a place under a limit.
//!
//! The node on which a limited run ended does that at once. The one that keeps house looks into all
//! waiting rooms every second, so that nothing is lost with a node, a signal or an answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel_core::RunKey;
use evenkeel_core::limit::LimitKey;
use evenkeel_store::{LimitPlace, Rooms, Signal, StoreError};
use tokio::sync::Notify;
use tracing::debug;

use crate::incarnation::Incarnation;

/// Waiting rooms that are looked into in one step.
const ROOMS: u32 = 500;
/// Places of ended runs that are looked for in one pass.
const PLACES: u32 = 1_000;

/// The places of this node's runs under limits. Runs without one cost a look at a flag.
#[derive(Debug, Default)]
pub struct Places {
    is_used: AtomicBool,
    known: Mutex<Known>,
    vacated: Notify,
}

#[derive(Debug, Default)]
struct Known {
    held: BTreeMap<RunKey, Vec<LimitKey>>,
    ended: Vec<LimitPlace>,
}

impl Places {
    /// An attempt has these.
    pub fn take(&self, run: RunKey, limits: Vec<LimitKey>) {
        if !limits.is_empty() {
            self.is_used.store(true, Ordering::Release);
            self.lock().held.insert(run, limits);
        }
    }

    /// These attempts do not run here any more.
    pub fn vacate(&self, runs: impl IntoIterator<Item = RunKey>) {
        if !self.is_used.load(Ordering::Acquire) {
            return;
        }
        let mut known = self.lock();
        let before = known.ended.len();
        for run in runs {
            let limits = known.held.remove(&run).unwrap_or_default();
            known.ended.extend(limits.into_iter().map(|limit| LimitPlace { limit, run }));
        }
        if known.ended.len() > before {
            self.vacated.notify_one();
        }
    }

    fn take_ended(&self) -> Vec<LimitPlace> {
        std::mem::take(&mut self.lock().ended)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after waiting rooms.
pub struct Unparker {
    life: Arc<Incarnation>,
    /// Where the search for places of ended runs goes on.
    at: Option<LimitPlace>,
}

impl Unparker {
    /// An unparker of this incarnation.
    pub fn new(life: Arc<Incarnation>) -> Self {
        Self { life, at: None }
    }

    /// Sends back as many as have ended on this node since the last time. Says how many.
    pub async fn run_once(&self) -> Result<u64, StoreError> {
        let life = &self.life;
        let ended = life.worker.places.take_ended();
        let mut moved = 0;
        for ended in ended.chunks(life.store.appetite().batch) {
            moved += life.store.unpark(ended, life.settings.aging, Incarnation::NOW).await?;
        }
        self.tell(moved);
        Ok(moved)
    }

    /// Sends back from all rooms whatever could start, and forgets places that nobody has. Says how
    /// many were sent.
    pub async fn keep_house(&mut self) -> Result<u64, StoreError> {
        let (store, aging) = (Arc::clone(&self.life.store), self.life.settings.aging);
        let (mut moved, mut after) = (0, None);
        loop {
            let rooms = Rooms { after, limit: ROOMS, aging };
            let step = store.unpark_all(rooms, Incarnation::NOW).await?;
            moved += step.moved;
            after = step.next;
            if after.is_none() {
                break;
            }
        }
        self.tell(moved);
        self.at = store.forget_places(self.at, PLACES).await?;
        Ok(moved)
    }

    /// Tells workers, here and elsewhere.
    fn tell(&self, moved: u64) {
        if moved == 0 {
            return;
        }
        if self.life.settings.roles.worker {
            self.life.worker.note_queued();
        }
        let store = Arc::clone(&self.life.store);
        tokio::spawn(async move {
            // A lost wake-up costs one poll.
            let _ = store.announce(Signal::Ready).await;
        });
    }

    /// Runs until the node stops.
    pub async fn run(mut self) {
        let life = Arc::clone(&self.life);
        let mut stopping = life.stopping.subscribe();
        let mut look = tokio::time::interval(life.settings.poll);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !*stopping.borrow_and_update() {
            let passed = tokio::select! {
                biased;
                _ = stopping.changed() => continue,
                () = life.worker.places.vacated.notified() => self.run_once().await,
                _ = look.tick() => {
                    if !life.keeps_house() {
                        continue;
                    }
                    self.keep_house().await
                }
            };
            if let Err(error) = passed {
                // Others say it louder; the next look finds what this one did not bring back.
                debug!(
                    error = &error as &dyn std::error::Error,
                    "waiting rooms wait for the store"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{JobNo, TenantNo, Timestamp};

    use super::*;

    #[test]
    fn a_place_is_vacated_once() {
        let run = |n| RunKey::regular(JobNo(n), Timestamp::from_micros(1));
        let limit = LimitKey::of_tenant(TenantNo(1));
        let places = Places::default();
        places.vacate([run(1)]);
        places.take(run(1), vec![limit]);
        places.take(run(2), vec![]);
        places.vacate([run(1), run(2)]);
        places.vacate([run(1)]);
        assert_eq!(places.take_ended(), [LimitPlace { limit, run: run(1) }]);
        assert_eq!(places.take_ended(), []);
    }
}
