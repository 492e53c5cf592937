//! Holds retries and triggers that are due soon, as loaded from the store.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::aging::Aging;
use evenkeel_core::order::{DispatchKey, Lane, Shares};
use evenkeel_core::{AttemptKey, Timestamp};
use evenkeel_store::DelayedAttempt;

use crate::scheduler::dispatch_order::DispatchOrder;

/// Due time and attempt.
type Id = (Timestamp, AttemptKey);

/// Where a delayed attempt starts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DelayedDestination {
    /// The attempt starts on this node and needs a free worker slot. The dispatch key determines
    /// which attempt starts first.
    ThisNode(DispatchKey),
    /// The attempt is queued, which needs no free worker slot.
    Queue,
}

/// Retries and triggers, ordered by the time at which they are due. Delayed attempts are sorted in
/// dispatch order only if more attempts are due than may start.
#[derive(Debug)]
pub struct DelayedQueue {
    upcoming: BTreeMap<Id, DelayedAttempt>,
    due: BTreeMap<Id, DelayedAttempt>,
    order: DispatchOrder<Id>,
    /// Due attempts that will be queued, oldest first.
    for_queue: BTreeSet<Id>,
    /// True if each due attempt is in `order` or in `for_queue`. If `is_ordered` is false, `order`
    /// and `for_queue` are empty.
    is_ordered: bool,
    has_more_due: bool,
}

impl DelayedQueue {
    pub fn new(aging: Aging) -> Self {
        Self {
            upcoming: BTreeMap::new(),
            due: BTreeMap::new(),
            order: DispatchOrder::new(aging),
            for_queue: BTreeSet::new(),
            is_ordered: false,
            has_more_due: false,
        }
    }

    /// Adds the delayed attempts that the store returned at `now`, oldest first. `are_all` is true
    /// if the store returned all delayed attempts that are due soon.
    pub fn learn(&mut self, found: Vec<DelayedAttempt>, are_all: bool, now: Timestamp) {
        self.forget_order();
        self.has_more_due = !are_all && found.last().is_some_and(|last| last.due <= now);
        if are_all {
            // A delayed attempt that the store no longer returns was withdrawn.
            self.upcoming.clear();
            self.due.clear();
        }
        for delayed in found {
            let id = (delayed.due, delayed.key);
            self.due.remove(&id);
            self.upcoming.insert(id, delayed);
        }
    }

    pub fn retain(&mut self, keep: impl Fn(AttemptKey) -> bool) {
        self.forget_order();
        self.upcoming.retain(|(_, key), _| keep(*key));
        self.due.retain(|(_, key), _| keep(*key));
    }

    fn forget_order(&mut self) {
        self.order.clear();
        self.for_queue.clear();
        self.is_ordered = false;
    }

    /// Moves delayed attempts that are due at `now` from `upcoming` to `due`. Returns the number of
    /// all due attempts.
    pub fn move_due(
        &mut self,
        now: Timestamp,
        destination_of: impl Fn(&DelayedAttempt) -> DelayedDestination,
    ) -> usize {
        self.order.advance(now);
        while let Some(first) = self.upcoming.first_entry().filter(|it| it.key().0 <= now) {
            let (id, delayed) = first.remove_entry();
            if self.is_ordered {
                self.put_in_order(destination_of(&delayed), id);
            }
            self.due.insert(id, delayed);
        }
        self.due.len()
    }

