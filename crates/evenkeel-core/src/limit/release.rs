//! Who leaves a waiting room, and where to.
//!
//! In the waiting room of a tenant or a lane those are mixed that need places of other limits, too. Who
//! finds none of those would only stand in the way of those behind it: it goes on to the waiting room
//! of that limit, and takes no place. Into the room of a narrower limit all of them go, since those
//! behind are not under it. A wider limit holds up all of its kind alike, so that no more go there than
//! could start if it had places: enough to be among those who get the next one. Whoever looks often
//! and cannot know how many are there already lets nobody go there.

use std::collections::BTreeMap;

use super::{Admission, Limit, LimitKey, PermitCounts};

/// What is known of the places of the room's own limit.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OwnPermits {
    /// So many run. The limit is what each of those in the room says, at most `highest`.
    Running {
        /// So many.
        running: u32,
        /// The highest limit of those in the room.
        highest: u32,
    },
    /// So many places are free, whatever the limit.
    Free(u32),
}

impl OwnPermits {
    /// Places for one whose own job or operator allows so many; `None`: any number.
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

/// Those of a waiting room who leave it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaving<R> {
    /// Back into the queue.
    pub to_queue: Vec<R>,
    /// Into the waiting rooms of these limits.
    pub to_limits: Vec<(R, Limit)>,
    /// There are places for others yet, and those who leave make way for them.
    pub has_more: bool,
}

impl<R> Leaving<R> {
    /// Does nobody leave?
    pub fn is_empty(&self) -> bool {
        self.to_queue.is_empty() && self.to_limits.is_empty()
    }
}

/// Goes through a waiting room.
#[derive(Clone, Debug)]
pub struct ReleasePass {
    /// The limit whose room it is.
    pub queue: LimitKey,
    /// Its places.
    pub own: OwnPermits,
    /// How many run under all other limits of those in the room.
    pub others: PermitCounts,
    /// Do those go on that are held up by a wider limit?
    pub to_wider: bool,
}

impl ReleasePass {
    /// Who leaves, of these, which are in the order of dispatch, each with its limits, the narrowest
    /// first; at most so many.
    pub fn select<R>(
        mut self,
        waiting: impl IntoIterator<Item = (R, Vec<Limit>)>,
        most: usize,
    ) -> Leaving<R> {
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
                // What nobody has counted, a claim does.
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
        Leaving { to_queue, to_limits, has_more: made_way && self.own.has_free() }
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
        let mut ledger = PermitCounts::default();
        for (key, running) in others {
            ledger.note(key, Some(running));
        }
        ReleasePass { queue: room, own, others: ledger, to_wider: true }
    }

    #[test]
    fn whoever_is_held_up_by_a_key_as_well_takes_no_place_of_its_tenant() {
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
    fn the_first_of_a_key_starts_and_the_others_go_on_to_its_room() {
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
    fn no_more_go_on_to_a_wider_limit_than_could_start() {
        let own = OwnPermits::Running { running: 3, highest: 5 };
        let pass = pass(key("a"), own, [(TENANT, 9), (LANE, 0)]);
        let of = limits([(key("a"), 5), (TENANT, 9), (LANE, 1)]);
        let waiting = || (0..7).map(|n| (n, of.clone()));
        let stays = ReleasePass { to_wider: false, ..pass.clone() }.select(waiting(), 100);
        assert!(stays.is_empty());
        let leaving = pass.select(waiting(), 100);
        assert_eq!(leaving.to_limits, [(0, of[1]), (1, of[1])]);
        // All of them are held up alike: to look further would be of no use.
        assert!(leaving.to_queue.is_empty() && !leaving.has_more);
    }

    #[test]
    fn those_behind_a_full_lane_go_ahead() {
        let pass = pass(key("a"), OwnPermits::Running { running: 0, highest: 1 }, [(LANE, 1)]);
        let critical = limits([(key("a"), 1), (LANE, 1)]);
        let mut waiting: Vec<(u32, Vec<Limit>)> = (0..9).map(|n| (n, critical.clone())).collect();
        waiting.push((9, limits([(key("a"), 1)])));
        let leaving = pass.select(waiting, 100);
        assert_eq!((leaving.to_queue, leaving.to_limits), (vec![9], vec![(0, critical[1])]));
    }

    #[test]
    fn whoever_may_have_more_company_fits_behind_who_may_not() {
        let own = OwnPermits::Running { running: 1, highest: 5 };
        let pass = pass(key("a"), own, []);
        let waiting = [1, 3, 1, 3, 3].map(|most| limits([(key("a"), most)]));
        let leaving = pass.select(waiting.into_iter().enumerate(), 100);
        assert_eq!((leaving.to_queue, leaving.to_limits), (vec![1, 3], vec![]));
    }

    #[test]
    fn a_limit_that_is_there_no_more_holds_up_nobody() {
        let pass = pass(TENANT, OwnPermits::Running { running: 7, highest: u32::MAX }, []);
        let leaving = pass.select((0..9).map(|n| (n, Vec::new())), 4);
        assert_eq!((leaving.to_queue.len(), leaving.has_more), (4, true));
    }
}
