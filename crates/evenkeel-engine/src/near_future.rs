//! The jobs that are due soon, held in memory in the order in which they are needed.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;

use evenkeel_core::advance::SkipReason;
use evenkeel_core::order::{DispatchKey, Lane};
use evenkeel_core::{Definition, History, JobNo, Shard, Span, TenantNo, Timestamp};
use evenkeel_store::RunLink;
use rustc_hash::FxHashMap;

/// What is known of one job.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Whose it is.
    pub tenant: TenantNo,
    /// As of this generation.
    pub generation: i32,
    /// Its next regular time.
    pub next_at: Timestamp,
    /// Its newest chain.
    pub head: Option<RunLink>,
    /// How long its good runs take.
    pub average: Option<Span>,
    /// What it does.
    pub definition: Arc<Definition>,
    /// The time that has come must be skipped, for this reason.
    pub skip: Option<SkipReason>,
    /// When to look at it: its next time, or later if it was busy then.
    pub look_at: Timestamp,
    /// How often it was busy when its next time had come and had to wait.
    pub waits: u8,
}

impl Entry {
    /// By when the run for `scheduled` must start to keep the job's promise.
    pub fn should_start_by(&self, scheduled: Timestamp) -> Timestamp {
        let history = History { average_good_duration: self.average, ..History::default() };
        self.definition.schedule.window(scheduled, &history).should_start_by
    }

    fn dispatch_key(&self) -> DispatchKey {
        DispatchKey {
            lane: self.definition.lane,
            priority: Reverse(self.definition.priority),
            should_start_by: self.should_start_by(self.next_at),
            ready_at: self.next_at,
        }
    }
}

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
#[derive(Debug, Default)]
pub struct NearFuture {
    jobs: FxHashMap<JobNo, Held>,
    /// What comes when. Some of it is outdated: only what agrees with `look_at` counts.
    timeline: BinaryHeap<Reverse<(Timestamp, JobNo)>>,
    due: [BTreeSet<(DispatchKey, JobNo)>; Lane::ALL.len()],
}

impl NearFuture {
    /// How many jobs it holds.
    pub fn count(&self) -> usize {
        self.jobs.len()
    }

    /// What is known of a job.
    pub fn get(&self, job: JobNo) -> Option<&Entry> {
        self.jobs.get(&job).map(|held| &held.entry)
    }

    /// Puts a job in, in place of what was known of it.
    pub fn insert(&mut self, job: JobNo, entry: Entry) {
        self.timeline.push(Reverse((entry.look_at, job)));
        let before = self.jobs.insert(job, Held { entry, is_due: false });
        self.not_due_any_more(job, before);
    }

    /// Forgets a job.
    pub fn remove(&mut self, job: JobNo) {
        let before = self.jobs.remove(&job);
        self.not_due_any_more(job, before);
    }

    fn not_due_any_more(&mut self, job: JobNo, before: Option<Held>) {
        if let Some(Held { entry, is_due: true }) = before {
            let key = entry.dispatch_key();
            self.due[key.lane as usize].remove(&(key, job));
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

    /// Moves what has come due by `now` into the order of dispatch.
    pub fn ripen(&mut self, now: Timestamp) {
        while let Some(Reverse((look_at, job))) = self.timeline.peek().copied() {
            let held = self.jobs.get_mut(&job).filter(|held| held.is_awaited(look_at));
            match held {
                Some(_) if look_at > now => return,
                Some(held) => {
                    held.is_due = true;
                    let key = held.entry.dispatch_key();
                    self.due[key.lane as usize].insert((key, job));
                }
                None => {}
            }
            self.timeline.pop();
        }
    }

    /// How many are due, by lane.
    pub fn waiting(&self) -> [usize; Lane::ALL.len()] {
        [self.due[0].len(), self.due[1].len(), self.due[2].len()]
    }

    /// Takes the first due job of a lane. It is known still, but due no more until it is put back.
    pub fn take_due(&mut self, lane: Lane) -> Option<(JobNo, Entry)> {
        let (_, job) = self.due[lane as usize].pop_first()?;
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
mod tests {
    use evenkeel_core::order::Priority;
    use evenkeel_core::schedule::{Once, Schedule};

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn entry(due: i64, priority: u8) -> Entry {
        let definition = Definition {
            priority: Priority::try_from(priority).unwrap(),
            ..Definition::noop(Schedule::Once(Once::NOW))
        };
        Entry {
            tenant: TenantNo(1),
            generation: 1,
            next_at: at(due),
            head: None,
            average: None,
            definition: Arc::new(definition),
            skip: None,
            look_at: at(due),
            waits: 0,
        }
    }

    fn due_jobs(future: &mut NearFuture, now: i64) -> Vec<i64> {
        future.ripen(at(now));
        std::iter::from_fn(|| future.take_due(Lane::Standard)).map(|(job, _)| job.0).collect()
    }

    #[test]
    fn what_is_due_comes_in_the_order_of_dispatch() {
        let mut future = NearFuture::default();
        for (job, due, priority) in [(1, 30, 0), (2, 10, 0), (3, 20, 90), (4, 99, 100)] {
            future.insert(JobNo(job), entry(due, priority));
        }
        assert_eq!(due_jobs(&mut future, 50), [3, 2, 1]);
        assert_eq!(future.next_look(), Some(at(99)));
    }

    #[test]
    fn a_newer_copy_replaces_the_older_wherever_it_was() {
        let mut future = NearFuture::default();
        future.insert(JobNo(1), entry(10, 0));
        future.ripen(at(50));
        future.insert(JobNo(1), entry(70, 0));
        assert_eq!(due_jobs(&mut future, 50), [0_i64; 0]);
        assert_eq!(due_jobs(&mut future, 70), [1]);
    }

    #[test]
    fn lost_shards_are_forgotten() {
        let mut future = NearFuture::default();
        future.insert(JobNo(1), entry(10, 0));
        future.insert(JobNo(2), entry(10, 0));
        future.ripen(at(10));
        future.retain_shards(|shard| shard == Shard(2));
        assert_eq!(due_jobs(&mut future, 10), [2]);
        assert_eq!(future.count(), 1);
    }
}
