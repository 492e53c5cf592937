//! Jobs to measure with.

use std::collections::BTreeMap;

use anyhow::Context;
use evenkeel_core::chance::Chance;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::schedule::{Interval, Schedule};
use evenkeel_core::{About, Definition, JobId, JobNo, Span, Timestamp};
use evenkeel_store::{NewJob, Now, Registered, Scope, Store};
use indicatif::ProgressBar;

/// Jobs registered in one request.
pub const BATCH: usize = 5000;
/// Periods go from 1 s to this.
const LONGEST_PERIOD: u64 = 60;
/// Longer than any measurement.
const CENTURY: Span = Span::from_secs(100 * 365 * 86_400);

/// What each job's times will be.
#[derive(Debug, Default)]
pub struct Plan {
    /// First time and period of every busy job.
    pub busy: BTreeMap<JobNo, (Timestamp, Span)>,
}

impl Plan {
    /// All times before `until`.
    pub fn expected(&self, until: Timestamp) -> BTreeMap<JobNo, Vec<Timestamp>> {
        let times = |(first, every): (Timestamp, Span)| {
            std::iter::successors(Some(first), move |time| time.checked_add(every))
                .take_while(move |time| *time < until)
                .collect()
        };
        self.busy.iter().map(|(job, plan)| (*job, times(*plan))).collect()
    }

    /// How many times before `until` there are.
    pub fn count(&self, until: Timestamp) -> u64 {
        let times = |(first, every): &(Timestamp, Span)| match until.since(*first).as_micros() {
            0 => 0,
            span => (span - 1) / every.as_micros() + 1,
        };
        self.busy.values().map(times).sum()
    }
}

/// How many busy jobs with periods from 1 s to `longest` are due `rate` times a second.
fn busy_for(rate: u64, longest: u64) -> u64 {
    let per_second: f64 = (1..=longest).map(|period| 1.0 / period as f64).sum::<f64>();
    (rate as f64 * longest as f64 / per_second).round() as u64
}

/// How many of `jobs` must be busy, and with what longest period, to be due `rate` times a second.
pub fn share(jobs: u64, rate: u64) -> anyhow::Result<(u64, u64)> {
    (1..=LONGEST_PERIOD)
        .rev()
        .map(|longest| (busy_for(rate, longest), longest))
        .find(|(busy, _)| *busy <= jobs)
        .with_context(|| format!("--rate {rate} needs at least {rate} jobs, each once a second"))
}

/// Firings a second of jobs with all periods.
pub fn natural_rate(jobs: u64) -> f64 {
    let per_second: f64 = (1..=LONGEST_PERIOD).map(|period| 1.0 / period as f64).sum::<f64>();
    jobs as f64 * per_second / LONGEST_PERIOD as f64
}

/// Registers jobs for a measurement.
pub struct Registrar<'a> {
    /// Where.
    pub store: &'a dyn Store,
    /// For whom.
    pub scope: Scope,
    /// Chance.
    pub chance: &'a dyn Chance,
    /// Shows how far it is.
    pub progress: &'a ProgressBar,
}

impl Registrar<'_> {
    /// `count` jobs that are due again only in a year.
    pub async fn idle(&self, count: u64, now: Timestamp) -> anyhow::Result<()> {
        let year = Span::from_secs(365 * 86_400);
        let definition = Definition::noop(Schedule::Interval(Interval::new(year, None)?));
        let mut left = count;
        while left > 0 {
            let batch = left.min(BATCH as u64);
            let far =
                |chance: u64| now.saturating_add(Span::from_secs(86_400 + chance % 30_000_000));
            let jobs: Vec<NewJob> =
                (0..batch).map(|_| self.job(&definition, far(self.chance.bits()), now)).collect();
            self.store.register(&self.scope, jobs, Now::Database).await?;
            self.progress.inc(batch);
            left -= batch;
        }
        Ok(())
    }

    /// `count` jobs with periods from 1 s to `longest` and phases spread over them, from `start`.
    /// A time may be as late as it likes: it is late, not missed, and no promise is broken, so that
    /// nobody is kept busy with judging. They do what `like` makes of nothing.
    pub async fn busy(
        &self,
        count: u64,
        longest: u64,
        start: Timestamp,
        overlap: OverlapPolicy,
        like: impl Fn(Definition) -> Definition,
    ) -> anyhow::Result<Plan> {
        let mut plan = Plan::default();
        let mut index = 0;
        while index < count {
            let batch = (count - index).min(BATCH as u64);
            let mut jobs = Vec::with_capacity(BATCH);
            let mut planned = Vec::with_capacity(BATCH);
            for _ in 0..batch {
                let every = Span::from_secs(index % longest + 1);
                let phase = Span::from_micros(self.chance.bits() % every.as_micros());
                let first = start.saturating_add(phase);
                let interval = Interval::new(every, None)?.with_tolerance(Some(CENTURY));
                let definition = like(Definition {
                    misfire_after: CENTURY,
                    overlap,
                    ..Definition::noop(Schedule::Interval(interval))
                });
                jobs.push(self.job(&definition, first, start));
                planned.push((first, every));
                index += 1;
            }
            self.take(&mut plan, jobs, planned).await?;
        }
        Ok(plan)
    }

    /// `count` jobs that are due at `at` and then not for a year.
    pub async fn at_once(
        &self,
        count: u64,
        at: Timestamp,
        like: impl Fn(Definition) -> Definition,
    ) -> anyhow::Result<Plan> {
        let year = Span::from_secs(365 * 86_400);
        let definition = like(Definition::noop(Schedule::Interval(Interval::new(year, None)?)));
        let mut plan = Plan::default();
        let mut left = count;
        while left > 0 {
            let batch = left.min(BATCH as u64);
            let jobs = (0..batch).map(|_| self.job(&definition, at, at)).collect();
            self.take(&mut plan, jobs, vec![(at, year); batch as usize]).await?;
            left -= batch;
        }
        Ok(plan)
    }

    /// A job like `definition` that is due at `first`.
    pub fn job(&self, definition: &Definition, first: Timestamp, now: Timestamp) -> NewJob {
        NewJob {
            id: JobId::new(now, self.chance.ten_bytes()),
            about: About::default(),
            definition: definition.clone(),
            next_at: Some(first),
        }
    }

    async fn take(
        &self,
        plan: &mut Plan,
        jobs: Vec<NewJob>,
        planned: Vec<(Timestamp, Span)>,
    ) -> anyhow::Result<()> {
        let count = jobs.len() as u64;
        let registered = self.store.register(&self.scope, jobs, Now::Database).await?;
        for (answer, times) in registered.into_iter().zip(planned) {
            match answer {
                Registered::Created { no: job, .. } => plan.busy.insert(job, times),
                Registered::NameTaken(other) | Registered::Duplicate(other) => {
                    anyhow::bail!("the name is taken by {other}")
                }
            };
        }
        self.progress.inc(count);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busy_share_is_due_at_the_wanted_rate() {
        let (busy, longest) = share(1_000_000, 10_000).unwrap();
        assert_eq!(longest, 60);
        assert!((natural_rate(busy) - 10_000.0).abs() < 1.0);
        let (busy, longest) = share(20_000, 10_000).unwrap();
        assert!(busy <= 20_000 && longest < 60);
        assert!(share(5_000, 10_000).is_err());
    }

    #[test]
    fn counting_times_agrees_with_listing_them() {
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
