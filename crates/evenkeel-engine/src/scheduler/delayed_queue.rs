//! Retries and triggers that are due soon, as far as the store has told.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::aging::Aging;
use evenkeel_core::order::{DispatchKey, Lane, Shares};
use evenkeel_core::{AttemptKey, Timestamp};
use evenkeel_store::DelayedAttempt;

use crate::scheduler::dispatch_order::DispatchOrder;

/// When it is due, and which it is.
type Id = (Timestamp, AttemptKey);

/// Where one waits when more are due than may start.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DelayedDestination {
    /// For a place on this node, in the order of dispatch.
    ThisNode(DispatchKey),
    /// For nothing: it needs no place on this node, and the queue takes all of them.
    Queue,
}

/// Retries and triggers by the time they are due. Only when more of them are due than may start, they
/// are put in the order of dispatch.
#[derive(Debug)]
pub struct DelayedQueue {
    coming: BTreeMap<Id, DelayedAttempt>,
    due: BTreeMap<Id, DelayedAttempt>,
    order: DispatchOrder<Id>,
    /// Those that need no place on this node, oldest first.
    elsewhere: BTreeSet<Id>,
    /// All that are due stand in one of these; else none does.
    is_ordered: bool,
    has_more_due: bool,
}

impl DelayedQueue {
    /// Nothing is known yet.
    pub fn new(aging: Aging) -> Self {
        Self {
            coming: BTreeMap::new(),
            due: BTreeMap::new(),
            order: DispatchOrder::new(aging),
            elsewhere: BTreeSet::new(),
            is_ordered: false,
            has_more_due: false,
        }
    }

    /// The store has told these, at `now`, oldest first; all there are, or as many as it was asked
    /// for.
    pub fn learn(&mut self, told: Vec<DelayedAttempt>, are_all: bool, now: Timestamp) {
        self.forget_order();
        self.has_more_due = !are_all && told.last().is_some_and(|last| last.due <= now);
        if are_all {
            // A wake that is not told was withdrawn.
            self.coming.clear();
            self.due.clear();
        }
        for delayed in told {
            let id = (delayed.due, delayed.key);
            self.due.remove(&id);
            self.coming.insert(id, delayed);
        }
    }

    /// Keeps those that somebody still looks after here.
    pub fn retain(&mut self, keep: impl Fn(AttemptKey) -> bool) {
        self.forget_order();
        self.coming.retain(|(_, key), _| keep(*key));
        self.due.retain(|(_, key), _| keep(*key));
    }

    fn forget_order(&mut self) {
        self.order.clear();
        self.elsewhere.clear();
        self.is_ordered = false;
    }

    /// Time has passed. Says how many are due.
    pub fn move_due(
        &mut self,
        now: Timestamp,
        destination_of: impl Fn(&DelayedAttempt) -> DelayedDestination,
    ) -> usize {
        self.order.advance(now);
        while let Some(first) = self.coming.first_entry().filter(|it| it.key().0 <= now) {
            let (id, delayed) = first.remove_entry();
            if self.is_ordered {
                self.put_in_order(destination_of(&delayed), id);
            }
            self.due.insert(id, delayed);
        }
        self.due.len()
    }

    /// When the first that is not due yet will be; none if it is due already.
    pub fn next_due(&self) -> Option<Timestamp> {
        let first = self.due.first_key_value().or_else(|| self.coming.first_key_value());
        first.map(|((due, _), _)| *due)
    }

    /// Are none due of those that are known?
    pub fn is_none_due(&self) -> bool {
        self.due.is_empty()
    }

    /// Are more due in the store than it has told? Then whoever goes first may not be known here.
    pub fn has_more_due(&self) -> bool {
        self.has_more_due
    }

    fn put_in_order(&mut self, destination: DelayedDestination, id: Id) {
        match destination {
            DelayedDestination::ThisNode(key) => self.order.insert(key, id),
            DelayedDestination::Queue => {
                self.elsewhere.insert(id);
            }
        }
    }

