//! Creates jobs of all kinds, and computes their expected run times without code of the engine.

use evenkeel_core::blackout::Blackout;
use evenkeel_core::chance::Chance;
use evenkeel_core::job::{Bounds, ExecutorSpec, OnLostWorker};
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::order::Priority;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::retry::{Backoff, Jitter, RetryPolicy};
use evenkeel_core::schedule::{CalendarInterval, Cron, CronSchedule, Interval, Periodic, Schedule};
use evenkeel_core::{About, Definition, JobId, JobNo, Span, Timestamp};
use evenkeel_store::{JobStore, NewJob, Now, Registered, Scope};
use serde_json::json;

use super::World;
use super::commands::ScheduleChange;
use crate::body::Time;

/// The expected scheduled times of a job.
#[derive(Copy, Clone, Debug)]
pub enum Timing {
    /// The job runs at `first` and then at the fixed interval `every`.
    Fixed { first: Timestamp, every: Span },
    /// Each run starts after a fixed pause since the end of the previous run.
    AfterEnds(Span),
}

/// A job with its expected scheduled times.
#[derive(Clone, Debug)]
pub struct PlannedJob {
    pub job: JobNo,
    pub id: JobId,
    pub timing: Timing,
    pub never_fails: bool,
    pub definition: Definition,
    /// Effects of acknowledged commands, in the order of the commands.
    pub changes: Vec<ScheduleChange>,
}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400;

/// Cron expressions whose scheduled times have equal distances, with the distance in seconds.
const CRONS: [(&str, u64); 9] = [
    ("*/10 * * * * *", 10),
    ("*/20 * * * * *", 20),
    ("* * * * *", 60),
    ("*/5 * * * *", 300),
    ("*/15 * * * *", 900),
    ("0,30 * * * *", 1800),
    ("0 * * * *", 3600),
    ("0 */2 * * *", 7200),
    ("0 0,6,12,18 * * *", 21_600),
];

impl World {
    pub(super) async fn register(&mut self, scope: &Scope, index: usize) {
        let now = self.time.db();
        let draw = |below: u64| self.chance.bits() % below;
        let shortest = self.scenario.shortest;
        let secs = shortest * [1, 2, 5, 10, 30, 60][draw(6) as usize];
        let kind = draw(10);
        let mut definition = self.plain(secs, index);
        let mut timing = {
            let every = Span::from_secs(secs);
            let soon = now.saturating_add(Span::from_secs(2));
            let first = soon.saturating_add(Span::from_micros(draw(every.as_micros())));
            Timing::Fixed { first, every }
        };
        match kind {
            5 => {
                let fit = CRONS.iter().filter(|(_, every)| {
                    (10.max(shortest)..=(120 * shortest).max(60)).contains(every)
                });
                let fit: Vec<_> = fit.collect();
                let (expression, every) = *fit[draw(fit.len() as u64) as usize];
                let cron = Cron::parse(expression).unwrap();
                definition.schedule = Schedule::Cron(CronSchedule { cron, max_duration: None });
                timing = on_the_grid(now, every, 0);
            }
            6 => {
                let pause = Span::from_secs(secs.max(4) / 2);
                let periodic = Periodic::new(Span::from_secs(secs.max(4)), Some(pause)).unwrap();
                definition.schedule = Schedule::Periodic(periodic);
                definition.executor.config["ms"] = json!(1 + draw(secs.min(10) * 100));
                timing = Timing::AfterEnds(pause);
            }
            7 => {
                let starts = 60 * (5 + draw(15) as i64) * (shortest as i64).min(24);
                let length = 60 * (2 + draw(8) as i64) * (shortest as i64).min(24);
                let blackout = seconds_of(now) + starts;
                definition.blackout_periods =
                    vec![Blackout { start: clock(blackout), end: clock(blackout + length) }];
                definition.avoid_blackout = draw(3) == 0;
            }
            8 => {
                // The runs of the job are often longer than its interval.
                definition.overlap = OverlapPolicy::Replace;
                definition.executor.config["ms"] = json!(secs * 2_000);
            }
            9 if draw(2) == 0 => {
                definition.bounds = Bounds { max_runs: Some(2 + draw(9)), ..Bounds::default() };
            }
            9 => {
                let anchor = now.saturating_sub(Span::from_secs(3 * 86_400 - 60 * (5 + draw(30))));
                let every = CalendarInterval {
                    every: "P1D".parse().unwrap(),
                    anchor: Some(anchor),
                    tolerance: None,
                };
                definition.schedule = Schedule::Calendar(every);
                definition.dont_run_on_nodes = vec!["node-0".into()];
                timing = on_the_grid(now, DAY as u64, anchor.as_micros().rem_euclid(DAY * SECOND));
            }
            _ => {}
        }
        if self.scenario.limits && kind < 5 {
            definition.concurrency_key = Some(format!("key {}", index % 2));
            definition.concurrency_limit = Some(2);
        }
        if index % 3 == 1 {
            definition.on_lost_worker = OnLostWorker::Fail;
        }
        if draw(12) == 0 {
            definition.dont_run_on_nodes = vec![format!("node-{}", draw(3))];
        }
        if self.scenario.nodes == 1 {
            // In a cluster with only one node, no other node could run the job.
            definition.dont_run_on_nodes.clear();
        }
        let next_at = match timing {
            Timing::Fixed { first, .. } => first,
            Timing::AfterEnds(_) => now,
        };
        let id = JobId::new(now, self.chance.ten_bytes());
        let job = NewJob {
            id,
            about: About::default(),
            definition: definition.clone(),
            next_at: Some(next_at),
        };
        let answers = self.model.register(scope, vec![job], Now::Database).await.unwrap();
        let Registered::Created { no: job, .. } = answers[0] else { panic!("{answers:?}") };
        let never_fails = definition.executor.config["fails_percent"] == 0;
        self.plan.push(PlannedJob {
            job,
            id,
            timing,
            never_fails,
            definition,
            changes: Vec::new(),
        });
    }

