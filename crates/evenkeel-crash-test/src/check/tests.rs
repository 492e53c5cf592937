//! Tests that each check finds a violation of its invariant in made-up evidence.

use std::time::Duration;

use super::check_all;
use crate::clock::Moment;
use crate::evidence::{Evidence, Execution, InjectedFault, Skipped, Window};
use crate::jobs::{Body, Job, Policy};
use crate::plan::Fault;
use crate::record::{Kind, Record};
use crate::report::{Report, ViolationKind};

const SECOND: i64 = 1_000_000;
/// Wall-clock time at which the made-up test begins. Its monotonic clock starts at 0.
const BEGIN: i64 = 1_800_000_000 * SECOND;
const ONE: u32 = 11;
const TWO: u32 = 12;

fn timestamp(us: i64) -> Moment {
    Moment { mono_ns: us.unsigned_abs() * 1000, wall_us: BEGIN + us }
}

fn job(must_run: bool) -> Job {
    Job {
        name: "j".into(),
        id: "id".into(),
        body: Body::Shell,
        every_us: SECOND,
        first_us: BEGIN,
        policy: if must_run { Policy::MustRun } else { Policy::MaySkip },
    }
}

fn record(kind: Kind, second: i64, fence: u32, us: i64) -> Record {
    Record {
        kind,
        job: "j".into(),
        run: format!("run-{second}"),
        attempt: 0,
        fence,
        scheduled_us: BEGIN + second * SECOND,
        node_pid: if second % 2 == 0 { ONE } else { TWO },
        at: timestamp(us),
    }
}

fn execution(second: i64, status: &str, fence: u32) -> Execution {
    Execution {
        job: "j".into(),
        run: format!("run-{second}"),
        status: status.into(),
        scheduled_us: BEGIN + second * SECOND,
        attempt: 0,
        fence,
        finished_us: Some(BEGIN + second * SECOND + 120_000),
        error_message: None,
        skipped: None,
    }
}

fn skip(from: i64, to: i64, count: u64) -> Execution {
    let time = |second| BEGIN + second * SECOND;
    let skipped = Skipped { from_us: time(from), to_us: time(to), count, reason: "overlap".into() };
    Execution { skipped: Some(skipped), ..execution(from, "skipped", 0) }
}

/// Returns evidence without violations. The evidence describes a job that runs every second for 30
/// s. Each run of the job starts 20 ms late and takes 100 ms.
fn clean() -> Evidence {
    let (mut records, mut executions) = (Vec::new(), Vec::new());
    for second in 0..=30 {
        let begin = second * SECOND + 20_000;
        records.push(record(Kind::Start, second, 1, begin));
        records.push(record(Kind::End, second, 1, begin + 100_000));
        executions.push(execution(second, "completed", 1));
    }
    let checked = Some(Window { from_us: BEGIN, to_us: BEGIN + 30 * SECOND });
    Evidence { jobs: vec![job(true)], records, executions, checked, ..Evidence::default() }
}

fn database_crash(from: i64, to: i64) -> InjectedFault {
    InjectedFault {
        fault: Fault::Database,
        victim: None,
        from: timestamp(from * SECOND),
        to: timestamp(to * SECOND),
    }
}

fn report(evidence: &Evidence) -> Report {
    check_all(evidence, "made up", 0)
}

/// Asserts that the checks find this kind of violation and no other kind.
#[track_caller]
fn expect(evidence: &Evidence, kind: ViolationKind) {
    let report = report(evidence);
    assert!(report.count(kind) > 0, "{report}");
    assert_eq!(report.count(kind), report.violations.len(), "{report}");
}

fn position(evidence: &Evidence, kind: Kind, second: i64) -> usize {
    let time = BEGIN + second * SECOND;
    let found = |record: &Record| record.kind == kind && record.scheduled_us == time;
    evidence.records.iter().position(found).unwrap()
}

#[test]
fn evidence_without_violations_is_clean() {
    let report = report(&clean());
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.expected, report.executed, report.starts, report.repeats), (31, 31, 31, 0));
    assert_eq!(report.latest, Duration::from_millis(20));
    assert_eq!(report.checked_for_lateness, 31);
}

