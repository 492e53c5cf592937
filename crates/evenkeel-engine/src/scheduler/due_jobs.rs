//! Holds the due jobs of a node, shared by all schedulers of the node. Each scheduler takes the
//! first due job of the whole node, so the node has one dispatch order.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use evenkeel_core::aging::{Aging, Rank};
use evenkeel_core::order::Lane;
use evenkeel_core::{JobNo, Shard, Slot};
use tokio::sync::Notify;

use crate::scheduler::due_by_destination::Destination;
use crate::scheduler::job_entry::JobEntry;
use crate::scheduler::upcoming_jobs::{Ticket, UpcomingJobs};
use crate::sync::lock;

const LANES: usize = Lane::ALL.len();

/// One rank per lane, for example the highest rank of a batch.
pub type LaneRanks = [Option<Rank>; LANES];

/// Due jobs that all schedulers of a node share. The lock of the due jobs is never held during a
/// store call.
#[derive(Debug)]
pub struct SharedDueJobs {
    due_jobs: Mutex<DueJobs>,
    /// Notified by the first scheduler of the node when nodes have joined or left the cluster. The
    /// other schedulers do not watch the cluster members directly, because a watch channel wakes
    /// its receivers in random order and simulations must be repeatable.
    pub members_changed: Notify,
}

#[derive(Debug)]
pub struct DueJobs {
    pub upcoming: UpcomingJobs,
    /// Job shards of this node, with the time slot up to which the upcoming jobs of each shard are
    /// loaded.
    pub loaded: BTreeMap<Shard, Option<Slot>>,
    /// Jobs whose copy in memory is outdated and must be loaded again.
    pub reload: Vec<JobNo>,
    /// The highest rank per lane in the batch that each scheduler is queueing now.
    queueing: BTreeMap<usize, LaneRanks>,
}

impl SharedDueJobs {
    pub fn new(aging: Aging) -> Self {
        let due_jobs = DueJobs {
            upcoming: UpcomingJobs::new(aging),
            loaded: BTreeMap::new(),
            reload: Vec::new(),
            queueing: BTreeMap::new(),
        };
        Self { due_jobs: Mutex::new(due_jobs), members_changed: Notify::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, DueJobs> {
        lock(&self.due_jobs)
    }
}

impl DueJobs {
    /// Returns the time slot up to which the upcoming jobs in the shard of `job` are loaded.
    pub fn loaded_until(&self, job: JobNo) -> Option<Slot> {
        self.loaded.get(&Shard::of(job)).copied().flatten()
    }

    /// Returns a job to the upcoming jobs after it was taken to be fired, with its next scheduled
    /// time. If the store has reported a change of the job since it was taken, requests a reload of
    /// the job instead.
    pub fn put_back(&mut self, ticket: Ticket, next: Option<JobEntry>) {
        if !self.upcoming.put_back(ticket, next) {
            self.reload.push(ticket.job);
        }
    }

    /// Requests a reload of a job that was taken to be fired, because its copy in memory was
    /// outdated.
    pub fn reload_taken(&mut self, ticket: Ticket) {
        self.reload.push(ticket.job);
        self.upcoming.put_back(ticket, None);
    }

    /// Records that a scheduler queues a batch of jobs, with the highest rank of the batch per
    /// lane. Until [`DueJobs::end_queueing`] is called, other schedulers take no jobs with lower
    /// ranks.
    pub fn begin_queueing(&mut self, scheduler: usize, highest: LaneRanks) {
        let all = self.queueing.entry(scheduler).or_default();
        all.iter_mut().zip(highest).for_each(|(all, highest)| *all = (*all).max(highest));
    }

    /// Records that the scheduler has finished queueing its batch, with or without success.
    pub fn end_queueing(&mut self, scheduler: usize) {
        self.queueing.remove(&scheduler);
    }

    /// Returns the lowest rank per lane that this scheduler may take while worker slots are scarce.
    /// A job with a lower rank could start before a job with a higher rank that another scheduler
    /// is queueing.
    pub fn min_rank_for(&self, scheduler: usize) -> LaneRanks {
        let mut least = [None; LANES];
        for highest in self.queueing.iter().filter(|(of, _)| **of != scheduler).map(|(_, it)| it) {
            least
                .iter_mut()
                .zip(highest)
                .for_each(|(least, highest)| *least = (*least).max(*highest));
        }
        least
    }

    pub fn first_ranks(&self, destination: Destination<'_>) -> LaneRanks {
        Lane::ALL.map(|lane| self.upcoming.first_rank(destination, lane))
    }

    /// True if all due jobs for this destination have lower ranks than `least`.
    pub fn is_held_back(&self, destination: Destination<'_>, least: LaneRanks) -> bool {
        let firsts = self.first_ranks(destination);
        firsts.iter().zip(least).all(|(first, least)| first.is_none() || *first < least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_being_queued_holds_back_only_lower_ranks() {
        let due = SharedDueJobs::new(Aging::default());
        let mut due_jobs = due.lock();
        assert_eq!(due_jobs.min_rank_for(0), [None; LANES]);
        due_jobs.begin_queueing(0, [None, Some(Rank(50)), None]);
        due_jobs.begin_queueing(0, [Some(Rank(1)), Some(Rank(20)), None]);
        assert_eq!(due_jobs.min_rank_for(0), [None; LANES]);
        assert_eq!(due_jobs.min_rank_for(1), [Some(Rank(1)), Some(Rank(50)), None]);
        due_jobs.begin_queueing(2, [None, Some(Rank(90)), None]);
        assert_eq!(due_jobs.min_rank_for(1), [Some(Rank(1)), Some(Rank(90)), None]);
        due_jobs.end_queueing(0);
        assert_eq!(due_jobs.min_rank_for(1), [None, Some(Rank(90)), None]);
    }
}