    /// Returns a job with a fixed interval, which is the most frequent kind.
    fn plain(&self, secs: u64, index: usize) -> Definition {
        let draw = |below: u64| self.chance.bits() % below;
        let fails_percent = if index.is_multiple_of(4) { 30 } else { 0 };
        // Some runs take so long that pings report them as long attempts.
        let longest = if secs >= 60 { 40_000 } else { (secs * 400).min(3_000) };
        let every = Interval::new(Span::from_secs(secs), None).unwrap();
        Definition {
            priority: Priority::try_from([10, 40, 70, 90][index % 4]).unwrap(),
            executor: ExecutorSpec {
                kind: "noop".into(),
                config: json!({ "ms": 1 + draw(longest), "fails_percent": fails_percent }),
            },
            // A job with the policy `Queue` or `All` can catch up only if it does not run all the
            // time.
            overlap: match draw(3) {
                0 if (10..60).contains(&secs) => OverlapPolicy::Queue,
                _ => OverlapPolicy::Skip,
            },
            misfire: match draw(3) {
                0 if (10..60).contains(&secs) => MisfirePolicy::All,
                1 => MisfirePolicy::Skip,
                _ => MisfirePolicy::Last,
            },
            retry: RetryPolicy {
                max_retries: 2,
                backoff: Backoff::Fixed { delay: Span::from_secs(2) },
                jitter: Jitter::Symmetric { percent: 20 },
            },
            ..Definition::noop(Schedule::Interval(every))
        }
    }
}

/// Returns the scheduled times after `now` that are `phase` microseconds after a multiple of
/// `every` seconds.
fn on_the_grid(now: Timestamp, every: u64, phase: i64) -> Timing {
    let step = every as i64 * SECOND;
    let past = (now.as_micros() - phase).div_euclid(step);
    let first = Timestamp::from_micros((past + 1) * step + phase);
    Timing::Fixed { first, every: Span::from_secs(every) }
}

fn seconds_of(moment: Timestamp) -> i64 {
    moment.as_micros() / SECOND
}

/// Returns the time of day in UTC for a time in seconds since 1970.
fn clock(secs: i64) -> jiff::civil::Time {
    let of_day = secs.rem_euclid(DAY);
    let part = |unit: i64, count: i64| (of_day / unit % count) as i8;
    jiff::civil::time(part(3600, 24), part(60, 60), part(1, 60), 0)
}