    /// Takes all that are due if there are no more than `here`; else up to so many for places on this
    /// node, the first of each lane's share, and of those that need none as many as make `most` of
    /// them, or at least half of it.
    pub fn take(
        &mut self,
        here: usize,
        most: usize,
        shares: Shares,
        destination_of: impl Fn(&DelayedAttempt) -> DelayedDestination,
    ) -> Vec<DelayedAttempt> {
        if here >= self.due.len() {
            self.forget_order();
            return std::mem::take(&mut self.due).into_values().collect();
        }
        if !self.is_ordered {
            let all: Vec<_> =
                self.due.iter().map(|(id, delayed)| (destination_of(delayed), *id)).collect();
            all.into_iter().for_each(|(destination, id)| self.put_in_order(destination, id));
            self.is_ordered = true;
        }
        let others = most.saturating_sub(here.min(self.due.len() - self.elsewhere.len()));
        let elsewhere = self.elsewhere.len().min(others.max(most.div_ceil(2)));
        let here = here.min(most - elsewhere);
        let mut taken = Vec::with_capacity(here + elsewhere);
        let shares = shares.split(here, self.order.count());
        for (lane, share) in Lane::ALL.into_iter().zip(shares) {
            let first = std::iter::from_fn(|| self.order.pop_first(lane));
            let first = first.take(share).filter_map(|id| self.due.remove(&id));
            taken.extend(first);
        }
        let first = std::iter::from_fn(|| self.elsewhere.pop_first());
        taken.extend(first.take(elsewhere).filter_map(|id| self.due.remove(&id)));
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use evenkeel_core::order::Priority;
    use evenkeel_core::{AttemptNo, History, JobNo, Sequence, TenantNo};
    use evenkeel_store::DueJob;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    /// A retry of job number `job`, with a priority of its own.
    fn retry(job: i64, due: i64, priority: u8) -> DelayedAttempt {
        let job = DueJob {
            no: JobNo(job),
            tenant: TenantNo(1),
            next_at: None,
            generation: 1,
            live: 1,
            head: None,
            history: History::default(),
            since: at(0),
            fired: 0,
            definition: String::new(),
        };
        DelayedAttempt {
            due: at(due),
            key: AttemptKey {
                scheduled_at: at(due),
                job_no: job.no,
                sequence: Sequence::REGULAR,
                attempt: AttemptNo(1),
            },
            has_checkpoint: false,
            priority: Priority::try_from(priority).ok(),
            job,
        }
    }

    fn destination_of(delayed: &DelayedAttempt) -> DelayedDestination {
        DelayedDestination::ThisNode(DispatchKey {
            lane: Lane::Standard,
            priority: Reverse(delayed.priority.unwrap()),
            should_start_by: delayed.due,
            ready_at: delayed.due,
        })
    }

    fn queue_with(attempts: Vec<DelayedAttempt>) -> DelayedQueue {
        let mut queue = DelayedQueue::new(Aging::default());
        queue.learn(attempts, true, at(0));
        queue
    }

    fn take(queue: &mut DelayedQueue, count: usize) -> Vec<i64> {
        let taken = queue.take(count, count, Shares::default(), destination_of);
        taken.into_iter().map(|delayed| delayed.key.job_no.0).collect()
    }

    #[test]
    fn the_highest_goes_first_however_many_came_before_it() {
        let mut retries: Vec<DelayedAttempt> = (0..4_000).map(|job| retry(job, job, 0)).collect();
        retries.push(retry(9_999, 5_000, 100));
        let mut queue = queue_with(retries);
        assert_eq!(queue.move_due(at(4_999), destination_of), 4_000);
        assert_eq!(take(&mut queue, 1), [0]);
        assert_eq!(queue.move_due(at(5_000), destination_of), 4_000);
        // Some have waited for an hour: the first of them by thirty, which is not enough.
        assert_eq!(take(&mut queue, 2), [9_999, 1]);
        assert_eq!(take(&mut queue, 1), [2]);
    }

    #[test]
    fn who_has_waited_goes_before_a_higher_priority() {
        let mut queue = queue_with(vec![retry(1, 10, 0), retry(2, 9_000, 90), retry(3, 9_000, 95)]);
        queue.move_due(at(9_000), destination_of);
        assert_eq!(take(&mut queue, 2), [1, 3]);
        assert_eq!(queue.next_due(), Some(at(9_000)));
    }

    #[test]
    fn all_are_taken_as_they_came() {
        let mut queue =
            queue_with(vec![retry(1, 20, 0), retry(2, 10, 0), retry(3, 15, 90), retry(4, 30, 0)]);
        assert_eq!(queue.move_due(at(20), destination_of), 3);
        assert_eq!(take(&mut queue, 9), [2, 3, 1]);
        assert_eq!((queue.move_due(at(29), destination_of), queue.next_due()), (0, Some(at(30))));
    }

    #[test]
    fn what_is_not_told_again_was_withdrawn() {
        let mut queue = queue_with(vec![retry(1, 10, 0), retry(2, 11, 0), retry(3, 12, 0)]);
        queue.move_due(at(20), destination_of);
        assert_eq!(take(&mut queue, 1), [1]);
        queue.learn(vec![retry(3, 12, 0), retry(4, 13, 0)], true, at(20));
        assert_eq!(queue.move_due(at(20), destination_of), 2);
        assert_eq!(take(&mut queue, 1), [3]);
        queue.retain(|key| key.job_no != JobNo(4));
        assert_eq!(queue.move_due(at(20), destination_of), 0);
    }

    #[test]
    fn that_more_are_due_is_known_by_the_last_that_is() {
        let mut queue = queue_with(vec![retry(1, 10, 0)]);
        assert!(!queue.has_more_due());
        queue.learn(vec![retry(2, 11, 0), retry(3, 12, 0)], false, at(11));
        assert!(!queue.has_more_due());
        queue.learn(vec![retry(2, 11, 0), retry(3, 12, 0)], false, at(12));
        assert!(queue.has_more_due());
        assert_eq!(queue.move_due(at(12), destination_of), 3);
    }

    #[test]
    fn what_needs_no_place_here_waits_for_none() {
        let destination_of = |delayed: &DelayedAttempt| match delayed.key.job_no.0 {
            10.. => DelayedDestination::Queue,
            _ => destination_of(delayed),
        };
        let retries = [(1, 90), (2, 100), (12, 0), (10, 0), (11, 100)];
        let mut queue =
            queue_with(retries.map(|(job, priority)| retry(job, 10 + job, priority)).to_vec());
        assert_eq!(queue.move_due(at(25), destination_of), 5);
        let take = |queue: &mut DelayedQueue, here, most| -> Vec<i64> {
            let taken = queue.take(here, most, Shares::default(), destination_of);
            taken.into_iter().map(|delayed| delayed.key.job_no.0).collect()
        };
        assert_eq!(take(&mut queue, 0, 1), [10]);
        // Neither keeps the other from being taken.
        assert_eq!(take(&mut queue, 2, 2), [2, 11]);
        assert_eq!(take(&mut queue, 0, 9), [12]);
        assert_eq!(queue.move_due(at(25), destination_of), 1);
        // What comes while they stand in order is told apart, too.
        queue.coming.insert((at(30), retry(13, 30, 0).key), retry(13, 30, 0));
        assert_eq!(queue.move_due(at(30), destination_of), 2);
        assert_eq!(take(&mut queue, 0, 9), [13]);
        assert_eq!(take(&mut queue, 1, 9), [1]);
    }
}
