//! The jobs that are due soon, held in memory in the order in which they are needed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound;

use evenkeel_core::aging::{Aging, Rank};
use evenkeel_core::order::{DispatchKey, Lane};
use evenkeel_core::{JobNo, Shard, Timestamp};
use evenkeel_store::DueJob;
use rustc_hash::FxHashMap;

use crate::due_lines::{DueLines, Line};
use crate::entry::Entry;

#[derive(Debug)]
struct Held {
    entry: Entry,
    /// It stands in the order of dispatch.
    is_due: bool,
}

impl Held {
    /// Is this the mark on the timeline that counts?
    fn is_awaited(&self, look_at: Timestamp) -> bool {
        !self.is_due && self.entry.look_at == look_at
    }
}

/// Jobs by the time they are due, and those that are due by the order of dispatch.
#[derive(Debug)]
pub struct NearFuture {
    jobs: FxHashMap<JobNo, Held>,
    /// What comes when. Some of it is outdated: only what agrees with `look_at` counts.
    timeline: BinaryHeap<Reverse<(Timestamp, JobNo)>>,
    due: DueLines<JobNo>,
    /// Jobs that do not keep their promise, or will not, each once for each of its times.
    late: Vec<JobNo>,
    /// Of those that are due, all that should have started before are known to be late.
    swept: Timestamp,
}

impl NearFuture {
    /// Without jobs. What is due waits as `aging` says.
    pub fn new(aging: Aging) -> Self {
        Self {
            jobs: FxHashMap::default(),
            timeline: BinaryHeap::new(),
            due: DueLines::new(aging),
            late: Vec::new(),
            swept: Timestamp::default(),
        }
    }

    /// How many jobs it holds.
    pub fn count(&self) -> usize {
        self.jobs.len()
    }

    /// What is known of a job.
    pub fn get(&self, job: JobNo) -> Option<&Entry> {
        self.jobs.get(&job).map(|held| &held.entry)
    }

    /// Puts a job in, in place of what was known of it.
    pub fn insert(&mut self, job: JobNo, mut entry: Entry) {
        if entry.is_in_trouble() {
            entry.told = true;
            self.late.push(job);
        }
        self.timeline.push(Reverse((entry.look_at, job)));
        let before = self.jobs.insert(job, Held { entry, is_due: false });
        self.not_due_any_more(job, before);
    }

    /// Takes over what the store has learnt of a job that is known and the same otherwise.
    pub fn refresh(&mut self, job: &DueJob) {
        let Some(held) = self.jobs.get_mut(&job.no) else { return };
        let before = held.entry.dispatch_key();
        if !held.entry.refresh(job) {
            return;
        }
        let late = held.entry.is_in_trouble()
            || (held.is_due && !held.entry.told && held.entry.should_start_by() < self.swept);
        if late {
            held.entry.told = true;
            self.late.push(job.no);
        }
        if held.is_due {
            let line = held.entry.line();
            self.due.remove(line, before, job.no);
            self.due.insert(line, held.entry.dispatch_key(), job.no);
        }
    }

    /// Forgets a job.
    pub fn remove(&mut self, job: JobNo) {
        let before = self.jobs.remove(&job);
        self.not_due_any_more(job, before);
    }

    fn not_due_any_more(&mut self, job: JobNo, before: Option<Held>) {
        if let Some(Held { entry, is_due: true }) = before {
            self.due.remove(entry.line(), entry.dispatch_key(), job);
        }
    }

    /// Forgets all jobs but those of the given shards.
    pub fn retain_shards(&mut self, keep: impl Fn(Shard) -> bool) {
        let gone: Vec<JobNo> =
            self.jobs.keys().copied().filter(|job| !keep(Shard::of(*job))).collect();
        for job in gone {
            self.remove(job);
        }
    }

