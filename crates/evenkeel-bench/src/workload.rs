//! Registers the jobs of the load benchmarks and computes their expected run times.

use std::collections::BTreeMap;

use anyhow::Context;
use evenkeel_core::chance::Chance;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::schedule::{Interval, Schedule};
use evenkeel_core::{About, Definition, JobId, JobNo, Span, Timestamp};
use evenkeel_store::{NewJob, Now, Registered, Scope, Store};
use indicatif::ProgressBar;

/// Number of jobs that are registered in one transaction.
const BATCH: u64 = 5000;
/// Longest period of a job, in seconds; the shortest period is 1 s.
const LONGEST_PERIOD: u64 = 60;
pub const CENTURY: Span = Span::from_secs(100 * 365 * 86_400);
pub const YEAR: Span = Span::from_secs(365 * 86_400);

/// The expected run times of each job.
#[derive(Debug, Default)]
pub struct Plan {
    /// First run time and period of each job that fires repeatedly.
    pub busy: BTreeMap<JobNo, (Timestamp, Span)>,
}

impl Plan {
    pub fn expected(&self, until: Timestamp) -> BTreeMap<JobNo, Vec<Timestamp>> {
        let times = |(first, every): (Timestamp, Span)| {
            std::iter::successors(Some(first), move |time| time.checked_add(every))
                .take_while(move |time| *time < until)
                .collect()
        };
        self.busy.iter().map(|(job, plan)| (*job, times(*plan))).collect()
    }

    /// Number of times before `until`.
    pub fn count(&self, until: Timestamp) -> u64 {
        let times = |(first, every): &(Timestamp, Span)| match until.since(*first).as_micros() {
            0 => 0,
            span => (span - 1) / every.as_micros() + 1,
        };
        self.busy.values().map(times).sum()
    }
}

/// Firings per second of `longest` jobs whose periods are 1 s, 2 s and so on up to `longest`.
fn firings_of_one_each(longest: u64) -> f64 {
    (1..=longest).map(|period| 1.0 / period as f64).sum()
}

/// Returns how many of the `jobs` jobs must fire repeatedly to reach `rate` firings per second, and
/// the longest period of these jobs.
pub fn share(jobs: u64, rate: u64) -> anyhow::Result<(u64, u64)> {
    let busy = |longest| (rate * longest) as f64 / firings_of_one_each(longest);
    (1..=LONGEST_PERIOD)
        .rev()
        .map(|longest| (busy(longest).round() as u64, longest))
        .find(|(busy, _)| *busy <= jobs)
        .with_context(|| format!("--rate {rate} needs at least {rate} jobs, each once a second"))
}

/// Firings per second of `jobs` jobs with periods from 1 s to [`LONGEST_PERIOD`].
pub fn natural_rate(jobs: u64) -> f64 {
    jobs as f64 * firings_of_one_each(LONGEST_PERIOD) / LONGEST_PERIOD as f64
}

/// Returns the definition of a job with this interval whose runs do nothing.
pub fn noop_every(every: Span) -> anyhow::Result<Definition> {
    Ok(Definition::noop(Schedule::Interval(Interval::new(every, None)?)))
}

pub struct Registrar<'a> {
    pub store: &'a dyn Store,
    pub scope: Scope,
    pub chance: &'a dyn Chance,
    pub progress: &'a ProgressBar,
}

