//! The jobs that are due soon, held in memory in the order in which they are needed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound;

use evenkeel_core::aging::{Aging, Rank};
use evenkeel_core::order::{DispatchKey, Lane};
use evenkeel_core::{JobNo, Shard, Timestamp};
use evenkeel_store::DueJob;
use rustc_hash::FxHashMap;

use crate::scheduler::due_by_destination::{Destination, DueByDestination};
use crate::scheduler::job_entry::JobEntry;

/// Where a job is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum State {
    /// On the timeline.
    Coming,
    /// In the dispatch order.
    Due,
    /// A scheduler fires it. `missed`: the store has told something of it since then.
    Taken { serial: u64, missed: bool },
}

#[derive(Debug)]
struct Held {
    entry: JobEntry,
    state: State,
}

impl Held {
    /// Is this the mark on the timeline that counts?
    fn is_awaited(&self, look_at: Timestamp) -> bool {
        self.state == State::Coming && self.entry.look_at == look_at
    }
}

/// A due job that a scheduler has taken to fire it.
#[derive(Debug)]
pub struct TakenDue {
    /// Which job.
    pub job: JobNo,
    /// What was known of it then.
    pub entry: JobEntry,
    serial: u64,
}

/// Jobs by the time they are due, and those that are due by the order of dispatch.
#[derive(Debug)]
pub struct UpcomingJobs {
    jobs: FxHashMap<JobNo, Held>,
    /// What comes when. Some of it is outdated: only what agrees with `look_at` counts.
    timeline: BinaryHeap<Reverse<(Timestamp, JobNo)>>,
    due: DueByDestination<JobNo>,
    /// How many were taken, ever.
    serial: u64,
    /// Jobs that do not keep their promise, or will not, each once for each of its times.
    late: Vec<JobNo>,
    /// Of those that are due, all that should have started before are known to be late.
    late_checked_until: Timestamp,
}

impl UpcomingJobs {
    /// Without jobs. What is due waits as `aging` says.
    pub fn new(aging: Aging) -> Self {
        Self {
            jobs: FxHashMap::default(),
            timeline: BinaryHeap::new(),
            due: DueByDestination::new(aging),
            serial: 0,
            late: Vec::new(),
            late_checked_until: Timestamp::default(),
        }
    }

    /// How many jobs it holds.
    pub fn count(&self) -> usize {
        self.jobs.len()
    }

    /// What is known of a job.
    pub fn get(&self, job: JobNo) -> Option<&JobEntry> {
        self.jobs.get(&job).map(|held| &held.entry)
    }

    /// Puts a job in, in place of what was known of it. News of a job that is being fired are only
    /// remembered: [`UpcomingJobs::put_back`] then says that it must be loaded again.
    pub fn insert(&mut self, job: JobNo, entry: JobEntry) {
        if !self.note_change_while_taken(job) {
            self.put(job, entry);
        }
    }

    /// Is the job being fired? Then it is remembered that something of it was missed.
    fn note_change_while_taken(&mut self, job: JobNo) -> bool {
        match self.jobs.get_mut(&job).map(|held| &mut held.state) {
            Some(State::Taken { missed, .. }) => {
                *missed = true;
                true
            }
            Some(State::Coming | State::Due) | None => false,
        }
    }

    fn put(&mut self, job: JobNo, mut entry: JobEntry) {
        if entry.will_be_late() {
            entry.told = true;
            self.late.push(job);
        }
        self.timeline.push(Reverse((entry.look_at, job)));
        let before = self.jobs.insert(job, Held { entry, state: State::Coming });
        self.not_due_any_more(job, before);
    }

    /// Takes over what the store has learnt of a job that is known and the same otherwise.
    pub fn refresh(&mut self, job: &DueJob) {
        if self.note_change_while_taken(job.no) {
            return;
        }
        let Some(held) = self.jobs.get_mut(&job.no) else { return };
        let before = held.entry.dispatch_key();
        if !held.entry.refresh(job) {
            return;
        }
        let is_due = held.state == State::Due;
        let late = held.entry.will_be_late()
            || (is_due
                && !held.entry.told
                && held.entry.should_start_by() < self.late_checked_until);
        if late {
            held.entry.told = true;
            self.late.push(job.no);
        }
        if is_due {
            let destination = held.entry.destination();
            self.due.remove(destination, before, job.no);
            self.due.insert(destination, held.entry.dispatch_key(), job.no);
        }
    }

