//! Simulates a thousand jobs of all kinds on two nodes for a year. For one day a third of the
//! worker slots is lost, so jobs fall behind and must recover.

use std::time::Duration;

use evenkeel_core::blackout::Blackout;
use evenkeel_core::chance::Chance;
use evenkeel_core::condition::{Facts, Level, condition};
use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::order::Priority;
use evenkeel_core::retry::{Backoff, Jitter, RetryPolicy};
use evenkeel_core::schedule::{CalendarInterval, Cron, CronSchedule, Interval, Periodic, Schedule};
use evenkeel_core::{About, Definition, JobId, Span, Timestamp, Zone};
use evenkeel_engine::RandomChance;
use evenkeel_store::{
    AtRiskStore, ConditionCounts, JobState, JobStore, NewJob, Now, PageRequest, RiskFilter, Role,
    Scope, Store,
};
use serde_json::json;

use crate::body::Time;
use crate::small_cluster::{SmallCluster, run_paused};

const SEED: u64 = 2030;
const JOBS: u64 = 1000;
const DAYS: u64 = 365;
const LOST_ON_DAY: u64 = 180;
/// Number of worker slots of each of the two nodes. The second node is lost for a day.
const SLOTS: [usize; 2] = [6, 3];
/// Percentage of worker slots in use while both nodes run.
const LOAD_PERCENT: u64 = 88;
const POLL: Duration = Duration::from_secs(600);
const HOUR: Duration = Duration::from_secs(3600);
const DAY_SECS: u64 = 86_400;

fn hours(count: u64) -> Span {
    Span::from_secs(count * 3600)
}

/// Returns a schedule and its number of runs in ten days. Each run must finish within `slack` hours
/// after its scheduled time.
fn schedule(draw: &impl Fn(u64) -> u64, slack: u64) -> (Schedule, u64) {
    match draw(10) {
        0..4 => {
            let (every, times) = [(8, 30), (12, 20), (24, 10), (48, 5)][draw(4) as usize];
            let interval = Interval::new(hours(every), None).unwrap();
            let tolerance = Some(hours(slack));
            (Schedule::Interval(interval.with_tolerance(tolerance)), times)
        }
        4..6 => {
            let (minute, hour) = (draw(60), draw(24));
            let (days, times) = [("*", 10), ("1-5", 7)][draw(2) as usize];
            let cron = Cron::parse(&format!("{minute} {hour} * * {days}")).unwrap();
            let max_duration = Some(hours(slack));
            (Schedule::Cron(CronSchedule { cron, max_duration }), times)
        }
        6..8 => {
            let (cooldown, times) = [(20, 11), (44, 5)][draw(2) as usize];
            let periodic = Periodic::new(hours(cooldown + slack), Some(hours(cooldown)));
            (Schedule::Periodic(periodic.unwrap()), times)
        }
        _ => {
            let (every, times) = [("P1D", 10), ("P1W", 1), ("P1M", 0)][draw(3) as usize];
            let every = every.parse().unwrap();
            let anchor =
                Timestamp::from_micros(1_899_000_000_000_000 + draw(DAY_SECS) as i64 * 1_000_000);
            let tolerance = Some(hours(slack));
            (Schedule::Calendar(CalendarInterval { every, anchor: Some(anchor), tolerance }), times)
        }
    }
}

fn plan() -> Vec<Definition> {
    let chance = RandomChance::from_seed(SEED);
    let draw = |below: u64| chance.bits() % below;
    let mut load = 0;
    let mut plan: Vec<Definition> = (0..JOBS)
        .map(|index| {
            let in_blackout = index % 8 == 0;
            // Jobs with a blackout may have to wait for two hours.
            let slack = if in_blackout { 6 } else { 2 + draw(3) };
            let (schedule, times) = schedule(&draw, slack);
            load += times;
            let blackout = |hour: u64| jiff::civil::time((hour % 24) as i8, 0, 0, 0);
            let dark_from = draw(24);
            let blackouts =
                vec![Blackout { start: blackout(dark_from), end: blackout(dark_from + 2) }];
            let zones = ["UTC", "Europe/Berlin", "America/Toronto"];
            let zone = if in_blackout { "UTC" } else { zones[draw(3) as usize] };
            Definition {
                timezone: Zone::get(zone).unwrap(),
                blackout_periods: if in_blackout { blackouts } else { Vec::new() },
                avoid_blackout: index % 16 == 0,
                priority: Priority::try_from(if index % 11 == 0 { 50 } else { 0 }).unwrap(),
                retry: RetryPolicy {
                    max_retries: 3,
                    backoff: Backoff::Fixed { delay: Span::from_secs(300) },
                    jitter: Jitter::None,
                },
                ..Definition::noop(schedule)
            }
        })
        .collect();
    let places = SLOTS.iter().sum::<usize>() as u64;
    let mean_ms = places * 10 * DAY_SECS * 1000 * LOAD_PERCENT / 100 / load;
    for (index, definition) in plan.iter_mut().enumerate() {
        let fails_permille = if index % 10 == 3 { 20 } else { 0 };
        let config = json!({ "mean_ms": mean_ms, "fails_permille": fails_permille });
        definition.executor = ExecutorSpec { kind: "noop".into(), config };
    }
    plan
}

#[derive(Debug, Default)]
struct Year {
    runs: u64,
    /// The hour with the most jobs in WARNING or ERROR before the node is lost, and the numbers of
    /// these jobs. `worst_while_lost` is the same for the time while the node is lost.
    worst_before: (u64, u64, u64),
    worst_while_lost: (u64, u64, u64),
    /// The first hour after the loss of the node in which all jobs were OK.
    all_ok_again: Option<u64>,
    /// The last hour in which all jobs were OK.
    all_ok_last: u64,
    violations: Vec<String>,
}

