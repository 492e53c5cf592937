//! Holds the jobs of a node that are due or due soon. Upcoming jobs are sorted by time, due jobs in
//! dispatch order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::hash_map::Entry;
use std::ops::Bound;

use evenkeel_core::aging::{Aging, Rank};
use evenkeel_core::order::{DispatchKey, Lane};
use evenkeel_core::{JobNo, Shard, Timestamp};
use evenkeel_store::DueJob;
use rustc_hash::FxHashMap;

use crate::scheduler::due_by_destination::{Destination, DueByDestination};
use crate::scheduler::job_entry::JobEntry;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum State {
    /// Waits in `timeline`.
    Coming,
    /// In dispatch order, in `due`.
    Due,
    /// A scheduler is firing the job. `changed` is true if the store has reported a change of the
    /// job since the scheduler took it.
    Taken { serial: u64, changed: bool },
}

#[derive(Debug)]
struct Held {
    entry: JobEntry,
    state: State,
}

impl Held {
    /// True if the job is upcoming and its `try_at` is unchanged, so the timeline entry is not
    /// outdated.
    fn is_awaited(&self, try_at: Timestamp) -> bool {
        self.state == State::Coming && self.entry.try_at == try_at
    }
}

/// Names a job that a scheduler took to fire it, and that must be put back.
#[derive(Copy, Clone, Debug)]
pub struct Ticket {
    pub job: JobNo,
    serial: u64,
}

#[derive(Debug)]
pub struct TakenDue {
    pub ticket: Ticket,
    /// Copy of the job as it was when a scheduler took the job to fire it.
    pub entry: JobEntry,
}

#[derive(Debug)]
pub struct UpcomingJobs {
    /// The jobs are boxed, because a hash table keeps room for up to twice as many values as it has.
    jobs: FxHashMap<JobNo, Box<Held>>,
    /// Upcoming jobs by try time. A timeline entry whose time differs from the `try_at` of its job
    /// is outdated and ignored.
    timeline: BinaryHeap<Reverse<(Timestamp, JobNo)>>,
    due: DueByDestination<JobNo>,
    /// Number of times that a scheduler took a job to fire it. This counter gives each taken job a
    /// unique serial number.
    serial: u64,
    /// Jobs that have missed or will miss their deadline. A job is added to this list at most once
    /// per scheduled time.
    late: Vec<JobNo>,
    /// All due jobs whose latest start is before this time were already reported as late.
    late_checked_until: Timestamp,
}

impl UpcomingJobs {
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

    pub fn count(&self) -> usize {
        self.jobs.len()
    }

    pub fn get(&self, job: JobNo) -> Option<&JobEntry> {
        self.jobs.get(&job).map(|held| &held.entry)
    }

    /// Inserts or replaces a job. If the job is being fired, only records that it changed, and
    /// [`UpcomingJobs::put_back`] later causes a reload.
    pub fn insert(&mut self, job: JobNo, entry: JobEntry) {
        if !self.note_change_while_taken(job) {
            self.put(job, entry);
        }
    }

    /// If the job is being fired, records that it changed and returns true.
    fn note_change_while_taken(&mut self, job: JobNo) -> bool {
        match self.jobs.get_mut(&job).map(|held| &mut held.state) {
            Some(State::Taken { changed, .. }) => {
                *changed = true;
                true
            }
            Some(State::Coming | State::Due) | None => false,
        }
    }

    fn put(&mut self, job: JobNo, mut entry: JobEntry) {
        if entry.will_be_late() {
            report_late(&mut self.late, job, &mut entry);
        }
        self.timeline.push(Reverse((entry.try_at, job)));
        let held = Held { entry, state: State::Coming };
        match self.jobs.entry(job) {
            Entry::Occupied(mut known) => {
                let before = std::mem::replace(&mut **known.get_mut(), held);
                self.not_due_any_more(job, before);
            }
            Entry::Vacant(vacant) => {
                vacant.insert(Box::new(held));
            }
        }
    }

