//! Decides whether due jobs wait in memory until the workers of this node have emptied the queue.
//!
//! Queueing and claiming a run costs twice as much as starting it directly. If due jobs were queued
//! for as long as others wait in the queue, an overloaded node would never start jobs directly
//! again, although its worker slots are free.

use std::time::Duration;

use crate::scheduler::due_jobs::LaneRanks;

/// Maximum time for which due jobs wait until the queue is empty.
const EMPTYING_MAX: Duration = Duration::from_millis(500);

/// What a scheduler knows about the queue and the workers of its node.
#[derive(Copy, Clone, Debug)]
pub(super) struct QueueState {
    /// True if attempts that this node can claim may be in the queue.
    pub has_backlog: bool,
    /// True if this node has a free worker slot and no other node shares the queue.
    pub can_be_emptied: bool,
    /// The highest rank of the due jobs, per lane.
    pub due: LaneRanks,
    /// The lowest rank of the queued attempts, per lane.
    pub queued: LaneRanks,
}

/// How long due jobs have been waiting for an empty queue.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct EmptyQueueWait {
    since: Option<Duration>,
}

impl EmptyQueueWait {
    /// True if due jobs wait at `now` and then start without the queue. Due jobs wait only if they
    /// do not rank higher than the queued attempts.
    pub(super) fn is_needed(&mut self, queue: QueueState, now: Duration) -> bool {
        if !queue.has_backlog {
            self.since = None;
            return false;
        }
        let ranks = queue.due.into_iter().zip(queue.queued);
        let follows = ranks.into_iter().all(|(due, queued)| due.is_none() || due <= queued);
        if !queue.can_be_emptied || !follows {
            return false;
        }
        now.saturating_sub(*self.since.get_or_insert(now)) < EMPTYING_MAX
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::aging::Rank;

    use super::*;

    const BACKLOG: QueueState = QueueState {
        has_backlog: true,
        can_be_emptied: true,
        due: [None, Some(Rank(10)), None],
        queued: [None, Some(Rank(10)), None],
    };

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn due_jobs_wait_until_the_queue_is_empty() {
        let mut wait = EmptyQueueWait::default();
        assert!(wait.is_needed(BACKLOG, ms(1000)));
        assert!(wait.is_needed(BACKLOG, ms(1499)));
        assert!(!wait.is_needed(QueueState { has_backlog: false, ..BACKLOG }, ms(1499)));
    }

    #[test]
    fn wait_ends_after_half_a_second_and_is_possible_again_after_the_queue_was_empty() {
        let mut wait = EmptyQueueWait::default();
        assert!(wait.is_needed(BACKLOG, ms(1000)));
        assert!(!wait.is_needed(BACKLOG, ms(1500)));
        assert!(!wait.is_needed(BACKLOG, ms(9000)));
        assert!(!wait.is_needed(QueueState { has_backlog: false, ..BACKLOG }, ms(9001)));
        assert!(wait.is_needed(BACKLOG, ms(9002)));
    }

    #[test]
    fn due_job_that_ranks_higher_than_a_queued_attempt_does_not_wait() {
        for (due, queued) in [(Some(Rank(11)), Some(Rank(10))), (Some(Rank(1)), None)] {
            let queue =
                QueueState { due: [None, due, None], queued: [None, queued, None], ..BACKLOG };
            assert!(!EmptyQueueWait::default().is_needed(queue, ms(1)), "{due:?} {queued:?}");
        }
    }

    #[test]
    fn due_jobs_do_not_wait_for_a_queue_that_this_node_cannot_empty() {
        let queue = QueueState { can_be_emptied: false, ..BACKLOG };
        assert!(!EmptyQueueWait::default().is_needed(queue, ms(1)));
    }
}