#[test]
fn no_evidence_is_not_clean() {
    expect(&Evidence::default(), ViolationKind::Incident);
    let checked = clean().checked;
    let silent = Evidence { jobs: vec![job(true)], checked, ..Evidence::default() };
    assert_eq!(report(&silent).count(ViolationKind::Lost), 31);
}

#[test]
fn time_that_never_ran_is_lost() {
    let mut evidence = clean();
    evidence.executions.retain(|each| each.run != "run-7");
    evidence.records.retain(|each| each.run != "run-7");
    expect(&evidence, ViolationKind::Lost);
}

#[test]
fn skip_is_allowed_only_for_a_job_that_may_skip() {
    let mut evidence = clean();
    evidence.executions.retain(|each| !["run-7", "run-8"].contains(&each.run.as_str()));
    evidence.records.retain(|each| !["run-7", "run-8"].contains(&each.run.as_str()));
    evidence.executions.push(skip(7, 8, 2));
    // The run that is scheduled at second 6 now ends in second 8.
    let end = position(&evidence, Kind::End, 6);
    evidence.records[end].at = timestamp(8_700_000);
    expect(&evidence, ViolationKind::Lost);
    evidence.jobs = vec![job(false)];
    let report = report(&evidence);
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.executed, report.skipped), (29, 2));
}

#[test]
fn skip_needs_a_running_body_or_a_fault() {
    let mut evidence = Evidence { jobs: vec![job(false)], ..clean() };
    evidence.executions.retain(|each| each.run != "run-7");
    evidence.records.retain(|each| each.run != "run-7");
    evidence.executions.push(skip(7, 7, 1));
    expect(&evidence, ViolationKind::Lost);
    let shaken = Evidence { faults: vec![database_crash(5, 6)], ..evidence.clone() };
    assert!(report(&shaken).is_clean());
    // The first attempt of the run at second 6 is killed without a recorded end, and the attempt
    // starts again later.
    evidence.records.retain(|each| each.run != "run-6" || each.kind == Kind::Start);
    evidence.records.push(record(Kind::Start, 6, 2, 8_500_000));
    evidence.records.push(record(Kind::End, 6, 2, 8_600_000));
    evidence.executions[6].fence = 2;
    evidence.faults = vec![database_crash(8, 8)];
    assert!(report(&evidence).is_clean());
}

#[test]
fn skip_with_a_wrong_count_is_detected() {
    let mut evidence = clean();
    evidence.executions.push(skip(40, 42, 2));
    expect(&evidence, ViolationKind::WrongTime);
}

#[test]
fn time_with_a_run_and_a_skip_is_a_duplicate() {
    let mut evidence = Evidence { faults: vec![database_crash(5, 6)], ..clean() };
    evidence.executions.push(skip(7, 7, 1));
    expect(&evidence, ViolationKind::Duplicate);
}

#[test]
fn time_with_two_runs_is_a_duplicate() {
    let mut evidence = clean();
    let again = Execution { run: "other".into(), ..execution(7, "completed", 1) };
    let copy = |kind, us| Record { run: "other".into(), ..record(kind, 7, 1, us) };
    evidence.executions.push(again);
    evidence.records.push(copy(Kind::Start, 7_500_000));
    evidence.records.push(copy(Kind::End, 7_600_000));
    expect(&evidence, ViolationKind::Duplicate);
}

#[test]
fn time_completed_twice_is_a_duplicate() {
    let mut evidence = clean();
    evidence.executions.push(Execution { attempt: 1, ..execution(7, "completed", 1) });
    for (kind, us) in [(Kind::Start, 7_500_000), (Kind::End, 7_600_000)] {
        evidence.records.push(Record { attempt: 1, ..record(kind, 7, 1, us) });
    }
    expect(&evidence, ViolationKind::Duplicate);
}

#[test]
fn attempt_started_twice_with_one_fence_is_a_duplicate() {
    let mut evidence = clean();
    evidence.records.push(record(Kind::Start, 7, 1, 7_500_000));
    evidence.faults = vec![database_crash(6, 7)];
    expect(&evidence, ViolationKind::Duplicate);
}

