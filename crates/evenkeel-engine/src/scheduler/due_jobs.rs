//! The due jobs of a node. All schedulers of the node share them, so that the node has one dispatch
//! order: each scheduler may fire any job of the node, and takes the first one.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use evenkeel_core::aging::{Aging, Rank};
use evenkeel_core::order::Lane;
use evenkeel_core::{JobNo, Shard, Slot};
use tokio::sync::Notify;

use crate::scheduler::due_by_destination::Destination;
use crate::scheduler::job_entry::JobEntry;
use crate::scheduler::upcoming_jobs::{TakenDue, UpcomingJobs};

const LANES: usize = Lane::ALL.len();

/// For each lane a rank: the highest of a batch, or the lowest that may be taken.
pub type LaneRanks = [Option<Rank>; LANES];

/// What the schedulers of a node share. The lock is never held while a scheduler waits for the store.
#[derive(Debug)]
pub struct SharedDueJobs {
    due_jobs: Mutex<DueJobs>,
    /// The first scheduler has seen that members changed. The others wait for this and not for the
    /// members themselves: a watch wakes those who wait in an order of chance, and a simulation must
    /// replay.
    pub members_changed: Notify,
}

/// The due jobs of a node, and how far its shards are loaded.
#[derive(Debug)]
pub struct DueJobs {
    /// The jobs that are due soon.
    pub upcoming: UpcomingJobs,
    /// The shards of the node's schedulers, and up to which slot each is loaded.
    pub loaded: BTreeMap<Shard, Option<Slot>>,
    /// Copies of these jobs are stale.
    pub reload: Vec<JobNo>,
    /// For each scheduler, the highest rank in the batch that it is storing in the queue.
    queueing: BTreeMap<usize, LaneRanks>,
}

impl SharedDueJobs {
    /// Without jobs. Waiting counts as `aging` says.
    pub fn new(aging: Aging) -> Self {
        let due_jobs = DueJobs {
            upcoming: UpcomingJobs::new(aging),
            loaded: BTreeMap::new(),
            reload: Vec::new(),
            queueing: BTreeMap::new(),
        };
        Self { due_jobs: Mutex::new(due_jobs), members_changed: Notify::new() }
    }

    /// Locks it.
    pub fn lock(&self) -> MutexGuard<'_, DueJobs> {
        self.due_jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DueJobs {
    /// Up to which slot a job's shard is loaded.
    pub fn loaded_until(&self, job: JobNo) -> Option<Slot> {
        self.loaded.get(&Shard::of(job)).copied().flatten()
    }

    /// Puts a job back that was taken to be fired, with what it waits for next. If the store has told
    /// something of it meanwhile, it is loaded anew instead.
    pub fn put_back(&mut self, taken: TakenDue, next: Option<JobEntry>) {
        let job = taken.job;
        if !self.upcoming.put_back(taken, next) {
            self.reload.push(job);
        }
    }

    /// A job that was taken to be fired is not what the store has: it is loaded anew.
    pub fn reload_taken(&mut self, taken: TakenDue) {
        self.reload.push(taken.job);
        self.upcoming.put_back(taken, None);
    }

    /// A scheduler is about to store a batch in the queue, in which nothing ranks higher than this.
    /// Until [`DueJobs::end_queueing`], the others leave all that ranks lower.
    pub fn begin_queueing(&mut self, scheduler: usize, highest: LaneRanks) {
        let all = self.queueing.entry(scheduler).or_default();
        all.iter_mut().zip(highest).for_each(|(all, highest)| *all = (*all).max(highest));
    }

    /// The batch is in the queue, or will never be.
    pub fn end_queueing(&mut self, scheduler: usize) {
        self.queueing.remove(&scheduler);
    }

    /// The lowest rank that this scheduler may take while workers are scarce. A run below it could start
    /// before a higher one that another scheduler is storing in the queue.
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

    /// What the first of each lane ranks at.
    pub fn first_ranks(&self, destination: Destination<'_>) -> LaneRanks {
        Lane::ALL.map(|lane| self.upcoming.first_rank(destination, lane))
    }

    /// Does nothing of a line rank high enough to be taken?
    pub fn is_held_back(&self, destination: Destination<'_>, least: LaneRanks) -> bool {
        let firsts = self.first_ranks(destination);
        firsts.iter().zip(least).all(|(first, least)| first.is_none() || *first < least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_on_its_way_into_the_queue_holds_back_only_what_ranks_lower() {
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