    /// Forgets a job; one that is being fired when it is put back.
    pub fn remove(&mut self, job: JobNo) {
        if !self.note_change_while_taken(job) {
            self.forget(job);
        }
    }

    fn forget(&mut self, job: JobNo) {
        let before = self.jobs.remove(&job);
        self.not_due_any_more(job, before);
    }

    fn not_due_any_more(&mut self, job: JobNo, before: Option<Held>) {
        if let Some(Held { entry, state: State::Due }) = before {
            self.due.remove(entry.destination(), entry.dispatch_key(), job);
        }
    }

    /// Forgets all jobs but those of the given shards, also those that are being fired.
    pub fn retain_shards(&mut self, keep: impl Fn(Shard) -> bool) {
        let gone: Vec<JobNo> =
            self.jobs.keys().copied().filter(|job| !keep(Shard::of(*job))).collect();
        for job in gone {
            self.forget(job);
        }
    }

    /// Moves what has come due by `now` into the order of dispatch, which is that of this moment.
    pub fn move_due(&mut self, now: Timestamp) {
        self.due.advance(now);
        while let Some(Reverse((look_at, job))) = self.timeline.peek().copied() {
            let held = self.jobs.get_mut(&job).filter(|held| held.is_awaited(look_at));
            match held {
                Some(_) if look_at > now => return,
                Some(held) => {
                    held.state = State::Due;
                    if !held.entry.told
                        && held.entry.should_start_by() < now.max(self.late_checked_until)
                    {
                        held.entry.told = true;
                        self.late.push(job);
                    }
                    self.due.insert(held.entry.destination(), held.entry.dispatch_key(), job);
                }
                None => {}
            }
            self.timeline.pop();
        }
    }

    /// Finds those that are due and should have started by `now`. Costs what it finds: those that
    /// were late before are not looked at again.
    pub fn find_late(&mut self, now: Timestamp) {
        if now <= self.late_checked_until {
            return;
        }
        let since = std::mem::replace(&mut self.late_checked_until, now);
        let lanes = self
            .due
            .orders()
            .flat_map(|destination| Lane::ALL.map(|lane| destination.by_priority(lane)));
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
        for destination in self.due.orders() {
            sum.iter_mut().zip(destination.count()).for_each(|(sum, count)| *sum += count);
        }
        sum
    }

    /// How many are due in a line, by lane.
    pub fn waiting_in(&self, destination: Destination<'_>) -> [usize; Lane::ALL.len()] {
        self.due.count(destination)
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
    pub fn first_rank(&self, destination: Destination<'_>, lane: Lane) -> Option<Rank> {
        self.due.first_rank(destination, lane)
    }

    /// Takes the first due job of a lane to fire it. It is known still, but due no more until it is put
    /// back.
    pub fn take_due(&mut self, destination: Destination<'_>, lane: Lane) -> Option<TakenDue> {
        let job = self.due.pop_first(destination, lane)?;
        let held = self.jobs.get_mut(&job)?;
        self.serial += 1;
        held.state = State::Taken { serial: self.serial, missed: false };
        Some(TakenDue { job, entry: held.entry.clone(), serial: self.serial })
    }

    /// Puts a job back that was taken, with what it waits for next; `None` if that is nothing. Says
    /// `false`, and puts nothing back, if the store has told something of the job meanwhile.
    pub fn put_back(&mut self, taken: TakenDue, next: Option<JobEntry>) -> bool {
        let TakenDue { job, serial, .. } = taken;
        match self.jobs.get(&job).map(|held| held.state) {
            Some(State::Taken { serial: newest, missed }) if newest == serial => {
                match next.filter(|_| !missed) {
                    Some(entry) => self.put(job, entry),
                    None => self.forget(job),
                }
                !missed
            }
            // It was forgotten, and perhaps loaded again.
            Some(_) | None => false,
        }
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