#[test]
fn attempt_started_again_after_a_fault_is_no_duplicate() {
    let mut evidence = clean();
    let end = position(&evidence, Kind::End, 7);
    evidence.records.remove(end);
    evidence.records.push(record(Kind::Start, 7, 2, 7_500_000));
    evidence.records.push(record(Kind::End, 7, 2, 7_600_000));
    evidence.executions[7].fence = 2;
    expect(&evidence, ViolationKind::Duplicate);
    evidence.faults = vec![database_crash(6, 7)];
    let report = report(&evidence);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.repeats, 1);
}

fn runs_once() -> Vec<Job> {
    vec![Job { policy: Policy::AtMostOnce, ..job(false) }]
}

#[test]
fn at_most_once_job_may_never_start_again() {
    let mut evidence = Evidence { jobs: runs_once(), ..clean() };
    let end = position(&evidence, Kind::End, 7);
    evidence.records.remove(end);
    evidence.records.push(record(Kind::Start, 7, 2, 7_500_000));
    evidence.records.push(record(Kind::End, 7, 2, 7_600_000));
    evidence.executions[7].fence = 2;
    evidence.faults = vec![database_crash(6, 7)];
    expect(&evidence, ViolationKind::Duplicate);
}

#[test]
fn at_most_once_job_may_fail_with_its_server_if_the_error_names_it() {
    let mut evidence = Evidence { jobs: runs_once(), ..clean() };
    let end = position(&evidence, Kind::End, 7);
    evidence.records.remove(end);
    evidence.executions[7].status = "failed".into();
    evidence.executions[7].error_message = Some("node n1 died while it ran".into());
    expect(&evidence, ViolationKind::Failed);
    evidence.faults = vec![database_crash(7, 8)];
    assert!(report(&evidence).is_clean());
    assert_eq!(report(&evidence).failed_with_server, 1);
    let other = Evidence { jobs: vec![job(false)], ..evidence.clone() };
    expect(&other, ViolationKind::Failed);
    evidence.executions[7].error_message = None;
    expect(&evidence, ViolationKind::Failed);
}

#[test]
fn overlapping_bodies_are_detected() {
    let mut evidence = clean();
    let end = position(&evidence, Kind::End, 7);
    evidence.records[end].at = timestamp(8_050_000);
    expect(&evidence, ViolationKind::Overlapping);
}

#[test]
fn body_within_a_longer_earlier_body_is_detected() {
    let mut evidence = clean();
    let end = position(&evidence, Kind::End, 7);
    evidence.records[end].at = timestamp(9_500_000);
    assert_eq!(report(&evidence).count(ViolationKind::Overlapping), 2);
}

#[test]
fn overlap_with_a_killed_body_is_detected() {
    let mut evidence = clean();
    evidence.records.push(record(Kind::Overlap, 7, 2, 7_500_000));
    expect(&evidence, ViolationKind::Overlapping);
}

#[test]
fn start_two_milliseconds_before_its_time_is_early() {
    let mut evidence = clean();
    let start = position(&evidence, Kind::Start, 7);
    evidence.records[start].at = timestamp(6_998_000);
    expect(&evidence, ViolationKind::Early);
}

#[test]
fn completion_with_a_fence_without_an_ended_body_is_stale() {
    let mut evidence = clean();
    evidence.executions[7].fence = 2;
    expect(&evidence, ViolationKind::Stale);
}

#[test]
fn completion_of_a_body_that_never_ended_is_stale() {
    let mut evidence = clean();
    let end = position(&evidence, Kind::End, 7);
    evidence.records.remove(end);
    expect(&evidence, ViolationKind::Stale);
}

