//! Checks the policies of each job, such as blackouts, forbidden nodes, overlap and the maximum
//! number of runs.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::blackout::Blackout;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{AttemptKey, JobNo, Sequence, Span, Timestamp};
use evenkeel_store::Attempt;

use crate::body::BodyRecord;
use crate::checker::Evidence;
use crate::world::{PlannedJob, Timing};

const DAY: i64 = 86_400 * 1_000_000;
/// Maximum time from the cancellation of an attempt until it stops, and from the commit of its
/// claim until it starts.
const AT_ONCE: Span = Span::from_millis(100);
/// The database's clock is moved by at most 30 s, and at most twice during an execution.
const CLOCK_STEPS: Span = Span::from_secs(60);

pub fn check(evidence: &Evidence<'_>, runs: &[Attempt], violations: &mut Vec<String>) {
    let mut bodies: BTreeMap<JobNo, Vec<&BodyRecord>> = BTreeMap::new();
    for body in evidence.records {
        bodies.entry(body.key.job_no).or_default().push(body);
    }
    let mut stored: BTreeMap<JobNo, Vec<&Attempt>> = BTreeMap::new();
    for run in runs {
        stored.entry(run.key.job_no).or_default().push(run);
    }
    for planned in evidence.plan {
        let bodies = bodies.remove(&planned.job).unwrap_or_default();
        let runs = stored.remove(&planned.job).unwrap_or_default();
        nothing_runs_in_the_dark(evidence, planned, &bodies, violations);
        nothing_runs_where_it_may_not(planned, &bodies, violations);
        only_newer_times_replace(evidence, planned, &runs, violations);
        pauses_are_kept(evidence, planned, &bodies, &runs, violations);
        no_more_runs_than_allowed(evidence, planned, &runs, violations);
    }
}

/// Returns the sum of the lengths of all blackouts, which bounds how long they can delay a start.
pub fn longest_blackout(periods: &[Blackout]) -> Span {
    let lengths = periods.iter().map(|period| Span::from_micros(blackout_hours(period).1 as u64));
    lengths.fold(Span::ZERO, Span::saturating_add)
}

/// Returns the start of a blackout as time of day, and its length, both in microseconds.
fn blackout_hours(period: &Blackout) -> (i64, i64) {
    let micros = |time: jiff::civil::Time| {
        let (hour, minute, second) = (time.hour(), time.minute(), time.second());
        (i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second)) * 1_000_000
    };
    (micros(period.start), (micros(period.end) - micros(period.start)).rem_euclid(DAY))
}

pub fn blackout_overlap(period: &Blackout, from: i64, to: i64) -> i64 {
    let (start, length) = blackout_hours(period);
    let first_day = (from - start).div_euclid(DAY);
    (first_day..=first_day + (to - from) / DAY + 1)
        .map(|day| (day * DAY + start, day * DAY + start + length))
        .map(|(blackout, light)| (to.min(light) - from.max(blackout)).max(0))
        .sum()
}

fn nothing_runs_in_the_dark(
    evidence: &Evidence<'_>,
    planned: &PlannedJob,
    bodies: &[&BodyRecord],
    violations: &mut Vec<String>,
) {
    let slack = if evidence.scenario.faults.time { CLOCK_STEPS } else { AT_ONCE };
    for period in &planned.definition.blackout_periods {
        for body in bodies {
            let (began, ended) = (body.began_db.as_micros(), body.ended_db.as_micros());
            let blackout = blackout_overlap(period, began, ended.min(evidence.until.as_micros()));
            if blackout > slack.as_micros() as i64 {
                violations.push(format!(
                    "I6: {:?} ran in a blackout for {blackout} us: {body:?}",
                    body.key
                ));
            }
        }
    }
}

fn nothing_runs_where_it_may_not(
    planned: &PlannedJob,
    bodies: &[&BodyRecord],
    violations: &mut Vec<String>,
) {
    for body in bodies {
        if planned.definition.dont_run_on_nodes.contains(&format!("node-{}", body.node)) {
            violations.push(format!("I6: {:?} ran on the forbidden node {}", body.key, body.node));
        }
    }
}

