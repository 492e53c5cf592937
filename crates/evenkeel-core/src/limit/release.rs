//! Selects the runs that leave the queue of a concurrency limit, and their next queues.
//!
//! Runs in the queue of a tenant or lane limit may need permits of other limits as well. A run
//! whose other limit has no free permit would only delay the runs behind it in the queue. A run
//! that another limit blocks moves to the queue of that limit, and takes no permit of the limit
//! whose queue it leaves. If the blocking limit is narrower, all runs that it blocks move to its
//! queue, because the narrower limit does not apply to all other runs. A wider limit, such as the
//! limit of a lane, applies to all runs in the queue of a narrower limit. Only as many runs move to
//! the queue of a wider limit as the narrower limit has free permits. In the queue of the wider
//! limit, the moved runs compete for its next permit. The frequent release pass does not know how
//! many runs already wait in the queue of a wider limit, so it moves no runs to that queue
//! (`to_wider`).

use std::collections::BTreeMap;

use super::{Admission, Limit, LimitKey, PermitCounts};

/// The permits of the concurrency limit whose queue is processed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OwnPermits {
    /// The number of active runs. Each queued run has its own limit, which is at most `highest`.
    Running { running: u32, highest: u32 },
    /// The number of free permits, if this number is the same for all queued runs.
    Free(u32),
}

impl OwnPermits {
    /// Returns the number of free permits for a run with the limit `most`; `None` means no limit.
    fn free(self, most: Option<u32>) -> u32 {
        match (self, most) {
            (Self::Free(free), _) => free,
            (Self::Running { running, .. }, Some(most)) => most.saturating_sub(running),
            (Self::Running { .. }, None) => u32::MAX,
        }
    }

    fn take(&mut self) {
        match self {
            Self::Free(free) => *free = free.saturating_sub(1),
            Self::Running { running, .. } => *running = running.saturating_add(1),
        }
    }

    fn has_free(self) -> bool {
        match self {
            Self::Free(free) => free > 0,
            Self::Running { running, highest } => running < highest,
        }
    }
}

/// The runs that leave the queue of a concurrency limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReleasedRuns<R> {
    /// Runs that return to the main queue.
    pub to_queue: Vec<R>,
    /// Runs that move to the queues of other limits.
    pub to_limits: Vec<(R, Limit)>,
    /// True if permits are still free and more runs could leave the limit's queue.
    pub has_more: bool,
}

impl<R> ReleasedRuns<R> {
    pub fn is_empty(&self) -> bool {
        self.to_queue.is_empty() && self.to_limits.is_empty()
    }
}

/// One pass over the queue of a concurrency limit.
#[derive(Clone, Debug)]
pub struct ReleasePass {
    /// The concurrency limit whose queue is processed.
    pub queue: LimitKey,
    pub own: OwnPermits,
    /// The number of active runs under each other limit that applies to the queued runs.
    pub others: PermitCounts,
    /// True if a run that a wider limit blocks may move to the queue of the wider limit.
    pub to_wider: bool,
}

