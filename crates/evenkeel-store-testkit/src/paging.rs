//! Reads whole lists, to compare a store with the model.

use std::sync::Arc;

use evenkeel_core::JobId;
use evenkeel_store::{Job, JobFilter, JobSort, PageRequest, SortBy};

use crate::Opened;
use crate::fixtures::START;
use crate::model::ModelStore;
use crate::rig::Rig;

/// Pseudo-random numbers that are the same in each test run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number from 0 to `sides` - 1.
    pub fn throw(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    pub fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.throw(of.len() as u64) as usize].clone()
    }

    /// Returns the value in one of four calls on average, otherwise `None`.
    pub fn maybe<T>(&mut self, value: T) -> Option<T> {
        (self.throw(4) == 0).then_some(value)
    }
}

pub const ORDERS: [SortBy; 4] = [SortBy::Created, SortBy::Updated, SortBy::Name, SortBy::NextRun];

/// Creates an empty in-memory store.
pub async fn model() -> Rig {
    let store = Arc::new(ModelStore::new(Arc::new(|| START)));
    Rig::new(Opened { store, guard: Box::new(()), reopen: None }).await
}

/// Adds all jobs to the search index, in several steps.
pub async fn index_all(rig: &Rig) {
    while rig.store.index_jobs(500).await.expect("jobs can be indexed") {}
}

pub async fn all_pages(rig: &Rig, filter: &JobFilter, sort: JobSort, limit: u32) -> Vec<Job> {
    let (mut jobs, mut after) = (Vec::new(), None);
    loop {
        let page = PageRequest { after, ..PageRequest::first(limit) };
        let page = rig.store.list_jobs(&rig.scope, filter, sort, page).await;
        let page = page.expect("jobs can be listed");
        assert!(page.items.len() <= limit as usize);
        jobs.extend(page.items);
        after = page.next;
        if after.is_none() {
            return jobs;
        }
    }
}

pub fn ids(jobs: &[Job]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id).collect()
}