/// A run is replaced only by a later run of the same job that is due.
fn only_newer_times_replace(
    evidence: &Evidence<'_>,
    planned: &PlannedJob,
    runs: &[&Attempt],
    violations: &mut Vec<String>,
) {
    let Timing::Fixed { first, every } = planned.timing else { return };
    for run in runs.iter().filter(|run| run.status == AttemptStatus::Superseded) {
        let after = run.key.scheduled_at.max(first.saturating_sub(every)).saturating_add(every);
        // A store call whose answer was lost may be committed after the newer run began, and the
        // database's clock may be set back.
        let late = evidence.scenario.faults.delay_changes() || evidence.scenario.faults.time;
        let replaced = run.finished_at.is_some_and(|ended| late || ended >= after)
            || run.key.sequence != Sequence::REGULAR;
        if planned.definition.overlap != OverlapPolicy::Replace || !replaced {
            violations.push(format!("{:?} was replaced without a newer time", run.key));
        }
    }
}

/// A periodic job starts its next run after the configured pause since the end of the previous run,
/// neither earlier nor later.
fn pauses_are_kept(
    evidence: &Evidence<'_>,
    planned: &PlannedJob,
    bodies: &[&BodyRecord],
    runs: &[&Attempt],
    violations: &mut Vec<String>,
) {
    let Timing::AfterEnds(pause) = planned.timing else { return };
    let faults = evidence.scenario.faults;
    let slack = if faults.time { CLOCK_STEPS } else { Span::ZERO };
    let healthy = !(faults.time || faults.delay_changes() || faults.crashes) && planned.never_fails;
    let first = |body: &&&BodyRecord| {
        let regular = AttemptKey::regular(body.key.job_no, body.key.scheduled_at);
        body.key == regular && body.fence == 1
    };
    let ends: BTreeMap<(AttemptKey, u32), Timestamp> =
        runs.iter().filter_map(|run| Some(((run.key, run.fence.0), run.finished_at?))).collect();
    for body in bodies.iter().filter(first) {
        // Compares true times, because the database's clock may have been set back.
        let before = bodies.iter().filter(|other| other.ended <= body.began);
        let ends = before
            .filter_map(|other| ends.get(&(other.key, other.fence)).copied())
            .filter(|end| *end <= body.began_db);
        let Some(last) = ends.max() else { continue };
        let earliest = last.saturating_add(pause);
        if body.began_db.saturating_add(slack) < earliest {
            violations
                .push(format!("{:?} began before its pause was over, at {earliest}", body.key));
        }
        let forbidden = !planned.definition.dont_run_on_nodes.is_empty();
        let latest = earliest.saturating_add(Span::from_millis(1_100));
        // While nodes join and leave the cluster, shards change their owner, and runs may be late.
        let stable = Duration::from_secs(30)..Duration::from_secs(evidence.scenario.hours * 3600);
        // A run under a concurrency limit may have to wait for a permit.
        let limited = planned.definition.concurrency_key.is_some()
            || evidence.scenario.shared_limits.is_some();
        let judged = healthy && !forbidden && !limited && stable.contains(&body.began);
        if judged && body.began_db > latest {
            violations
                .push(format!("I5: {:?} began at {}, not {earliest}", body.key, body.began_db));
        }
    }
    if bodies.is_empty() {
        violations.push(format!("job {} never ran", planned.job));
    }
}

fn no_more_runs_than_allowed(
    evidence: &Evidence<'_>,
    planned: &PlannedJob,
    runs: &[&Attempt],
    violations: &mut Vec<String>,
) {
    let (Some(max), Timing::Fixed { first, every }) =
        (planned.definition.bounds.max_runs, planned.timing)
    else {
        return;
    };
    let mut times: Vec<Timestamp> = runs
        .iter()
        .filter(|run| run.key.sequence == Sequence::REGULAR && run.skipped.is_none())
        .map(|run| run.key.scheduled_at)
        .collect();
    times.sort_unstable();
    times.dedup();
    let skipped: u64 = runs.iter().filter_map(|run| run.skipped).map(|skip| skip.count).sum();
    let last = first.saturating_add(every.saturating_mul(max + skipped));
    let fired = times.len() as u64;
    if fired > max || (fired < max && last < evidence.checked_until(planned)) {
        violations.push(format!("job {} ran {fired} times, not {max}", planned.job));
    }
}
