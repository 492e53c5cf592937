//! Tests that every verdict about a past time is given when its facts are.

use proptest::prelude::*;

use super::*;
use crate::advance::SkipReason;
use crate::ids::{JobNo, Sequence};
use crate::job::Bounds;
use crate::schedule::{CalendarInterval, Cron, CronSchedule, Interval, Once, Periodic};
use crate::zone::Zone;

fn at(text: &str) -> Timestamp {
    format!("2026-11-18T{text}Z").parse().unwrap()
}

const NO: JobNo = JobNo(7);

fn cron(expression: &str) -> Definition {
    let cron = Cron::parse(expression).unwrap().resolved(0, true);
    Definition::noop(Schedule::Cron(CronSchedule { cron, max_duration: None }))
}

fn every(secs: u64) -> Definition {
    let interval = Interval::new(Span::from_secs(secs), None).unwrap();
    Definition::noop(Schedule::Interval(interval))
}

/// Facts of an active hourly job that was created at 01:00 and fired last at 11:00. Now is 11:30.
fn facts(definition: &Definition) -> PastFacts<'_> {
    PastFacts {
        definition,
        state: JobState::Active,
        created_at: at("01:00:00"),
        since: at("01:00:00"),
        stopped_at: None,
        next_at: Some(at("12:00:00")),
        last_fired_at: Some(at("11:00:00")),
        runs: &[],
        is_history_kept: true,
        commands: &[],
        last_move: None,
    }
}

fn asked(facts: &PastFacts<'_>, time: &str) -> PastExplanation {
    explain_past(facts, AskedTime::new(at(time)), at("11:30:00"))
}