    /// Moves what has come due by `now` into the order of dispatch, which is that of this moment.
    pub fn ripen(&mut self, now: Timestamp) {
        self.due.advance(now);
        while let Some(Reverse((look_at, job))) = self.timeline.peek().copied() {
            let held = self.jobs.get_mut(&job).filter(|held| held.is_awaited(look_at));
            match held {
                Some(_) if look_at > now => return,
                Some(held) => {
                    held.is_due = true;
                    if !held.entry.told && held.entry.should_start_by() < now.max(self.swept) {
                        held.entry.told = true;
                        self.late.push(job);
                    }
                    self.due.insert(held.entry.line(), held.entry.dispatch_key(), job);
                }
                None => {}
            }
            self.timeline.pop();
        }
    }

    /// Finds those that are due and should have started by `now`. Costs what it finds: those that
    /// were late before are not looked at again.
    pub fn sweep(&mut self, now: Timestamp) {
        if now <= self.swept {
            return;
        }
        let since = std::mem::replace(&mut self.swept, now);
        let lanes = self.due.orders().flat_map(|line| Lane::ALL.map(|lane| line.by_priority(lane)));
        for lane in lanes {
            let mut next = lane.first().copied();
            while let Some((key, _)) = next {
                let at =
                    |should_start_by, ready_at| DispatchKey { should_start_by, ready_at, ..key };
                let from = (at(since, Timestamp::MIN), JobNo(i64::MIN));
                let to = (at(now, Timestamp::MIN), JobNo(i64::MIN));
                for (_, job) in lane.range(from..to) {
                    if let Some(held) = self.jobs.get_mut(job).filter(|held| !held.entry.told) {
                        held.entry.told = true;
                        self.late.push(*job);
                    }
                }
                let last = (at(Timestamp::MAX, Timestamp::MAX), JobNo(i64::MAX));
                next = lane.range((Bound::Excluded(last), Bound::Unbounded)).next().copied();
            }
        }
    }

    /// A job does not keep its promise.
    pub fn note_late(&mut self, job: JobNo) {
        self.late.push(job);
    }

    /// Jobs that do not keep their promise, or will not, for somebody to take.
    pub fn late(&mut self) -> &mut Vec<JobNo> {
        &mut self.late
    }

    /// How many are due, by lane, wherever they wait.
    pub fn waiting(&self) -> [usize; Lane::ALL.len()] {
        let mut sum = [0; Lane::ALL.len()];
        for line in self.due.orders() {
            sum.iter_mut().zip(line.count()).for_each(|(sum, count)| *sum += count);
        }
        sum
    }

    /// How many are due in a line, by lane.
    pub fn waiting_in(&self, line: Line<'_>) -> [usize; Lane::ALL.len()] {
        self.due.count(line)
    }

    /// The pools for whose queues something waits: those that come after a name, then from the first
    /// on.
    pub fn pools_after(&self, name: &str) -> impl Iterator<Item = &str> {
        let pools = self.due.pools();
        let after = pools.range::<str, _>((Bound::Excluded(name), Bound::Unbounded));
        let rest = pools.range::<str, _>((Bound::Unbounded, Bound::Included(name)));
        after.chain(rest).map(|(pool, _)| pool.as_str())
    }

    /// How many pools there are for whose queues something waits.
    pub fn count_pools(&self) -> usize {
        self.due.pools().len()
    }

    /// What the first due job of a lane ranks at.
    pub fn first_rank(&self, line: Line<'_>, lane: Lane) -> Option<Rank> {
        self.due.first_rank(line, lane)
    }

    /// Takes the first due job of a lane. It is known still, but due no more until it is put back.
    pub fn take_due(&mut self, line: Line<'_>, lane: Lane) -> Option<(JobNo, Entry)> {
        let job = self.due.pop_first(line, lane)?;
        self.jobs.get_mut(&job).map(|held| {
            held.is_due = false;
            (job, held.entry.clone())
        })
    }

    /// When the next job comes due that is not due yet.
    pub fn next_look(&mut self) -> Option<Timestamp> {
        while let Some(Reverse((look_at, job))) = self.timeline.peek().copied() {
            if self.jobs.get(&job).is_some_and(|held| held.is_awaited(look_at)) {
                return Some(look_at);
            }
            self.timeline.pop();
        }
        None
    }
}

#[cfg(test)]
mod tests;
