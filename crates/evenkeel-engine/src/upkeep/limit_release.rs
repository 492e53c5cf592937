//! Brings runs back into the queue that waited for a place under a limit.
//!
//! The node on which a limited run ended does that at once. The one that keeps house looks into all
//! waiting rooms every second, so that nothing is lost with a node, a signal or an answer. Neither
//! waits for the other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel_core::AttemptKey;
use evenkeel_core::limit::LimitKey;
use evenkeel_store::{LimitTerms, Permit, ReleaseStep, Released, Signal, StoreError};
use tokio::sync::Notify;
use tracing::debug;

use crate::cluster::node_context::NodeContext;

/// Waiting rooms that are looked into in one step,
const ROOMS: u32 = 500;
/// and so many steps are made in one pass: the next one goes on from there.
const STEPS: usize = 40;
/// In one of so many walks those of a key go where their tenant or lane lets them wait. Whoever ends
/// sees to that already, so only those are left that somebody forgot.
const TO_WIDER: u64 = 30;
/// Places of ended runs that are looked for in one pass.
const PLACES: u32 = 1_000;

/// The places of this node's runs under limits. Runs without one cost a look at a flag.
#[derive(Debug, Default)]
pub struct HeldPermits {
    is_used: AtomicBool,
    known: Mutex<Known>,
    released: Notify,
}

#[derive(Debug, Default)]
struct Known {
    held: BTreeMap<AttemptKey, Vec<LimitKey>>,
    ended: Vec<Permit>,
}

impl HeldPermits {
    /// An attempt has these.
    pub fn take(&self, run: AttemptKey, limits: Vec<LimitKey>) {
        if !limits.is_empty() {
            self.is_used.store(true, Ordering::Release);
            self.lock().held.insert(run, limits);
        }
    }

    /// These attempts do not run here any more.
    pub fn release(&self, runs: impl IntoIterator<Item = AttemptKey>) {
        if !self.is_used.load(Ordering::Acquire) {
            return;
        }
        let mut known = self.lock();
        let before = known.ended.len();
        for run in runs {
            let limits = known.held.remove(&run).unwrap_or_default();
            known.ended.extend(limits.into_iter().map(|limit| Permit { limit, run }));
        }
        if known.ended.len() > before {
            self.released.notify_one();
        }
    }

    fn take_ended(&self) -> Vec<Permit> {
        std::mem::take(&mut self.lock().ended)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By what those in waiting rooms are judged.
fn terms(ctx: &NodeContext) -> LimitTerms {
    LimitTerms { aging: ctx.settings.aging, limits: ctx.settings.limits.clone() }
}

/// Tells workers, here and elsewhere, if some are back in the queue.
fn tell(ctx: &NodeContext, moved: u64) {
    if moved == 0 {
        return;
    }
    if ctx.settings.roles.worker {
        ctx.worker.note_queued();
    }
    let store = Arc::clone(&ctx.store);
    tokio::spawn(async move {
        // A lost wake-up costs one poll.
        let _ = store.announce(Signal::Ready).await;
    });
}

fn note(passed: Result<u64, StoreError>) {
    if let Err(error) = passed {
        // Others say it louder; the next look finds what this one did not bring back.
        debug!(error = &error as &dyn std::error::Error, "waiting rooms wait for the store");
    }
}

/// Brings others back for those that have ended on this node.
pub struct LimitRelease {
    ctx: Arc<NodeContext>,
}

impl LimitRelease {
    /// An unparker of this incarnation.
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx }
    }

    /// Sends back as many as have ended on this node since the last time. Says how many.
    pub async fn run_once(&self) -> Result<u64, StoreError> {
        let ctx = &self.ctx;
        let ended = ctx.worker.permits.take_ended();
        let mut moved = 0;
        for ended in ended.chunks(ctx.store.batch_sizing().batch) {
            moved += ctx.store.release_limited(ended, &terms(ctx), NodeContext::NOW).await?;
        }
        tell(ctx, moved);
        Ok(moved)
    }

