//! Judges what becomes of runs whose node lost them, and what is said of times that were skipped
//! while the end of a run could not be stored.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::advance::SkipReason;
use evenkeel_core::job::OnLostWorker;
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::run::{Outcome as Ended, RunStatus};
use evenkeel_core::{JobNo, RunId, RunKey, Span, Timestamp};
use evenkeel_store::Run;

use crate::body::Lived;
use crate::checker::Evidence;

/// An end that is stored within this time is stored at once.
const AT_ONCE: Span = Span::from_millis(1_200);

/// With `on_lost_worker: fail`, a run has a second body only if the first one failed by itself, and a
/// run whose body was cut off is over. What operators send back is not judged.
pub fn what_may_run_once_never_runs_again(
    evidence: &Evidence<'_>,
    runs: &[Run],
    bad: &mut Vec<String>,
) {
    let fails = |job: &JobNo| {
        let planned = evidence.plan.iter().find(|planned| planned.job == *job);
        planned.is_some_and(|planned| planned.definition.on_lost_worker == OnLostWorker::Fail)
    };
    let said: BTreeSet<RunId> = evidence.words.iter().map(|word| word.key.run_id()).collect();
    let mut lives: BTreeMap<RunId, Vec<&Lived>> = BTreeMap::new();
    for lived in evidence.book.iter().filter(|lived| fails(&lived.key.job_no)) {
        lives.entry(lived.key.run_id()).or_default().push(lived);
    }
    lives.retain(|run, _| !said.contains(run));
    let stored: BTreeMap<RunKey, RunStatus> =
        runs.iter().map(|run| (run.key, run.status)).collect();
    for mut lives in lives.into_values() {
        lives.sort_by_key(|lived| lived.began);
        for pair in lives.windows(2) {
            if pair[0].outcome != Some(Ended::Failed) || pair[0].key == pair[1].key {
                bad.push(format!("a run that may run once ran again: {pair:?}"));
            }
        }
        let cut_off = lives.last().filter(|lived| lived.outcome.is_none());
        let status = cut_off.and_then(|lived| stored.get(&lived.key));
        if status.is_some_and(|status| *status == RunStatus::Pending) {
            bad.push(format!("a run that may run once waits to run again: {lives:?}"));
        }
    }
}

/// A time that was skipped for an overlap came while an earlier run of its job was active, or at
/// most a moment after that. Of times that waited for a run, the store's word is all there is.
pub fn skips_overlap_with_what_they_say(
    evidence: &Evidence<'_>,
    runs: &[Run],
    bad: &mut Vec<String>,
) {
    // Clocks that are set, and ends that others tell, say nothing about when a body ended.
    if evidence.scenario.faults.time || evidence.scenario.words {
        return;
    }
    let judged: BTreeSet<JobNo> = evidence
        .plan
        .iter()
        .filter(|planned| {
            planned.definition.overlap == OverlapPolicy::Skip
                && planned.definition.misfire != MisfirePolicy::All
        })
        .map(|planned| planned.job)
        .collect();
    // Until when each run was active, as far as the store says.
    let mut active: BTreeMap<JobNo, BTreeMap<RunId, (Timestamp, Timestamp)>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.skipped.is_none()) {
        let ended = run.finished_at.unwrap_or(Timestamp::MAX);
        let of_job = active.entry(run.key.job_no).or_default();
        let known = of_job.entry(run.key.run_id()).or_insert((run.key.scheduled_at, ended));
        known.1 = known.1.max(ended);
    }
    for run in runs.iter().filter(|run| judged.contains(&run.key.job_no)) {
        let Some(skip) = run.skipped.filter(|skip| skip.reason == SkipReason::Overlap) else {
            continue;
        };
        let stands_in_the_way = |(scheduled_at, ended): &(Timestamp, Timestamp)| {
            *scheduled_at < skip.from && ended.saturating_add(AT_ONCE) >= skip.from
        };
        let others = active.get(&run.key.job_no);
        if !others.is_some_and(|others| others.values().any(stands_in_the_way)) {
            bad.push(format!("{:?} was skipped for an overlap with nothing: {skip:?}", run.key));
        }
    }
}
