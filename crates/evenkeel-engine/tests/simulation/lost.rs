//! Judges what becomes of runs whose node lost them, and what is said of times that were skipped
//! while the end of a run could not be stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use evenkeel_core::advance::SkipReason;
use evenkeel_core::job::OnLostWorker;
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::attempt::{AttemptStatus, Outcome as Ended};
use evenkeel_core::schedule::{Interval, Once};
use evenkeel_core::{AttemptKey, Definition, JobNo, Schedule, Span, Timestamp};
use evenkeel_engine::Engine;
use evenkeel_store::{Attempt, AttemptFilter, AttemptStore, PageRequest};

use crate::body::Lived;
use crate::calm::{Calm, job, play};
use crate::checker::Evidence;
use crate::faulty::Link;

/// An end that is stored within this time is stored at once.
const AT_ONCE: Span = Span::from_millis(1_200);

/// With `on_lost_worker: fail`, a run has a second body only if the first one failed by itself, and a
/// run whose body was cut off is over. What operators send back is not judged.
pub fn what_may_run_once_never_runs_again(
    evidence: &Evidence<'_>,
    runs: &[Attempt],
    bad: &mut Vec<String>,
) {
    let fails = |job: &JobNo| {
        let planned = evidence.plan.iter().find(|planned| planned.job == *job);
        planned.is_some_and(|planned| planned.definition.on_lost_worker == OnLostWorker::Fail)
    };
    let said: BTreeSet<AttemptKey> =
        evidence.words.iter().map(|word| word.key.first_attempt()).collect();
    let mut lives: BTreeMap<AttemptKey, Vec<&Lived>> = BTreeMap::new();
    for lived in evidence.book.iter().filter(|lived| fails(&lived.key.job_no)) {
        lives.entry(lived.key.first_attempt()).or_default().push(lived);
    }
    lives.retain(|run, _| !said.contains(run));
    let stored: BTreeMap<AttemptKey, AttemptStatus> =
        runs.iter().map(|run| (run.key, run.status)).collect();
    for mut lives in lives.into_values() {
        lives.sort_by_key(|lived| lived.began);
        for pair in lives.windows(2) {
            let failed = pair[0].outcome.is_some_and(Ended::is_failure);
            if !failed || pair[0].key == pair[1].key {
                bad.push(format!("a run that may run once ran again: {pair:?}"));
            }
        }
        let cut_off = lives.last().filter(|lived| lived.outcome.is_none());
        let status = cut_off.and_then(|lived| stored.get(&lived.key));
        if status.is_some_and(|status| *status == AttemptStatus::Pending) {
            bad.push(format!("a run that may run once waits to run again: {lives:?}"));
        }
    }
}

/// Times that were skipped for an overlap had an earlier run in their way. While the store has faults, an
/// end may be stored between the decision to skip and its record: that case has a test of its own.
pub fn skips_overlap_with_what_they_say(
    evidence: &Evidence<'_>,
    runs: &[Attempt],
    bad: &mut Vec<String>,
) {
    // Clocks that are set, and ends that others tell, say nothing about when a body ended.
    let faults = evidence.scenario.faults;
    if faults.time || faults.delay_changes() || evidence.scenario.words {
        return;
    }
    // Of times that waited for a run, the store's word is all there is.
    let skips = |definition: &Definition| {
        definition.overlap == OverlapPolicy::Skip && definition.misfire != MisfirePolicy::All
    };
    let plan = evidence.plan.iter().filter(|planned| skips(&planned.definition));
    overlaps_are_true(runs, &plan.map(|planned| planned.job).collect(), bad);
}

/// A skip record of these jobs that says `overlap` is about times between which and the decision a run
/// was active, or ended a moment before.
fn overlaps_are_true(runs: &[Attempt], judged: &BTreeSet<JobNo>, bad: &mut Vec<String>) {
    // For when each run was, and until when it was active, as far as the store says.
    let mut active: BTreeMap<JobNo, BTreeMap<AttemptKey, (Timestamp, Timestamp)>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.skipped.is_none()) {
        let ended = run.finished_at.unwrap_or(Timestamp::MAX);
        let of_job = active.entry(run.key.job_no).or_default();
        let known = of_job.entry(run.key.first_attempt()).or_insert((run.key.scheduled_at, ended));
        known.1 = known.1.max(ended);
    }
    for run in runs.iter().filter(|run| judged.contains(&run.key.job_no)) {
        let Some(skip) = run.skipped.filter(|skip| skip.reason == SkipReason::Overlap) else {
            continue;
        };
        let decided_at = run.finished_at.unwrap_or(skip.to);
        let stands_in_the_way = |(scheduled_at, ended): &(Timestamp, Timestamp)| {
            *scheduled_at <= decided_at && ended.saturating_add(AT_ONCE) >= skip.from
        };
        let others = active.get(&run.key.job_no);
        if !others.is_some_and(|others| others.values().any(stands_in_the_way)) {
            bad.push(format!("{:?} was skipped for an overlap with nothing: {skip:?}", run.key));
        }
    }
}

