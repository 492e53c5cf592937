//! Judges by each job's policies: blackouts, forbidden nodes, replaced runs, pauses, how often.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_core::blackout::Blackout;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{AttemptKey, JobNo, Sequence, Span, Timestamp};
use evenkeel_store::Attempt;

use crate::body::Lived;
use crate::checker::Evidence;
use crate::world::{Planned, Rhythm};

const DAY: i64 = 86_400 * 1_000_000;
/// A body ends this soon after it is told to, and a start is this soon after its commit.
const AT_ONCE: Span = Span::from_millis(100);
/// The database's clock is set by no more than this at a time, twice in the life of a body.
const CLOCK_STEPS: Span = Span::from_secs(60);

/// Tells every policy that was not kept.
pub fn check(evidence: &Evidence<'_>, runs: &[Attempt], bad: &mut Vec<String>) {
    let mut lives: BTreeMap<JobNo, Vec<&Lived>> = BTreeMap::new();
    for lived in evidence.book {
        lives.entry(lived.key.job_no).or_default().push(lived);
    }
    let mut stored: BTreeMap<JobNo, Vec<&Attempt>> = BTreeMap::new();
    for run in runs {
        stored.entry(run.key.job_no).or_default().push(run);
    }
    for planned in evidence.plan {
        let lives = lives.remove(&planned.job).unwrap_or_default();
        let runs = stored.remove(&planned.job).unwrap_or_default();
        nothing_runs_in_the_dark(evidence, planned, &lives, bad);
        nothing_runs_where_it_may_not(planned, &lives, bad);
        only_newer_times_replace(evidence, planned, &runs, bad);
        pauses_are_kept(evidence, planned, &lives, &runs, bad);
        no_more_runs_than_allowed(evidence, planned, &runs, bad);
    }
}

/// The longest time in which nothing may start.
pub fn longest_dark(periods: &[Blackout]) -> Span {
    let lengths = periods.iter().map(|period| Span::from_micros(dark_hours(period).1 as u64));
    lengths.fold(Span::ZERO, Span::saturating_add)
}

/// When a blackout begins, in microseconds of the day, and how long it is.
fn dark_hours(period: &Blackout) -> (i64, i64) {
    let micros = |time: jiff::civil::Time| {
        let (hour, minute, second) = (time.hour(), time.minute(), time.second());
        (i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second)) * 1_000_000
    };
    (micros(period.start), (micros(period.end) - micros(period.start)).rem_euclid(DAY))
}

/// How much of the time from `from` to `to` lies in a blackout, in microseconds.
pub fn dark_time(period: &Blackout, from: i64, to: i64) -> i64 {
    let (start, length) = dark_hours(period);
    let first_day = (from - start).div_euclid(DAY);
    (first_day..=first_day + (to - from) / DAY + 1)
        .map(|day| (day * DAY + start, day * DAY + start + length))
        .map(|(dark, light)| (to.min(light) - from.max(dark)).max(0))
        .sum()
}

fn nothing_runs_in_the_dark(
    evidence: &Evidence<'_>,
    planned: &Planned,
    lives: &[&Lived],
    bad: &mut Vec<String>,
) {
    let slack = if evidence.scenario.faults.time { CLOCK_STEPS } else { AT_ONCE };
    for period in &planned.definition.blackout_periods {
        for lived in lives {
            let (began, ended) = (lived.began_db.as_micros(), lived.ended_db.as_micros());
            let dark = dark_time(period, began, ended.min(evidence.until.as_micros()));
            if dark > slack.as_micros() as i64 {
                bad.push(format!("I6: {:?} ran in a blackout for {dark} us: {lived:?}", lived.key));
            }
        }
    }
}

fn nothing_runs_where_it_may_not(planned: &Planned, lives: &[&Lived], bad: &mut Vec<String>) {
    for lived in lives {
        if planned.definition.dont_run_on_nodes.contains(&format!("node-{}", lived.node)) {
            bad.push(format!("I6: {:?} ran on the forbidden node {}", lived.key, lived.node));
        }
    }
}

