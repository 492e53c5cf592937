//! Checks that every scheduled time has exactly one run or one skip record (I1, I2, I4, I7, I11).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::excused_windows;
use crate::evidence::{Evidence, Execution, Skipped, Window};
use crate::jobs::{Job, Policy};
use crate::record::{Kind, Record};
use crate::report::{Report, ViolationKind};

/// Maximum time from the end of an attempt until its result is stored.
const REPORT_US: i64 = 500_000;

pub(super) fn check(evidence: &Evidence, checked: Window, report: &mut Report) {
    let ends = evidence.records.iter().filter(|record| record.kind == Kind::End);
    let ended: HashSet<_> = ends.map(Record::key).collect();
    for execution in &evidence.executions {
        let (job, key) = (&execution.job, execution.key());
        // After all servers have drained, no attempt may be running.
        if execution.status == "running" {
            report.add(ViolationKind::Unfinished, format!("{job} {key:?} is still running"));
        }
        if execution.status == "completed" && !ended.contains(&key) {
            let detail = format!("{job} {key:?} is completed, but no body ended with its fence");
            report.add(ViolationKind::Stale, detail);
        }
    }
    let excused_windows = excused_windows(evidence);
    for job in &evidence.jobs {
        check_job(evidence, job, checked.to_us, &excused_windows, report);
    }
}

fn check_job(
    evidence: &Evidence,
    job: &Job,
    until_us: i64,
    excused_windows: &[Window],
    report: &mut Report,
) {
    let mut runs_by_time: BTreeMap<i64, Vec<&Execution>> = BTreeMap::new();
    let mut skips: Vec<&Skipped> = Vec::new();
    for execution in evidence.executions.iter().filter(|each| each.job == job.name) {
        match &execution.skipped {
            Some(skip) => skips.push(skip),
            None => runs_by_time.entry(execution.scheduled_us).or_default().push(execution),
        }
    }
    let skipped = count_skips(job, &skips, report);
    let mut reasons = busy_times(evidence, job);
    reasons.extend(excused_windows);
    let mut slot = job.first_us;
    while slot <= until_us {
        report.expected += 1;
        let attempts = runs_by_time.get(&slot).map_or(&[][..], Vec::as_slice);
        let skips = skipped.get(&slot).copied().unwrap_or(0);
        let at = Window { from_us: slot, to_us: slot };
        let may_skip =
            job.policy != Policy::MustRun && reasons.iter().any(|reason| reason.overlaps_with(at));
        if job.policy == Policy::AtMostOnce && failed_with_its_server(attempts, excused_windows) {
            report.failed_with_server += 1;
        } else {
            check_slot(&job.name, slot, attempts, (skips, may_skip), report);
        }
        slot += job.every_us;
    }
    let off = |time: i64| time < job.first_us || (time - job.first_us) % job.every_us != 0;
    let bodies = evidence.records.iter().filter(|record| record.job == job.name);
    let times: BTreeSet<i64> =
        runs_by_time.into_keys().chain(bodies.map(|record| record.scheduled_us)).collect();
    for time in times.into_iter().filter(|time| off(*time)) {
        let detail = format!("{} ran for {time}, which is not one of its times", job.name);
        report.add(ViolationKind::WrongTime, detail);
    }
}

/// True if the run has only one attempt, which failed with an error message about its lost server.
fn failed_with_its_server(attempts: &[&Execution], excused_windows: &[Window]) -> bool {
    let [attempt] = attempts else { return false };
    let names_reason = attempt.error_message.as_deref().is_some_and(|why| why.starts_with("node "));
    // The attempt may have started long before the loss of its server, so its whole duration is
    // compared with the periods of faults.
    let ran = Window { from_us: attempt.scheduled_us, to_us: attempt.finished_us.unwrap_or(0) };
    let excused = excused_windows.iter().any(|excuse| excuse.overlaps_with(ran));
    attempt.status == "failed" && names_reason && excused
}

/// Returns the periods in which scheduled times of the job may be skipped, because an attempt runs
/// or its result is not stored yet. An attempt without a recorded end ran until the next fault.
fn busy_times(evidence: &Evidence, job: &Job) -> Vec<Window> {
    let own = |kind: Kind| {
        let records = evidence.records.iter().filter(|record| record.job == job.name);
        records.filter(move |record| record.kind == kind)
    };
    let ends: HashMap<(&str, u32, u32), i64> =
        own(Kind::End).map(|end| (end.key(), end.at.wall_us)).collect();
    let window = |start: &Record| {
        let from_us = start.at.wall_us;
        let mut faults = evidence.faults.iter().map(|fault| fault.from.wall_us);
        let cut_off = || faults.find(|fault_us| *fault_us >= from_us);
        let end_us = ends.get(&start.key()).copied().or_else(cut_off).unwrap_or(from_us);
        Window { from_us, to_us: end_us + REPORT_US }
    };
    own(Kind::Start).map(window).collect()
}

/// Returns the number of skip records that cover each scheduled time. A skip record whose count
/// does not match its time range is reported as a violation and ignored.
fn count_skips(job: &Job, skips: &[&Skipped], report: &mut Report) -> BTreeMap<i64, u32> {
    let mut covered = BTreeMap::new();
    for skip in skips {
        let Skipped { from_us, to_us, count, reason } = skip;
        let times = (to_us - from_us) / job.every_us + 1;
        let whole = (to_us - from_us) % job.every_us == 0;
        if !whole || from_us > to_us || u64::try_from(times) != Ok(*count) {
            let detail =
                format!("{} skipped {from_us} to {to_us} ({reason}) as {count} times", job.name);
            report.add(ViolationKind::WrongTime, detail);
            continue;
        }
        for number in 0..times {
            *covered.entry(from_us + number * job.every_us).or_default() += 1;
        }
    }
    covered
}

fn check_slot(
    name: &str,
    slot: i64,
    attempts: &[&Execution],
    (skips, may_skip): (u32, bool),
    report: &mut Report,
) {
    let runs: BTreeSet<&str> = attempts.iter().map(|attempt| attempt.run.as_str()).collect();
    let completed = attempts.iter().filter(|attempt| attempt.status == "completed").count();
    let accounts = runs.len() + usize::try_from(skips).unwrap_or(usize::MAX);
    if accounts > 1 || completed > 1 {
        let runs = runs.len();
        let detail =
            format!("{name} at {slot}: {runs} runs, {completed} completions, {skips} skips");
        report.add(ViolationKind::Duplicate, detail);
    }
    let Some(last) = attempts.iter().max_by_key(|attempt| attempt.attempt) else {
        if skips == 0 {
            report.add(ViolationKind::Lost, format!("{name} at {slot}: neither run nor skip"));
        } else if !may_skip {
            let detail = "skipped, but neither a run nor a fault explains it";
            report.add(ViolationKind::Lost, format!("{name} at {slot}: {detail}"));
        } else {
            report.skipped += 1;
        }
        return;
    };
    match last.status.as_str() {
        "completed" => report.executed += 1,
        // The function `check` has already reported all attempts that are still running.
        "running" => {}
        "pending" => {
            report.add(ViolationKind::Unfinished, format!("{name} at {slot}: still pending"));
        }
        status => report.add(ViolationKind::Failed, format!("{name} at {slot}: {status}")),
    }
}