#[test]
fn times_that_come_while_an_end_cannot_be_stored_do_not_overlap_with_it() {
    for half_seconds in 0..10 {
        play(async {
            let link = Arc::new(Link::default());
            let calm = Calm { link: Some(Arc::clone(&link)), ..Calm::new(Duration::from_secs(1)) };
            let every = Schedule::Interval(Interval::new(Span::from_secs(5), None).unwrap());
            let no = calm.register(job(every, 1_000)).await;
            let _one = calm.start("one", 4).await;
            tokio::time::sleep(Duration::from_millis(60_000 + half_seconds * 500)).await;
            link.down.store(true, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(20)).await;
            link.down.store(false, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(60)).await;
            let (scope, page) = (calm.scope().await, PageRequest::first(1000));
            let listed =
                calm.model.list_attempts(&scope, AttemptFilter::default(), page).await.unwrap();
            let mut bad = Vec::new();
            overlaps_are_true(&listed.items, &BTreeSet::from([no]), &mut bad);
            assert!(bad.is_empty(), "{half_seconds}: {bad:?}");
        });
    }
}

/// One run that takes about an hour, may run once, and would be tried again if it failed by itself.
async fn begin(calm: &Calm) -> (Engine, AttemptKey) {
    let hour = job(Schedule::Once(Once::NOW), 3_600_000);
    calm.register(Definition { on_lost_worker: OnLostWorker::Fail, ..hour }).await;
    let engine = calm.start("one", 4).await;
    let node = engine.context().unwrap().node;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if let Some(owned) = calm.model.list_owned(node, 9).await.unwrap().first() {
            return (engine, owned.key);
        }
    }
}

/// Half a day later, the run has failed for this reason and did not start again.
async fn failed(calm: &Calm, key: AttemptKey, error: &str, crashes: u16) {
    tokio::time::sleep(Duration::from_secs(12 * 3600)).await;
    let run = calm.model.get_attempt(&calm.scope().await, key).await.unwrap().unwrap();
    assert_eq!((run.status, run.crashes), (AttemptStatus::Failed, crashes), "{run:?}");
    assert_eq!(run.results.error.as_deref(), Some(error));
    assert_eq!(run.key.attempt, evenkeel_core::AttemptNo::FIRST);
    assert_eq!(calm.seen.lock().unwrap().runs, 1);
}

#[test]
fn a_run_that_may_run_once_fails_with_a_node_that_drains() {
    play(async {
        let calm = Calm::new(Duration::from_secs(1));
        let (one, key) = begin(&calm).await;
        let _two = calm.start("two", 4).await;
        one.drain(Duration::from_secs(2)).await;
        failed(&calm, key, "node one shut down before its body ended", 0).await;
    });
}

#[test]
fn a_run_that_may_run_once_fails_with_a_node_that_dies() {
    play(async {
        let calm = Calm::new(Duration::from_secs(1));
        let (one, key) = begin(&calm).await;
        drop(one);
        let _two = calm.start("two", 4).await;
        failed(&calm, key, "node one died while it ran; 1 node lost in all", 1).await;
    });
}

#[test]
fn a_run_that_may_run_once_fails_with_a_node_that_is_restarted() {
    play(async {
        let calm = Calm::new(Duration::from_secs(1));
        let (one, key) = begin(&calm).await;
        drop(one);
        let _again = calm.start("one", 4).await;
        failed(&calm, key, "node one died while it ran; 1 node lost in all", 1).await;
    });
}

#[test]
fn a_run_that_may_run_once_fails_with_a_node_that_loses_the_store() {
    for lasts in [10, 600] {
        play(async {
            let link = Arc::new(Link::default());
            let calm = Calm { link: Some(Arc::clone(&link)), ..Calm::new(Duration::from_secs(1)) };
            let (_one, key) = begin(&calm).await;
            link.down.store(true, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(lasts)).await;
            link.down.store(false, Ordering::Relaxed);
            failed(&calm, key, "node one lost contact with the store and ended its body", 0).await;
        });
    }
}