fn worse(worst: &mut (u64, u64, u64), hour: u64, now: ConditionCounts) {
    if now.warning + now.error > worst.1 + worst.2 {
        *worst = (hour, now.warning, now.error);
    }
}

/// Checks that every deadline missed for more than an hour is reported.
async fn missed_deadlines_are_reported(
    cluster: &SmallCluster,
    scope: &Scope,
    ids: &[JobId],
    violations: &mut Vec<String>,
) {
    let now = cluster.time.db();
    let page = PageRequest::first(JOBS as u32);
    let listed =
        cluster.model.list_at_risk(scope, RiskFilter::default(), page).await.unwrap().items;
    for id in ids {
        let job = cluster.model.get(scope, *id).await.unwrap().unwrap();
        let facts = Facts {
            definition: &job.definition,
            history: &job.history,
            since: job.since,
            active: job.state == JobState::Active,
            next_at: job.next_at,
            last_fired_at: job.last_fired_at,
            live: job.live > 0,
            running_since: job.running_since,
        };
        let found = condition(&facts, now);
        let long_ago = now.saturating_sub(hours(1));
        let broken = found.level() == Level::Error
            && found.deadline.is_some_and(|deadline| deadline < long_ago);
        let known = listed
            .iter()
            .any(|at_risk| at_risk.no == job.no && at_risk.reason.level() == Level::Error);
        if broken && !known {
            violations.push(format!(
                "at {now} the condition of job {} does not show {:?}",
                job.no, found.reason
            ));
        }
    }
}

async fn live() -> Year {
    let cluster = SmallCluster::new(POLL);
    let scope = Scope { tenant: cluster.model.tenant("year").await.unwrap(), role: Role::Admin };
    let chance = RandomChance::from_seed(SEED + 1);
    let now = cluster.time.db();
    let jobs: Vec<NewJob> = plan()
        .into_iter()
        .map(|definition| {
            let first = definition.timetable().first_after(now).unwrap();
            // Start times are spread evenly over the interval, as balancing does for new jobs.
            let spread = match &definition.schedule {
                Schedule::Interval(every) => chance.bits() % every.every().as_micros(),
                Schedule::Periodic(every) => chance.bits() % every.period().as_micros(),
                Schedule::Once(_) | Schedule::Calendar(_) | Schedule::Cron(_) => 0,
            };
            let next_at = match &definition.schedule {
                Schedule::Interval(_) => now.saturating_add(Span::from_micros(spread)),
                _ => first.saturating_add(Span::from_micros(spread)),
            };
            let id = JobId::new(now, chance.ten_bytes());
            NewJob { id, about: About::default(), definition, next_at: Some(next_at) }
        })
        .collect();
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    cluster.model.register(&scope, jobs, Now::Database).await.unwrap();
    let _first = cluster.start("first", SLOTS[0]).await;
    let mut second = Some(cluster.start("second", SLOTS[1]).await);
    let mut year = Year::default();
    for hour in 0..DAYS * 24 {
        if hour == LOST_ON_DAY * 24 {
            second = None;
        }
        if hour == (LOST_ON_DAY + 1) * 24 {
            second = Some(cluster.start("second", SLOTS[1]).await);
        }
        tokio::time::sleep(HOUR).await;
        let counts = cluster.model.all_condition_counts().await.unwrap();
        let all_ok = counts.warning + counts.error == 0;
        match hour / 24 {
            // In the first days, average durations of runs are not known yet.
            0..3 => {}
            day if day < LOST_ON_DAY => worse(&mut year.worst_before, hour, counts),
            LOST_ON_DAY => worse(&mut year.worst_while_lost, hour, counts),
            _ if all_ok => year.all_ok_again = year.all_ok_again.or(Some(hour)),
            _ if year.all_ok_again.is_none() => worse(&mut year.worst_while_lost, hour, counts),
            _ => {}
        }
        if all_ok {
            year.all_ok_last = hour;
        }
        if hour % 24 == 23 {
            missed_deadlines_are_reported(&cluster, &scope, &ids, &mut year.violations).await;
        }
    }
    drop(second);
    let mut seen = cluster.seen.lock().unwrap();
    year.runs = seen.runs;
    year.violations.append(&mut seen.violations);
    year
}

#[test]
fn year_recovers_from_a_day_with_too_few_workers() {
    let year = run_paused(live());
    eprintln!("{year:?}");
    let of_loss = |hour: u64| hour - LOST_ON_DAY * 24;
    let (hour, warning, error) = year.worst_while_lost;
    eprintln!(
        "{} runs; at worst, {} h after a third of the slots was lost, {warning} jobs in WARNING \
         and {error} in ERROR; all OK again {:?} h after the loss",
        year.runs,
        of_loss(hour),
        year.all_ok_again.map(of_loss),
    );
    assert!(year.violations.is_empty(), "{:?}", &year.violations[..year.violations.len().min(10)]);
    assert!(year.runs > 200_000, "{}", year.runs);
    assert!(error > 20 && error > 3 * year.worst_before.2, "nothing fell behind: {year:?}");
    assert!(year.all_ok_again.is_some_and(|hour| of_loss(hour) < 24 * 7), "{year:?}");
    assert!(year.all_ok_last + 24 > DAYS * 24, "{year:?}");
}