impl ReleasePass {
    /// Selects up to `most` runs that leave the queue of the limit. `waiting` lists the queued runs
    /// in dispatch order, each with its limits, the narrowest first.
    pub fn select<R>(
        mut self,
        waiting: impl IntoIterator<Item = (R, Vec<Limit>)>,
        most: usize,
    ) -> ReleasedRuns<R> {
        let (mut to_queue, mut to_limits, mut made_way) = (Vec::new(), Vec::new(), false);
        let mut to_wider: BTreeMap<LimitKey, u32> = BTreeMap::new();
        for (run, mut limits) in waiting {
            if to_queue.len() + to_limits.len() >= most {
                break;
            }
            let own = limits.iter().position(|limit| limit.key == self.queue);
            let free = self.own.free(own.map(|own| limits.remove(own).most));
            if free == 0 {
                continue;
            }
            match self.others.admit(&limits) {
                // If the number of active runs is unknown, the next claim checks the limit again.
                Admission::Start | Admission::Defer => {
                    self.own.take();
                    to_queue.push(run);
                    made_way = true;
                }
                Admission::Park(full) if full.key.scope() < self.queue.scope() => {
                    to_limits.push((run, full));
                    made_way = true;
                }
                Admission::Park(full) => {
                    let sent = to_wider.entry(full.key).or_default();
                    if self.to_wider && *sent < free {
                        *sent += 1;
                        to_limits.push((run, full));
                    }
                }
            }
        }
        ReleasedRuns { to_queue, to_limits, has_more: made_way && self.own.has_free() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TenantNo;
    use crate::limit::KeyDigest;
    use crate::order::Lane;

    const TENANT: LimitKey = LimitKey::of_tenant(TenantNo(1));
    const LANE: LimitKey = LimitKey::of_lane(Lane::Critical);

    fn key(text: &str) -> LimitKey {
        LimitKey::of_key(TenantNo(1), KeyDigest::of(text))
    }

    fn limits<const N: usize>(of: [(LimitKey, u32); N]) -> Vec<Limit> {
        of.into_iter().map(|(key, most)| Limit { key, most }).collect()
    }

    fn pass<const N: usize>(
        room: LimitKey,
        own: OwnPermits,
        others: [(LimitKey, u32); N],
    ) -> ReleasePass {
        let mut counts = PermitCounts::default();
        for (key, running) in others {
            counts.note(key, Some(running));
        }
        ReleasePass { queue: room, own, others: counts, to_wider: true }
    }

    #[test]
    fn run_blocked_by_a_key_as_well_takes_no_tenant_permit() {
        let own = OwnPermits::Running { running: 1, highest: 2 };
        let pass = pass(TENANT, own, [(key("a"), 1)]);
        let keyed = limits([(key("a"), 1), (TENANT, 2)]);
        let mut waiting: Vec<(u32, Vec<Limit>)> = (0..5).map(|n| (n, keyed.clone())).collect();
        waiting.extend((5..8).map(|n| (n, limits([(TENANT, 2)]))));
        let leaving = pass.select(waiting, 100);
        assert_eq!(leaving.to_queue, [5]);
        assert_eq!(leaving.to_limits, [0, 1, 2, 3, 4].map(|n| (n, keyed[0])));
        assert!(!leaving.has_more);
    }

    #[test]
    fn first_run_of_a_key_starts_and_the_others_move_to_its_queue() {
        let own = OwnPermits::Free(2);
        let pass = pass(TENANT, own, [(key("a"), 0)]);
        let keyed = limits([(key("a"), 1), (TENANT, 2)]);
        let leaving = pass.select((0..3).map(|n| (n, keyed.clone())), 100);
        assert_eq!(
            (leaving.to_queue, leaving.to_limits.len(), leaving.has_more),
            (vec![0], 2, true)
        );
    }

    #[test]
    fn no_more_runs_move_to_a_wider_limit_than_could_start() {
        let own = OwnPermits::Running { running: 3, highest: 5 };
        let pass = pass(key("a"), own, [(TENANT, 9), (LANE, 0)]);
        let of = limits([(key("a"), 5), (TENANT, 9), (LANE, 1)]);
        let waiting = || (0..7).map(|n| (n, of.clone()));
        let stays = ReleasePass { to_wider: false, ..pass.clone() }.select(waiting(), 100);
        assert!(stays.is_empty());
        let leaving = pass.select(waiting(), 100);
        assert_eq!(leaving.to_limits, [(0, of[1]), (1, of[1])]);
        // The full limit of the tenant blocks all queued runs, so no run returns to the main queue.
        assert!(leaving.to_queue.is_empty() && !leaving.has_more);
    }

    #[test]
    fn runs_behind_a_full_lane_start() {
        let pass = pass(key("a"), OwnPermits::Running { running: 0, highest: 1 }, [(LANE, 1)]);
        let critical = limits([(key("a"), 1), (LANE, 1)]);
        let mut waiting: Vec<(u32, Vec<Limit>)> = (0..9).map(|n| (n, critical.clone())).collect();
        waiting.push((9, limits([(key("a"), 1)])));
        let leaving = pass.select(waiting, 100);
        assert_eq!((leaving.to_queue, leaving.to_limits), (vec![9], vec![(0, critical[1])]));
    }

    #[test]
    fn run_with_a_higher_limit_starts_behind_a_run_with_a_lower_limit() {
        let own = OwnPermits::Running { running: 1, highest: 5 };
        let pass = pass(key("a"), own, []);
        let waiting = [1, 3, 1, 3, 3].map(|most| limits([(key("a"), most)]));
        let leaving = pass.select(waiting.into_iter().enumerate(), 100);
        assert_eq!((leaving.to_queue, leaving.to_limits), (vec![1, 3], vec![]));
    }

    #[test]
    fn removed_limit_releases_its_queue() {
        let pass = pass(TENANT, OwnPermits::Running { running: 7, highest: u32::MAX }, []);
        let leaving = pass.select((0..9).map(|n| (n, Vec::new())), 4);
        assert_eq!((leaving.to_queue.len(), leaving.has_more), (4, true));
    }
}