impl Registrar<'_> {
    /// Registers `count` jobs that are due no earlier than tomorrow.
    pub async fn idle(&self, count: u64, now: Timestamp) -> anyhow::Result<()> {
        let definition = noop_every(YEAR)?;
        let job = |_| {
            let later = Span::from_secs(86_400 + self.chance.bits() % 30_000_000);
            Ok(self.job(definition.clone(), now.saturating_add(later), now))
        };
        self.register(count, job).await.map(drop)
    }

    /// Registers `count` jobs with periods from 1 s to `longest`. The first run of each job is at a
    /// random time within one period after `start`. The misfire limit and the tolerance are a
    /// century, so that a late run still starts and misses no deadline. `like` completes each
    /// definition.
    pub async fn busy(
        &self,
        count: u64,
        longest: u64,
        start: Timestamp,
        overlap: OverlapPolicy,
        like: impl Fn(Definition) -> Definition,
    ) -> anyhow::Result<Plan> {
        let mut times = Vec::new();
        let job = |index| {
            let every = Span::from_secs(index % longest + 1);
            let phase = Span::from_micros(self.chance.bits() % every.as_micros());
            let first = start.saturating_add(phase);
            let interval = Interval::new(every, None)?.with_tolerance(Some(CENTURY));
            let definition = like(Definition {
                misfire_after: CENTURY,
                overlap,
                ..Definition::noop(Schedule::Interval(interval))
            });
            times.push((first, every));
            Ok(self.job(definition, first, start))
        };
        let jobs = self.register(count, job).await?;
        Ok(Plan { busy: jobs.into_iter().zip(times).collect() })
    }

    /// Registers `count` jobs with an interval of one year whose first run is due at `at`.
    pub async fn at_once(
        &self,
        count: u64,
        at: Timestamp,
        like: impl Fn(Definition) -> Definition,
    ) -> anyhow::Result<Plan> {
        let definition = like(noop_every(YEAR)?);
        let jobs = self.register(count, |_| Ok(self.job(definition.clone(), at, at))).await?;
        Ok(Plan { busy: jobs.into_iter().map(|job| (job, (at, YEAR))).collect() })
    }

    /// Registers `count` jobs, each with `times` due times before `now`, at a random phase.
    pub async fn past(
        &self,
        count: u64,
        every: Span,
        times: u64,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        let interval = Interval::new(every, None)?.with_tolerance(Some(CENTURY));
        let definition = Definition {
            misfire_after: CENTURY,
            overlap: OverlapPolicy::Allow,
            ..Definition::noop(Schedule::Interval(interval))
        };
        let job = |_| {
            let phase = Span::from_micros(self.chance.bits() % every.as_micros());
            let back = Span::from_micros(every.as_micros() * (times - 1)).saturating_add(phase);
            Ok(self.job(definition.clone(), now.saturating_sub(back), now))
        };
        self.register(count, job).await.map(drop)
    }

    /// Returns a job with this definition whose first run is due at `first`.
    pub fn job(&self, definition: Definition, first: Timestamp, now: Timestamp) -> NewJob {
        NewJob {
            id: JobId::new(now, self.chance.ten_bytes()),
            about: About::default(),
            definition,
            next_at: Some(first),
        }
    }

    /// Registers `count` jobs in batches and returns their numbers. `job` returns the job with an
    /// index from 0 to `count` - 1.
    pub async fn register(
        &self,
        count: u64,
        mut job: impl FnMut(u64) -> anyhow::Result<NewJob>,
    ) -> anyhow::Result<Vec<JobNo>> {
        let mut numbers = Vec::new();
        let mut done = 0;
        while done < count {
            let until = (done + BATCH).min(count);
            let jobs = (done..until).map(&mut job).collect::<anyhow::Result<_>>()?;
            for answer in self.store.register(&self.scope, jobs, Now::Database).await? {
                match answer {
                    Registered::Created { no, .. } => numbers.push(no),
                    Registered::NameTaken(other) | Registered::Duplicate(other) => anyhow::bail!(
                        "the store holds job {other} of an earlier measurement; use an empty store"
                    ),
                }
            }
            self.progress.inc(until - done);
            done = until;
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_makes_the_requested_rate() {
        let (busy, longest) = share(1_000_000, 10_000).unwrap();
        assert_eq!(longest, 60);
        assert!((natural_rate(busy) - 10_000.0).abs() < 1.0);
        let (busy, longest) = share(20_000, 10_000).unwrap();
        assert!(busy <= 20_000 && longest < 60);
        assert!(share(5_000, 10_000).is_err());
    }

    #[test]
    fn count_equals_the_number_of_expected_times() {
        let at = |secs: i64| Timestamp::from_micros(secs * 1_000_000);
        let plan = Plan {
            busy: BTreeMap::from([
                (JobNo(1), (at(10), Span::from_secs(7))),
                (JobNo(2), (at(99), Span::from_secs(1))),
            ]),
        };
        for until in [5, 10, 11, 17, 18, 100, 101] {
            let listed: usize = plan.expected(at(until)).values().map(Vec::len).sum();
            assert_eq!(plan.count(at(until)), listed as u64, "until {until}");
        }
    }
}
