//! The due jobs of a node, shared by all its schedulers. Each scheduler may fire any job of the
//! node and takes the first, so the node has one dispatch order.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use evenkeel_core::aging::{Aging, Rank};
use evenkeel_core::order::Lane;
use evenkeel_core::{JobNo, Shard, Slot};
use tokio::sync::Notify;

use crate::scheduler::due_by_destination::Destination;
use crate::scheduler::job_entry::JobEntry;
use crate::scheduler::upcoming_jobs::{TakenDue, UpcomingJobs};
use crate::sync::lock;

const LANES: usize = Lane::ALL.len();

/// A rank per lane, such as the highest of a batch or the lowest that may be taken.
pub type LaneRanks = [Option<Rank>; LANES];

/// State shared by the schedulers of a node. Its lock is never held during a store call.
#[derive(Debug)]
pub struct SharedDueJobs {
    due_jobs: Mutex<DueJobs>,
    /// Notified by the first scheduler when members changed. The other schedulers wait for this
    /// instead of the members themselves, because a watch wakes its receivers in random order and a
    /// simulation must be repeatable.
    pub members_changed: Notify,
}

#[derive(Debug)]
pub struct DueJobs {
    pub upcoming: UpcomingJobs,
    /// Shards of the node's schedulers, with the slot up to which each is loaded.
    pub loaded: BTreeMap<Shard, Option<Slot>>,
    /// Jobs whose copy is stale.
    pub reload: Vec<JobNo>,
    /// The highest ranks in the batch that each scheduler is putting into the queue.
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
    /// Returns the slot up to which a job's shard is loaded.
    pub fn loaded_until(&self, job: JobNo) -> Option<Slot> {
        self.loaded.get(&Shard::of(job)).copied().flatten()
    }

    /// Puts back a job that was taken to be fired, with its next time. If the store reported a
    /// change meanwhile, the job is reloaded instead.
    pub fn put_back(&mut self, taken: TakenDue, next: Option<JobEntry>) {
        let job = taken.job;
        if !self.upcoming.put_back(taken, next) {
            self.reload.push(job);
        }
    }

    /// Reloads a job that was taken to be fired, because the copy was stale.
    pub fn reload_taken(&mut self, taken: TakenDue) {
        self.reload.push(taken.job);
        self.upcoming.put_back(taken, None);
    }

    /// Records that a scheduler puts a batch with these highest ranks into the queue. Until
    /// [`DueJobs::end_queueing`], other schedulers take no lower ranks.
    pub fn begin_queueing(&mut self, scheduler: usize, highest: LaneRanks) {
        let all = self.queueing.entry(scheduler).or_default();
        all.iter_mut().zip(highest).for_each(|(all, highest)| *all = (*all).max(highest));
    }

    /// Records that the batch is in the queue or has failed.
    pub fn end_queueing(&mut self, scheduler: usize) {
        self.queueing.remove(&scheduler);
    }

    /// Returns the lowest ranks this scheduler may take while slots are scarce. A lower job could
    /// start before a higher one that another scheduler is putting into the queue.
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

    /// True if no due job of this destination ranks high enough to be taken.
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