    /// Returns the earliest time at which an attempt is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        let first = self.due.first_key_value().or_else(|| self.upcoming.first_key_value());
        first.map(|((due, _), _)| *due)
    }

    pub fn is_none_due(&self) -> bool {
        self.due.is_empty()
    }

    /// True if some due attempts in the store were not loaded into memory. The attempt that should
    /// start first may be one of the attempts that were not loaded.
    pub fn has_more_due(&self) -> bool {
        self.has_more_due
    }

    fn put_in_order(&mut self, destination: DelayedDestination, id: Id) {
        match destination {
            DelayedDestination::ThisNode(key) => self.order.insert(key, id),
            DelayedDestination::Queue => {
                self.for_queue.insert(id);
            }
        }
    }

    /// Takes all due attempts if at most `here` attempts are due. If more attempts are due, takes
    /// up to `here` attempts that start on this node, by lane shares and dispatch order. Attempts
    /// that will be queued are added until `most` attempts are taken. At least half of `most` is
    /// reserved for attempts that will be queued.
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
        let others = most.saturating_sub(here.min(self.due.len() - self.for_queue.len()));
        let for_queue = self.for_queue.len().min(others.max(most.div_ceil(2)));
        let here = here.min(most - for_queue);
        let mut taken = Vec::with_capacity(here + for_queue);
        let shares = shares.split(here, self.order.count());
        for (lane, share) in Lane::ALL.into_iter().zip(shares) {
            let first = std::iter::from_fn(|| self.order.pop_first(lane));
            let first = first.take(share).filter_map(|id| self.due.remove(&id));
            taken.extend(first);
        }
        let first = std::iter::from_fn(|| self.for_queue.pop_first());
        taken.extend(first.take(for_queue).filter_map(|id| self.due.remove(&id)));
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
    fn highest_priority_is_taken_before_thousands_of_older_attempts() {
        let mut retries: Vec<DelayedAttempt> = (0..4_000).map(|job| retry(job, job, 0)).collect();
        retries.push(retry(9_999, 5_000, 100));
        let mut queue = queue_with(retries);
        assert_eq!(queue.move_due(at(4_999), destination_of), 4_000);
        assert_eq!(take(&mut queue, 1), [0]);
        assert_eq!(queue.move_due(at(5_000), destination_of), 4_000);
        // Aging has raised the oldest attempts, but not to the priority 100 of job 9,999.
        assert_eq!(take(&mut queue, 2), [9_999, 1]);
        assert_eq!(take(&mut queue, 1), [2]);
    }

    #[test]
    fn long_wait_outranks_a_higher_priority() {
        let mut queue = queue_with(vec![retry(1, 10, 0), retry(2, 9_000, 90), retry(3, 9_000, 95)]);
        queue.move_due(at(9_000), destination_of);
        assert_eq!(take(&mut queue, 2), [1, 3]);
        assert_eq!(queue.next_due(), Some(at(9_000)));
    }

    #[test]
    fn all_due_attempts_are_taken_in_order_of_time() {
        let mut queue =
            queue_with(vec![retry(1, 20, 0), retry(2, 10, 0), retry(3, 15, 90), retry(4, 30, 0)]);
        assert_eq!(queue.move_due(at(20), destination_of), 3);
        assert_eq!(take(&mut queue, 9), [2, 3, 1]);
        assert_eq!((queue.move_due(at(29), destination_of), queue.next_due()), (0, Some(at(30))));
    }

    #[test]
    fn attempt_missing_from_a_complete_answer_was_withdrawn() {
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
    fn more_are_due_if_the_last_loaded_attempt_is_due() {
        let mut queue = queue_with(vec![retry(1, 10, 0)]);
        assert!(!queue.has_more_due());
        queue.learn(vec![retry(2, 11, 0), retry(3, 12, 0)], false, at(11));
        assert!(!queue.has_more_due());
        queue.learn(vec![retry(2, 11, 0), retry(3, 12, 0)], false, at(12));
        assert!(queue.has_more_due());
        assert_eq!(queue.move_due(at(12), destination_of), 3);
    }

    #[test]
    fn attempt_for_the_queue_does_not_wait_for_a_slot() {
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
        // Attempts that start on this node and attempts that will be queued do not block each
        // other.
        assert_eq!(take(&mut queue, 2, 2), [2, 11]);
        assert_eq!(take(&mut queue, 0, 9), [12]);
        assert_eq!(queue.move_due(at(25), destination_of), 1);
        // An attempt that becomes due after the other attempts were sorted is inserted at its place
        // in the dispatch order.
        queue.upcoming.insert((at(30), retry(13, 30, 0).key), retry(13, 30, 0));
        assert_eq!(queue.move_due(at(30), destination_of), 2);
        assert_eq!(take(&mut queue, 0, 9), [13]);
        assert_eq!(take(&mut queue, 1, 9), [1]);
    }
}