#[test]
fn start_more_than_a_second_late_is_detected_unless_excused() {
    let mut evidence = clean();
    let (start, end) = (position(&evidence, Kind::Start, 30), position(&evidence, Kind::End, 30));
    evidence.records[start].at = timestamp(31_001_000);
    evidence.records[end].at = timestamp(31_101_000);
    expect(&evidence, ViolationKind::Late);

    let window = |from, to| Window { from_us: BEGIN + from * SECOND, to_us: BEGIN + to * SECOND };
    let busy = Evidence { busy: vec![window(31, 32)], ..evidence.clone() };
    assert!(report(&busy).is_clean());
    let recovering = Evidence { faults: vec![database_crash(10, 16)], ..evidence.clone() };
    assert!(report(&recovering).is_clean());
    let long_ago = Evidence { faults: vec![database_crash(10, 14)], ..evidence };
    expect(&long_ago, ViolationKind::Late);
}

#[test]
fn attempt_that_never_ended_is_unfinished() {
    for status in ["pending", "running"] {
        let mut evidence = clean();
        evidence.executions[7].status = status.into();
        expect(&evidence, ViolationKind::Unfinished);
    }
    // A run scheduled after the checked period may still be pending, but must not be running.
    let mut evidence = clean();
    evidence.executions.push(execution(31, "pending", 0));
    assert!(report(&evidence).is_clean());
    evidence.executions[31].status = "running".into();
    expect(&evidence, ViolationKind::Unfinished);
}

#[test]
fn failed_run_is_detected() {
    let mut evidence = clean();
    evidence.executions[7].status = "failed".into();
    expect(&evidence, ViolationKind::Failed);
    let end = position(&evidence, Kind::End, 7);
    evidence.records.remove(end);
    // A later attempt succeeded.
    for (kind, us) in [(Kind::Start, 7_500_000), (Kind::End, 7_600_000)] {
        evidence.records.push(Record { attempt: 1, ..record(kind, 7, 1, us) });
    }
    evidence.executions.push(Execution { attempt: 1, ..execution(7, "completed", 1) });
    assert!(report(&evidence).is_clean());
}

#[test]
fn run_between_two_times_is_detected() {
    let mut evidence = clean();
    let off = BEGIN + 7_250_000;
    let run = "other".to_owned();
    let body = |kind, us| Record { scheduled_us: off, run: run.clone(), ..record(kind, 7, 1, us) };
    evidence.records.push(body(Kind::Start, 7_250_000));
    evidence.records.push(body(Kind::End, 7_300_000));
    expect(&evidence, ViolationKind::WrongTime);
}

/// Returns evidence in which the first server is lost at second 10.5, and the next attempt starts
/// at the second `until`.
fn after_a_loss(fault: Fault, until: i64) -> Evidence {
    let mut evidence = clean();
    for record in &mut evidence.records {
        let second = (record.scheduled_us - BEGIN) / SECOND;
        record.node_pid = if second <= 10 { ONE } else { TWO };
        if (11..=until).contains(&second) {
            let add = until * SECOND - second * SECOND + (second - 11) * 30_000;
            record.at = timestamp(record.at.wall_us - BEGIN + add);
        }
    }
    for record in evidence.records.iter_mut().filter(|each| each.kind == Kind::End) {
        record.at = timestamp(record.at.wall_us - BEGIN - 80_000);
    }
    evidence.faults = vec![InjectedFault {
        fault,
        victim: Some(("node-a".into(), ONE)),
        from: timestamp(10_500_000),
        to: timestamp(24_500_000),
    }];
    evidence
}

#[test]
fn slow_takeover_is_detected() {
    let fast = report(&after_a_loss(Fault::Kill, 22));
    assert!(fast.is_clean(), "{fast}");
    assert_eq!(fast.takeovers, [Duration::from_millis(11_520)]);
    expect(&after_a_loss(Fault::Kill, 27), ViolationKind::SlowTakeover);
}

#[test]
fn body_that_outlives_its_server_is_detected() {
    for (fault, end) in [(Fault::Kill, 12_500_000), (Fault::Freeze, 21_900_000)] {
        let mut evidence = after_a_loss(fault, 22);
        let last = position(&evidence, Kind::End, 10);
        evidence.records[last].at = timestamp(end);
        expect(&evidence, ViolationKind::OutlivedServer);
    }
}

#[test]
fn incident_is_a_violation() {
    let incidents = vec!["node-a panicked".to_owned()];
    expect(&Evidence { incidents, ..clean() }, ViolationKind::Incident);
}