fn verdict(facts: &PastFacts<'_>, time: &str) -> &'static str {
    asked(facts, time).verdict.as_str()
}

fn run(time: &str, status: AttemptStatus, started: Option<&str>) -> PastRun {
    let key = AttemptKey::regular(NO, at(time));
    PastRun { key, status, started_at: started.map(at), skipped: None }
}

fn skip_record(from: &str, to: &str) -> PastRun {
    let (from, to) = (at(from), at(to));
    let skipped = SkippedTimes { from, to, count: 3, reason: SkipReason::Blackout };
    PastRun {
        key: AttemptKey::regular(NO, from),
        status: AttemptStatus::Skipped,
        started_at: None,
        skipped: Some(skipped),
    }
}

fn command(time: &str, kind: CommandKind) -> PastCommand {
    PastCommand { at: at(time), kind }
}

#[test]
fn whole_minute_stands_for_sixty_seconds() {
    let until = |time: &str| AskedTime::new(at(time)).until;
    assert_eq!(until("09:00:00"), at("09:01:00"));
    assert_eq!(until("09:00:07"), at("09:00:08"));
    assert_eq!(until("09:00:07.5"), at("09:00:07.500001"));
}

#[test]
fn time_of_day_is_the_last_one_on_local_clocks() {
    let zone = Zone::get("Europe/Berlin").unwrap();
    let last = |hour: u64, now: &str| {
        AskedTime::of_day(Span::from_secs(hour * 3600), &zone, now.parse().unwrap()).at.to_string()
    };
    let winter = "2026-11-18T08:30:00Z";
    assert_eq!(last(9, winter), "2026-11-18T08:00:00.000000Z");
    assert_eq!(last(10, winter), "2026-11-17T09:00:00.000000Z");
    // On 25 October, clocks show 02:00 twice; on 29 March, they skip it.
    assert_eq!(last(2, "2026-10-25T08:00:00Z"), "2026-10-25T01:00:00.000000Z");
    assert_eq!(last(2, "2026-10-25T00:30:00Z"), "2026-10-25T00:00:00.000000Z");
    assert_eq!(last(2, "2026-03-29T08:00:00Z"), "2026-03-29T01:00:00.000000Z");
}

#[test]
fn stored_run_gives_the_verdict_of_its_status() {
    use AttemptStatus::{
        Cancelled, Completed, Failed, PartlyFailed, Pending, Running, Superseded, TimedOut,
    };
    let hourly = cron("0 * * * *");
    for (status, started, expected) in [
        (Completed, Some("09:00:01"), "ran"),
        (PartlyFailed, Some("09:00:05"), "ran"),
        (Completed, Some("09:00:05.000001"), "ran_late"),
        (PartlyFailed, Some("09:20:00"), "ran_late"),
        (Running, Some("09:00:00"), "running"),
        (Pending, None, "waiting"),
        (Failed, Some("09:10:00"), "failed"),
        (TimedOut, Some("09:00:00"), "failed"),
        (Cancelled, None, "cancelled"),
        (Superseded, Some("09:00:00"), "superseded"),
    ] {
        let runs = [run("09:00:00", status, started)];
        let seen = asked(&PastFacts { runs: &runs, ..facts(&hourly) }, "09:00:00");
        assert_eq!((seen.verdict.as_str(), seen.run), (expected, Some(runs[0])));
    }
}

#[test]
fn scheduled_run_is_preferred_to_a_triggered_run() {
    let hourly = cron("0 * * * *");
    let mut triggered = run("09:00:00", AttemptStatus::Completed, Some("09:00:00"));
    triggered.key.sequence = Sequence::new(Origin::Trigger, 0);
    let late = run("09:00:30", AttemptStatus::Failed, Some("09:00:30"));
    let runs = [triggered, late];
    assert_eq!(asked(&PastFacts { runs: &runs, ..facts(&hourly) }, "09:00:00").run, Some(late));
    let runs = [triggered];
    assert_eq!(verdict(&PastFacts { runs: &runs, ..facts(&hourly) }, "09:00:00"), "ran");
}

#[test]
fn skip_record_covers_the_scheduled_times_between_its_ends() {
    let hourly = cron("0 * * * *");
    let later = run("10:00:00", AttemptStatus::Completed, Some("10:30:00"));
    let runs = [later, skip_record("07:00:00", "09:00:00")];
    let facts = PastFacts { runs: &runs, ..facts(&hourly) };
    for time in ["07:00:00", "08:00:00", "09:00:00"] {
        let seen = asked(&facts, time);
        assert_eq!((seen.verdict, seen.run), (Verdict::Skipped, Some(runs[1])), "{time}");
        assert_eq!(seen.later_run, Some(later.key));
    }
    assert_eq!(verdict(&facts, "08:30:00"), "not_scheduled");
    // The job was edited after the skipped times, so its former times are not known.
    let commands = [command("11:00:00", CommandKind::Edit)];
    let edited = PastFacts { since: at("11:00:00"), commands: &commands, ..facts };
    assert_eq!(verdict(&edited, "08:30:00"), "skipped");
}

#[test]
fn pause_at_that_time_is_named_until_its_resume() {
    let hourly = cron("0 * * * *");
    let commands = [
        command("02:10:00", CommandKind::Pause),
        command("02:20:00", CommandKind::Resume),
        command("08:30:00", CommandKind::Pause),
        command("10:30:00", CommandKind::Resume),
    ];
    let resumed = PastFacts { commands: &commands, since: at("10:30:00"), ..facts(&hourly) };
    for time in ["09:00:00", "10:00:00"] {
        let seen = asked(&resumed, time);
        assert_eq!((seen.verdict, seen.command), (Verdict::Paused, Some(commands[2])));
        assert_eq!(seen.changed_at, Some(at("08:30:00")));
        assert_eq!(seen.resumed_at, Some(at("10:30:00")));
    }
    assert_eq!(verdict(&resumed, "09:15:00"), "not_scheduled");
    assert_eq!(verdict(&resumed, "11:00:00"), "unknown", "it was resumed before");
}

#[test]
fn stopped_job_without_audit_entries_is_paused_or_cancelled() {
    let hourly = cron("0 * * * *");
    let stopped = |state| PastFacts {
        state,
        stopped_at: Some(at("08:30:00")),
        next_at: None,
        last_fired_at: Some(at("08:00:00")),
        ..facts(&hourly)
    };
    let seen = asked(&stopped(JobState::Paused), "09:00:00");
    assert_eq!((seen.verdict, seen.changed_at), (Verdict::Paused, Some(at("08:30:00"))));
    assert_eq!((seen.command, seen.resumed_at), (None, None));
    assert_eq!(verdict(&stopped(JobState::Cancelled), "09:00:00"), "cancelled");
    assert_eq!(verdict(&stopped(JobState::Paused), "07:00:00"), "unknown");
}

#[test]
fn other_time_names_the_scheduled_times_around_it() {
    let hourly = cron("0 * * * *");
    let seen = asked(&facts(&hourly), "09:15:00");
    assert_eq!(seen.verdict, Verdict::NotScheduled);
    assert_eq!((seen.previous, seen.next), (Some(at("09:00:00")), Some(at("10:00:00"))));
    let local = Definition { timezone: Zone::get("Europe/Berlin").unwrap(), ..cron("0 9 * * *") };
    let seen = asked(&facts(&local), "09:00:00");
    assert_eq!((seen.verdict, seen.previous), (Verdict::NotScheduled, Some(at("08:00:00"))));
}

#[test]
fn job_has_no_times_outside_its_bounds() {
    let bounds =
        Bounds { start_at: Some(at("03:30:00")), end_at: Some(at("08:30:00")), max_runs: None };
    let bounded = Definition { bounds, ..cron("0 * * * *") };
    let over = PastFacts { next_at: None, last_fired_at: Some(at("08:00:00")), ..facts(&bounded) };
    let late = asked(&over, "10:00:00");
    assert_eq!((late.verdict, late.next), (Verdict::NotScheduled, None));
    assert_eq!(late.previous, Some(at("08:00:00")));
    let early = asked(&over, "02:00:00");
    assert_eq!((early.verdict, early.next), (Verdict::NotScheduled, Some(at("04:00:00"))));
    assert_eq!(early.previous, None);
    // After its last run, a job with max_runs has no times.
    let counted = cron("0 * * * *");
    let over = PastFacts { next_at: None, last_fired_at: Some(at("08:00:00")), ..facts(&counted) };
    assert_eq!(verdict(&over, "09:00:00"), "not_scheduled");
}

#[test]
fn rebalance_took_the_time_away() {
    let hourly = every(3600);
    let moved = PastMove { at: at("08:30:00"), from: at("09:00:00"), to: at("09:20:00") };
    let facts = PastFacts {
        since: at("08:30:00"),
        next_at: Some(at("12:20:00")),
        last_fired_at: Some(at("11:20:00")),
        last_move: Some(moved),
        ..facts(&hourly)
    };
    for time in ["09:00:00", "10:00:00"] {
        let seen = asked(&facts, time);
        assert_eq!((seen.verdict, seen.moved), (Verdict::Moved, Some(moved)), "{time}");
        assert_eq!(seen.changed_at, Some(moved.at));
    }
    assert_eq!(asked(&facts, "10:00:00").next, Some(at("10:20:00")));
    assert_eq!(verdict(&facts, "09:10:00"), "not_scheduled");
    assert_eq!(verdict(&facts, "08:00:00"), "edited", "it was moved after that time");
}

#[test]
fn time_before_the_creation_is_not_created_yet() {
    let hourly = cron("0 * * * *");
    assert_eq!(verdict(&facts(&hourly), "00:00:00"), "not_created_yet");
    assert_eq!(verdict(&facts(&every(60)), "00:59:00"), "not_created_yet");
}

#[test]
fn later_edit_makes_the_schedule_unknown() {
    let daily = cron("0 3 * * *");
    let commands = [
        command("02:00:00", CommandKind::Edit),
        command("10:00:00", CommandKind::Edit),
        command("10:30:00", CommandKind::Edit),
    ];
    let edited = PastFacts { commands: &commands, since: at("10:30:00"), ..facts(&daily) };
    let seen = asked(&edited, "09:00:00");
    assert_eq!((seen.verdict, seen.command), (Verdict::Edited, Some(commands[1])));
    assert_eq!(seen.changed_at, Some(at("10:00:00")));
    // Edits of other fields do not reschedule the job.
    assert_eq!(
        verdict(&PastFacts { since: at("01:00:00"), ..edited }, "09:00:00"),
        "not_scheduled"
    );
    // A resume of an interval job may change its phase.
    let interval = every(3600);
    let resumed = PastFacts { since: at("10:30:00"), ..facts(&interval) };
    let seen = asked(&resumed, "09:00:00");
    assert_eq!((seen.verdict, seen.command), (Verdict::Edited, None));
    assert_eq!(seen.changed_at, Some(at("10:30:00")));
}

#[test]
fn time_without_a_kept_record_is_pruned() {
    let hourly = cron("0 * * * *");
    let pruned = PastFacts { is_history_kept: false, ..facts(&hourly) };
    assert_eq!(verdict(&pruned, "07:00:00"), "pruned");
    assert_eq!(verdict(&pruned, "07:15:00"), "not_scheduled");
    assert_eq!(verdict(&facts(&hourly), "07:00:00"), "unknown");
}

#[test]
fn time_that_is_due_but_not_fired_waits() {
    let hourly = cron("0 * * * *");
    let overdue = PastFacts {
        next_at: Some(at("10:00:00")),
        last_fired_at: Some(at("09:00:00")),
        ..facts(&hourly)
    };
    assert_eq!(verdict(&overdue, "10:00:00"), "waiting");
    assert_eq!(verdict(&overdue, "11:00:00"), "waiting", "an earlier time waits");
    assert_eq!(verdict(&overdue, "08:00:00"), "unknown");
}

#[test]
fn future_time_is_in_the_future() {
    let hourly = cron("0 * * * *");
    let seen = asked(&facts(&hourly), "11:45:00");
    assert_eq!((seen.verdict, seen.next), (Verdict::InFuture, Some(at("12:00:00"))));
    let half = cron("30 30 * * * *");
    assert_eq!(verdict(&facts(&half), "11:30:00"), "in_future", "it is due in 30 seconds");
}

#[test]
fn periodic_job_has_its_runs_instead_of_scheduled_times() {
    let periodic =
        Definition::noop(Schedule::Periodic(Periodic::new(Span::from_secs(3600), None).unwrap()));
    let runs = [
        run("08:10:00", AttemptStatus::Completed, Some("08:10:00")),
        run("10:20:00", AttemptStatus::Failed, Some("10:20:00")),
    ];
    let facts = PastFacts { runs: &runs, ..facts(&periodic) };
    let seen = asked(&facts, "09:00:00");
    assert_eq!(seen.verdict, Verdict::NotScheduled);
    assert_eq!((seen.previous, seen.next), (Some(at("08:10:00")), Some(at("10:20:00"))));
    assert_eq!(verdict(&facts, "10:20:00"), "failed");
}

#[test]
fn job_that_runs_once_and_calendar_job_have_their_times() {
    let once = Definition::noop(Schedule::Once(Once { at: Some(at("09:00:00")), tolerance: None }));
    let done = PastFacts { next_at: None, last_fired_at: Some(at("09:00:00")), ..facts(&once) };
    let seen = asked(&done, "10:00:00");
    assert_eq!((seen.verdict, seen.previous), (Verdict::NotScheduled, Some(at("09:00:00"))));
    assert_eq!((asked(&done, "08:00:00").next, seen.next), (Some(at("09:00:00")), None));
    let anchor = "2026-11-16T09:00:00Z".parse().unwrap();
    let daily = Definition::noop(Schedule::Calendar(CalendarInterval {
        every: "P1D".parse().unwrap(),
        anchor: Some(anchor),
        tolerance: None,
    }));
    let old = PastFacts { created_at: anchor, since: anchor, ..facts(&daily) };
    let seen = asked(&old, "10:00:00");
    assert_eq!((seen.verdict, seen.previous), (Verdict::NotScheduled, Some(at("09:00:00"))));
    assert_eq!(verdict(&old, "09:00:00"), "unknown");
}

proptest! {
    /// For every kind of schedule, the scheduled times around a time are those that stepping
    /// through the schedule finds.
    #[test]
    fn scheduled_times_around_a_time_agree_with_stepping(
        which in 0..4_usize,
        after in 0_u64..86_400,
        micros in prop_oneof![Just(0_u64), 0..1_000_000_u64],
    ) {
        let definition =
            [cron("*/7 * * * *"), cron("30 5 */3 * * *"), every(437), every(3)][which].clone();
        let start = at("01:00:00");
        let table = definition.timetable();
        let mut times = vec![start];
        if let Schedule::Cron(_) = &definition.schedule {
            times = Vec::from_iter(table.next_after(start.saturating_sub(TICK)));
        }
        let end = start.saturating_add(Span::from_secs(2 * 86_400));
        while let Some(next) = table.next_after(times[times.len() - 1]).filter(|at| *at < end) {
            times.push(next);
        }
        let asked = AskedTime::new(
            start.saturating_add(Span::from_micros(after * 1_000_000 + micros)),
        );
        let facts = PastFacts {
            created_at: start,
            since: start,
            next_at: times.last().copied(),
            last_fired_at: times.iter().rev().nth(1).copied(),
            ..facts(&definition)
        };
        let seen = explain_past(&facts, asked, end);
        prop_assert_eq!(seen.previous, times.iter().rfind(|at| **at < asked.at).copied());
        prop_assert_eq!(seen.next, times.iter().find(|at| **at >= asked.until).copied());
        let is_time = times.iter().any(|at| asked.contains(*at));
        prop_assert_eq!(seen.verdict == Verdict::NotScheduled, !is_time);
    }

    /// A run at the requested time always decides, and no verdict names a run that is not stored.
    #[test]
    fn stored_run_decides_whatever_else_is_known(
        state in prop::sample::select(JobState::ALL.to_vec()),
        since in 0_u64..20_000,
        status in prop::sample::select(AttemptStatus::ALL.to_vec()),
        is_there in any::<bool>(),
    ) {
        let hourly = cron("0 * * * *");
        let stored = run("03:00:00", status, None);
        let runs = if is_there { vec![stored] } else { Vec::new() };
        let since = at("01:00:00").saturating_add(Span::from_secs(since));
        let stopped_at = Some(since).filter(|_| state != JobState::Active);
        let facts = PastFacts { state, since, stopped_at, runs: &runs, ..facts(&hourly) };
        prop_assert_eq!(asked(&facts, "03:00:00").run, runs.first().copied());
    }
}
