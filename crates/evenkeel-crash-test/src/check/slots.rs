//! Is every scheduled time accounted for, once? (I1, I2, I4, I7, I11)

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::excuses;
use crate::evidence::{Evidence, Execution, Skipped, Window};
use crate::jobs::{Job, Policy};
use crate::record::{Kind, Record};
use crate::report::{Report, Wrong};

/// From the end of a body to its report being stored.
const REPORT_US: i64 = 500_000;

pub(super) fn judge(evidence: &Evidence, judged: Window, report: &mut Report) {
    let ended: HashSet<(&str, u32, u32)> = evidence
        .records
        .iter()
        .filter(|record| record.kind == Kind::End)
        .map(|record| record.key())
        .collect();
    for execution in &evidence.executions {
        let key = execution.key();
        // A row that somebody still owns after all servers have ended belongs to nobody.
        if execution.status == "running" {
            let detail = format!("{} {key:?} still runs", execution.job);
            report.wrong(Wrong::Unfinished, detail);
        }
        if execution.status == "completed" && !ended.contains(&key) {
            let detail = format!("{} {key:?} was completed by no body", execution.job);
            report.wrong(Wrong::Stale, detail);
        }
    }
    let excuses = excuses(evidence);
    for job in &evidence.jobs {
        judge_job(evidence, job, judged.to_us, &excuses, report);
    }
}

fn judge_job(
    evidence: &Evidence,
    job: &Job,
    until_us: i64,
    excuses: &[Window],
    report: &mut Report,
) {
    let mut chains: BTreeMap<i64, Vec<&Execution>> = BTreeMap::new();
    let mut skips: Vec<&Skipped> = Vec::new();
    for execution in evidence.executions.iter().filter(|each| each.job == job.name) {
        match &execution.skipped {
            Some(skip) => skips.push(skip),
            None => chains.entry(execution.scheduled_us).or_default().push(execution),
        }
    }
    let skipped = count_skips(job, &skips, report);
    let mut reasons = busy_times(evidence, job);
    reasons.extend(excuses);
    let mut slot = job.first_us;
    while slot <= until_us {
        report.expected += 1;
        let attempts = chains.get(&slot).map_or(&[][..], Vec::as_slice);
        let skips = skipped.get(&slot).copied().unwrap_or(0);
        let at = Window { from_us: slot, to_us: slot };
        let may_skip =
            job.policy != Policy::Must && reasons.iter().any(|reason| reason.touches(at));
        if job.policy == Policy::Once && was_lost(attempts, excuses) {
            report.given_up += 1;
        } else {
            judge_slot(&job.name, slot, attempts, (skips, may_skip), report);
        }
        slot += job.every_us;
    }
    let off = |time: i64| time < job.first_us || (time - job.first_us) % job.every_us != 0;
    let bodies = evidence.records.iter().filter(|record| record.job == job.name);
    let times: BTreeSet<i64> =
        chains.into_keys().chain(bodies.map(|record| record.scheduled_us)).collect();
    for time in times.into_iter().filter(|time| off(*time)) {
        let detail = format!("{} ran for {time}, which is no time of it", job.name);
        report.wrong(Wrong::OffRhythm, detail);
    }
}

/// Did the only attempt of a run fail with its server, while a fault excuses that, and say so?
fn was_lost(attempts: &[&Execution], excuses: &[Window]) -> bool {
    let [attempt] = attempts else { return false };
    let says_why = attempt.error_message.as_deref().is_some_and(|why| why.starts_with("node "));
    // It may have run for long before the fault came.
    let ran = Window { from_us: attempt.scheduled_us, to_us: attempt.finished_us.unwrap_or(0) };
    let excused = excuses.iter().any(|excuse| excuse.touches(ran));
    attempt.status == "failed" && says_why && excused
}

/// When a time may be skipped: while a body of the job goes on, and a moment longer because its end
/// has to be reported. One without an end went on until the next fault, which ended it.
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

/// How often each time is covered by a skip. A record whose count differs from its range is worth
/// nothing.
fn count_skips(job: &Job, skips: &[&Skipped], report: &mut Report) -> BTreeMap<i64, u32> {
    let mut covered = BTreeMap::new();
    for skip in skips {
        let Skipped { from_us, to_us, count, reason } = skip;
        let times = (to_us - from_us) / job.every_us + 1;
        let whole = (to_us - from_us) % job.every_us == 0;
        if !whole || from_us > to_us || u64::try_from(times) != Ok(*count) {
            let detail =
                format!("{} skipped {from_us} to {to_us} ({reason}) as {count} times", job.name);
            report.wrong(Wrong::OffRhythm, detail);
            continue;
        }
        for number in 0..times {
            *covered.entry(from_us + number * job.every_us).or_default() += 1;
        }
    }
    covered
}

fn judge_slot(
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
        let detail = format!(
            "{name} at {slot}: {} chains, {completed} completions, {skips} skips",
            runs.len()
        );
        report.wrong(Wrong::Doubled, detail);
    }
    let Some(last) = attempts.iter().max_by_key(|attempt| attempt.attempt) else {
        if skips == 0 {
            report.wrong(Wrong::Lost, format!("{name} at {slot}: neither run nor skip"));
        } else if !may_skip {
            report.wrong(Wrong::Lost, format!("{name} at {slot}: skipped without a reason"));
        } else {
            report.skipped += 1;
        }
        return;
    };
    match last.status.as_str() {
        "completed" => report.executed += 1,
        // Said already.
        "running" => {}
        "pending" => report.wrong(Wrong::Unfinished, format!("{name} at {slot}: still pending")),
        status => report.wrong(Wrong::Failed, format!("{name} at {slot}: {status}")),
    }
}