    /// Runs until the node stops.
    pub async fn run(self) {
        let ctx = Arc::clone(&self.ctx);
        let mut stopping = ctx.stopping.subscribe();
        while !*stopping.borrow_and_update() {
            tokio::select! {
                biased;
                _ = stopping.changed() => {}
                () = ctx.worker.permits.released.notified() => note(self.run_once().await),
            }
        }
    }
}

/// Looks into all waiting rooms, if this node keeps house.
pub struct LimitQueueSweeper {
    ctx: Arc<NodeContext>,
    walk: SweepPosition,
    walks: u64,
    /// Where the search for places of ended runs goes on.
    at: Option<Permit>,
}

/// How far one has come on the way through all rooms.
#[derive(Debug, Default)]
struct SweepPosition {
    /// The last one that was looked into; `None` at the beginning.
    after: Option<LimitKey>,
    /// In some of the rooms since the beginning there is more to do.
    again: bool,
}

impl SweepPosition {
    /// A step was made. Is that enough?
    fn advance(&mut self, step: Released) -> bool {
        self.again |= step.again;
        self.after = step.next;
        self.after.is_none() && !std::mem::take(&mut self.again)
    }
}

impl LimitQueueSweeper {
    /// One of this incarnation.
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, walk: SweepPosition::default(), walks: 0, at: None }
    }

    /// Sends back from all rooms whatever could start, and forgets places that nobody has. If there
    /// is very much to do, the next pass goes on with it. Says how many were sent.
    pub async fn run_once(&mut self) -> Result<u64, StoreError> {
        let (ctx, terms) = (Arc::clone(&self.ctx), terms(&self.ctx));
        let (mut moved, mut begins) = (0, false);
        for _ in 0..STEPS {
            let (after, terms) = (self.walk.after, terms.clone());
            if after.is_none() && !std::mem::replace(&mut begins, true) {
                self.walks += 1;
            }
            // All of a walk, however many passes it takes, so that every room has its turn.
            let to_wider = self.walks % TO_WIDER == 1;
            let rooms = ReleaseStep { after, limit: ROOMS, terms, to_wider };
            let step = ctx.store.release_all_limited(rooms, NodeContext::NOW).await?;
            tell(&ctx, step.moved);
            moved += step.moved;
            if self.walk.advance(step) {
                break;
            }
        }
        self.at = ctx.store.prune_permits(self.at, PLACES).await?;
        Ok(moved)
    }

    /// Runs until the node stops.
    pub async fn run(mut self) {
        let ctx = Arc::clone(&self.ctx);
        while ctx.pause(ctx.settings.poll).await {
            if ctx.is_housekeeper() {
                note(self.run_once().await);
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
        let run = |n| AttemptKey::regular(JobNo(n), Timestamp::from_micros(1));
        let limit = LimitKey::of_tenant(TenantNo(1));
        let places = HeldPermits::default();
        places.release([run(1)]);
        places.take(run(1), vec![limit]);
        places.take(run(2), vec![]);
        places.release([run(1), run(2)]);
        places.release([run(1)]);
        assert_eq!(places.take_ended(), [Permit { limit, run: run(1) }]);
        assert_eq!(places.take_ended(), []);
    }

    #[test]
    fn a_walk_goes_on_where_it_stopped_and_round_again_while_there_is_more() {
        let (first, second) = (LimitKey::of_tenant(TenantNo(1)), LimitKey::of_tenant(TenantNo(2)));
        let step = |next, again| Released { moved: 0, next, again };
        let mut walk = SweepPosition::default();
        assert!(!walk.advance(step(Some(first), true)));
        assert_eq!(walk.after, Some(first));
        assert!(!walk.advance(step(Some(second), false)));
        // One of the rooms wants another look: all have their turn again.
        assert!(!walk.advance(step(None, false)));
        assert_eq!(walk.after, None);
        assert!(walk.advance(step(None, false)));
    }
}
