//! Updates claim windows, and counts the attempts that are ahead of a waiting attempt.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use evenkeel_core::aging::{Aging, Rank};
use evenkeel_core::limit::LimitScope;
use evenkeel_core::{AttemptKey, JobId, JobNo, Shard, Slot, Timestamp};
use evenkeel_store::{ClaimWindow, ClosedAttempt, Scope, SlotLoad, WaitingAttempt, WaitsFor};

use super::data::{Data, Place, Ready, Waiting};

/// Maximum number of queue positions of a pool that are read to count the attempts ahead.
const LOOKED_AT_MAX: usize = 10_000;
/// Maximum number of attempts that are counted as being ahead of a waiting attempt.
const COUNTED_MAX: usize = 1_000;
/// Maximum number of waiting attempts of a job that are returned.
const TOLD_MAX: usize = 100;

impl Data {
    pub fn closed(&self, shards: &[Shard], limit: u32, now: Timestamp) -> Vec<ClosedAttempt> {
        let closed = self.waiting.iter().filter_map(|((no, key), waiting)| match waiting {
            Waiting::Ready(ready) if ready.window.until.is_some_and(|until| until <= now) => {
                self.find(*no).map(|job| (key, job))
            }
            Waiting::Ready(_) | Waiting::Delayed { .. } => None,
        });
        closed
            .filter(|(key, _)| shards.contains(&Shard::of(key.job_no)))
            .take(limit as usize)
            .map(|(key, job)| ClosedAttempt {
                key: *key,
                average_good_duration: job.history.average_good_duration,
                definition: job.text.clone(),
            })
            .collect()
    }

    pub fn reopen(&mut self, batch: &[(AttemptKey, ClaimWindow)]) {
        for (key, window) in batch {
            if let Some(Waiting::Ready(ready)) = self.waiting.get_mut(&(key.job_no, *key)) {
                ready.window = *window;
            }
        }
    }

    /// Applies a new definition to the job's queued attempts: claim window, excluded nodes, and
    /// priority unless the run has its own.
    pub fn open_anew(&mut self, no: JobNo, now: Timestamp) {
        let job = self.job(no);
        let average = job.definition.average(job.history.average_good_duration);
        let window = ClaimWindow::of(&job.definition, average, now);
        let forbidden = job.definition.dont_run_on_nodes.clone();
        let priority = job.definition.priority;
        let limit = job.definition.key_limit();
        let keys: Vec<AttemptKey> = self.waiting_of(no).map(|(key, _)| key).collect();
        for key in keys {
            self.send_home(key);
            let Some(Waiting::Ready(ready)) = self.waiting.get_mut(&(no, key)) else { continue };
            ready.limit = limit;
            ready.window = window;
            ready.forbidden_nodes.clone_from(&forbidden);
            if ready.is_own_priority {
                continue;
            }
            let Reverse(old) = ready.order.priority;
            let before = (ready.order, no, key);
            ready.order.priority = Reverse(priority);
            ready.rise = ready.rise.with_priority(old, priority);
            let after = (ready.order, no, key);
            if let Some(lanes) = self.queue.get_mut(&ready.pool) {
                let lane = &mut lanes[ready.order.lane as usize];
                lane.remove(&before);
                lane.insert(after);
            }
        }
    }

    pub fn waiting_attempts(
        &self,
        scope: &Scope,
        id: JobId,
        ahead: Option<Aging>,
        now: Timestamp,
    ) -> Vec<WaitingAttempt> {
        let Some(no) = self.seen(scope, id) else { return Vec::new() };
        let waiting = self.waiting_of(no).take(TOLD_MAX);
        waiting
            .map(|(key, waiting)| WaitingAttempt {
                key,
                priority: match waiting {
                    Waiting::Delayed { priority, .. } => *priority,
                    Waiting::Ready(ready) => ready.own_priority(),
                },
                waits_for: match waiting {
                    Waiting::Delayed { due, .. } => WaitsFor::Time(*due),
                    Waiting::Ready(ready) => match &ready.parked {
                        Some((_, limit)) => WaitsFor::Permit {
                            since: ready.order.ready_at,
                            limit: *limit,
                            running: ahead
                                .filter(|_| limit.key.scope() != LimitScope::Lane)
                                .map(|_| self.running_under(limit.key)),
                        },
                        None => WaitsFor::Worker {
                            since: ready.order.ready_at,
                            ahead: ahead.map(|aging| {
                                self.ahead_of(scope, key, ready, |ready| {
                                    aging.rank(ready.order.priority.0, ready.rise, now)
                                })
                            }),
                            window: ready.window,
                        },
                    },
                },
            })
            .collect()
    }

    /// Counts the attempts ahead of a waiting attempt, among the first attempts of the pool by
    /// priority and the first attempts of each lane by waiting time.
    fn ahead_of(
        &self,
        scope: &Scope,
        key: AttemptKey,
        ready: &Ready,
        rank: impl Fn(&Ready) -> Rank,
    ) -> u32 {
        let place = |no: JobNo, key: AttemptKey, ready: &Ready| {
            let order = ready.order;
            (order.lane, Reverse(rank(ready)), order.should_start_by, order.ready_at, no, key)
        };
        let known = |(_, no, key): &Place| match self.waiting.get(&(*no, *key)) {
            Some(Waiting::Ready(ready)) => Some((*no, *key, ready)),
            Some(Waiting::Delayed { .. }) | None => None,
        };
        let mut looked_at = BTreeMap::new();
        let lanes = self.queue.get(&ready.pool).into_iter().flatten();
        for (no, key, ready) in lanes.clone().flatten().take(LOOKED_AT_MAX).filter_map(known) {
            looked_at.insert(key, place(no, key, ready));
        }
        for lane in lanes {
            let mut waited: Vec<_> = lane.iter().filter_map(known).collect();
            waited.sort_by_key(|(_, _, ready)| ready.rise);
            // Attempts that have not gained rank by waiting were already found by priority.
            waited.retain(|(_, _, ready)| {
                rank(ready) > Rank(i64::from(ready.order.priority.0.get()))
            });
            for (no, key, ready) in waited.into_iter().take(LOOKED_AT_MAX) {
                looked_at.insert(key, place(no, key, ready));
            }
        }
        let own_place = place(key.job_no, key, ready);
        let before = looked_at.into_values().filter(|other| *other < own_place);
        let own = before.filter(|(_, _, _, _, no, _)| self.is_of(scope, *no));
        own.take(COUNTED_MAX).count() as u32
    }

    fn is_of(&self, scope: &Scope, no: JobNo) -> bool {
        self.find(no).is_some_and(|job| job.tenant == scope.tenant)
    }

    pub fn slot_loads(&self, scope: &Scope, slots: &[Slot], limit: u32) -> Vec<SlotLoad> {
        let load = |slot: &Slot| {
            let mut here = self.jobs.iter().filter(|job| job.slot == Some(*slot));
            let looked_at = here.by_ref().take(limit as usize);
            let jobs = looked_at.filter(|job| job.tenant == scope.tenant).count() as u32;
            SlotLoad { jobs, counted_all: here.next().is_none() }
        };
        slots.iter().map(load).collect()
    }
}