    /// Updates the run history of a job whose definition and next scheduled time have not changed.
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
        if held.entry.will_be_late()
            || (is_due && held.entry.should_start_by() < self.late_checked_until)
        {
            report_late(&mut self.late, job.no, &mut held.entry);
        }
        if is_due {
            let destination = held.entry.destination();
            self.due.remove(destination, before, job.no);
            self.due.insert(destination, held.entry.dispatch_key(), job.no);
        }
    }

    /// Removes a job. A job that a scheduler is firing is removed when the scheduler puts it back.
    pub fn remove(&mut self, job: JobNo) {
        if !self.note_change_while_taken(job) {
            self.forget(job);
        }
    }

    fn forget(&mut self, job: JobNo) {
        if let Some(before) = self.jobs.remove(&job) {
            self.not_due_any_more(job, *before);
        }
    }

    fn not_due_any_more(&mut self, job: JobNo, before: Held) {
        if let Held { entry, state: State::Due } = before {
            self.due.remove(entry.destination(), entry.dispatch_key(), job);
        }
    }

    /// Removes all jobs of shards that this node no longer owns, including jobs that are being
    /// fired.
    pub fn retain_shards(&mut self, keep: impl Fn(Shard) -> bool) {
        let gone: Vec<JobNo> =
            self.jobs.keys().copied().filter(|job| !keep(Shard::of(*job))).collect();
        for job in gone {
            self.forget(job);
        }
    }

    /// Moves upcoming jobs that are due at `now` into the dispatch order.
    pub fn move_due(&mut self, now: Timestamp) {
        self.due.advance(now);
        while let Some(Reverse((try_at, job))) = self.timeline.peek().copied() {
            let held = self.jobs.get_mut(&job).filter(|held| held.is_awaited(try_at));
            match held {
                Some(_) if try_at > now => return,
                Some(held) => {
                    held.state = State::Due;
                    if held.entry.should_start_by() < now.max(self.late_checked_until) {
                        report_late(&mut self.late, job, &mut held.entry);
                    }
                    self.due.insert(held.entry.destination(), held.entry.dispatch_key(), job);
                }
                None => {}
            }
            self.timeline.pop();
        }
    }

    /// Finds due jobs whose latest start has passed at `now`. Late jobs that an earlier call found
    /// are not visited again.
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
                    if let Some(held) = self.jobs.get_mut(job) {
                        report_late(&mut self.late, *job, &mut held.entry);
                    }
                }
                let last = (at(Timestamp::MAX, Timestamp::MAX), JobNo(i64::MAX));
                next = lane.range((Bound::Excluded(last), Bound::Unbounded)).next().copied();
            }
        }
    }

    /// Records that a job has missed its deadline or will miss it.
    pub fn note_late(&mut self, job: JobNo) {
        self.late.push(job);
    }

    /// Returns the list of jobs that miss their deadline, from which the caller removes jobs.
    pub fn late(&mut self) -> &mut Vec<JobNo> {
        &mut self.late
    }

    /// Returns the number of due jobs per lane, for all destinations together.
    pub fn waiting(&self) -> [usize; Lane::ALL.len()] {
        let mut sum = [0; Lane::ALL.len()];
        for destination in self.due.orders() {
            sum.iter_mut().zip(destination.count()).for_each(|(sum, count)| *sum += count);
        }
        sum
    }

    /// Returns the number of due jobs per lane for one destination.
    pub fn waiting_in(&self, destination: Destination<'_>) -> [usize; Lane::ALL.len()] {
        self.due.count(destination)
    }

    /// Returns the pools with due jobs in alphabetical order. The list begins with the first pool
    /// after `name` and wraps around.
    pub fn pools_after(&self, name: &str) -> impl Iterator<Item = &str> {
        let pools = self.due.pools();
        let after = pools.range::<str, _>((Bound::Excluded(name), Bound::Unbounded));
        let rest = pools.range::<str, _>((Bound::Unbounded, Bound::Included(name)));
        after.chain(rest).map(|(pool, _)| pool.as_str())
    }

    pub fn count_pools(&self) -> usize {
        self.due.pools().len()
    }

    pub fn first_rank(&self, destination: Destination<'_>, lane: Lane) -> Option<Rank> {
        self.due.first_rank(destination, lane)
    }

    /// Takes the first due job of a lane to fire it. A taken job cannot be taken again until it is
    /// put back.
    pub fn take_due(&mut self, destination: Destination<'_>, lane: Lane) -> Option<TakenDue> {
        let job = self.due.pop_first(destination, lane)?;
        let held = self.jobs.get_mut(&job)?;
        self.serial += 1;
        held.state = State::Taken { serial: self.serial, changed: false };
        let ticket = Ticket { job, serial: self.serial };
        Some(TakenDue { ticket, entry: held.entry.clone() })
    }

    /// Returns a taken job to the upcoming jobs, with its next scheduled time if it has one. If the
    /// store has reported a change of the job since it was taken, drops the job and returns false.
    pub fn put_back(&mut self, ticket: Ticket, next: Option<JobEntry>) -> bool {
        let Ticket { job, serial } = ticket;
        match self.jobs.get(&job).map(|held| held.state) {
            Some(State::Taken { serial: newest, changed }) if newest == serial => {
                match next.filter(|_| !changed) {
                    Some(entry) => self.put(job, entry),
                    None => self.forget(job),
                }
                !changed
            }
            // The job was removed while it was being fired, and perhaps loaded again.
            Some(_) | None => false,
        }
    }

    /// Returns the time when the next job becomes due.
    pub fn next_try_at(&mut self) -> Option<Timestamp> {
        while let Some(Reverse((try_at, job))) = self.timeline.peek().copied() {
            if self.jobs.get(&job).is_some_and(|held| held.is_awaited(try_at)) {
                return Some(try_at);
            }
            self.timeline.pop();
        }
        None
    }
}

/// Adds a job to `late`, unless the job was already reported for its next scheduled time.
fn report_late(late: &mut Vec<JobNo>, job: JobNo, entry: &mut JobEntry) {
    if !std::mem::replace(&mut entry.reported_late, true) {
        late.push(job);
    }
}

#[cfg(test)]
mod tests;