/// What was replaced was replaced by a time that had come; nothing else is.
fn only_newer_times_replace(
    evidence: &Evidence<'_>,
    planned: &Planned,
    runs: &[&Attempt],
    bad: &mut Vec<String>,
) {
    let Rhythm::Even { first, every } = planned.rhythm else { return };
    for run in runs.iter().filter(|run| run.status == AttemptStatus::Superseded) {
        let after = run.key.scheduled_at.max(first.saturating_sub(every)).saturating_add(every);
        // A lost answer may come true when the newer run has begun, and clocks may be set back.
        let late = evidence.scenario.faults.delay_changes() || evidence.scenario.faults.time;
        let replaced = run.finished_at.is_some_and(|ended| late || ended >= after)
            || run.key.sequence != Sequence::REGULAR;
        if planned.definition.overlap != OverlapPolicy::Replace || !replaced {
            bad.push(format!("{:?} was replaced by nothing", run.key));
        }
    }
}

/// A job whose times follow from its ends pauses after each, and no longer than it must.
fn pauses_are_kept(
    evidence: &Evidence<'_>,
    planned: &Planned,
    lives: &[&Lived],
    runs: &[&Attempt],
    bad: &mut Vec<String>,
) {
    let Rhythm::AfterEnds(pause) = planned.rhythm else { return };
    let faults = evidence.scenario.faults;
    let slack = if faults.time { CLOCK_STEPS } else { Span::ZERO };
    let healthy = !(faults.time || faults.delay_changes() || faults.crashes) && planned.is_sound;
    let first = |lived: &&&Lived| {
        let regular = AttemptKey::regular(lived.key.job_no, lived.key.scheduled_at);
        lived.key == regular && lived.fence == 1
    };
    let ends: BTreeMap<(AttemptKey, u32), Timestamp> =
        runs.iter().filter_map(|run| Some(((run.key, run.fence.0), run.finished_at?))).collect();
    for lived in lives.iter().filter(first) {
        // In true time: the database's clock may have been set back.
        let before = lives.iter().filter(|other| other.ended <= lived.began);
        let ends = before
            .filter_map(|other| ends.get(&(other.key, other.fence)).copied())
            .filter(|end| *end <= lived.began_db);
        let Some(last) = ends.max() else { continue };
        let earliest = last.saturating_add(pause);
        if lived.began_db.saturating_add(slack) < earliest {
            bad.push(format!("{:?} began before its pause was over, at {earliest}", lived.key));
        }
        let forbidden = !planned.definition.dont_run_on_nodes.is_empty();
        let latest = earliest.saturating_add(Span::from_millis(1_100));
        // While nodes come and leave, shards pass from one to the other.
        let settled = Duration::from_secs(30)..Duration::from_secs(evidence.scenario.hours * 3600);
        // Under a limit it may have to wait for a place.
        let limited = planned.definition.concurrency_key.is_some()
            || evidence.scenario.shared_limits.is_some();
        let judged = healthy && !forbidden && !limited && settled.contains(&lived.began);
        if judged && lived.began_db > latest {
            bad.push(format!("I5: {:?} began at {}, not {earliest}", lived.key, lived.began_db));
        }
    }
    if lives.is_empty() {
        bad.push(format!("job {} never ran", planned.job));
    }
}

fn no_more_runs_than_allowed(
    evidence: &Evidence<'_>,
    planned: &Planned,
    runs: &[&Attempt],
    bad: &mut Vec<String>,
) {
    let (Some(max), Rhythm::Even { first, every }) =
        (planned.definition.bounds.max_runs, planned.rhythm)
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
    if fired > max || (fired < max && last < evidence.sure_until(planned)) {
        bad.push(format!("job {} ran {fired} times, not {max}", planned.job));
    }
}
