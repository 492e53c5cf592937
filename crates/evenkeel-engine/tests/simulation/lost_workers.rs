//! Checks the policy `on_lost_worker: fail`, and scheduled times that were skipped while the result
//! of a finished run could not be stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use evenkeel_core::advance::SkipReason;
use evenkeel_core::attempt::{AttemptStatus, Outcome as Ended};
use evenkeel_core::job::OnLostWorker;
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::schedule::{Interval, Once};
use evenkeel_core::{AttemptKey, Definition, JobNo, Schedule, Span, Timestamp};
use evenkeel_engine::Engine;
use evenkeel_store::{Attempt, AttemptFilter, AttemptStore, PageRequest};

use crate::body::BodyRecord;
use crate::checker::Evidence;
use crate::faulty::Link;
use crate::small_cluster::{SmallCluster, job, run_paused};

/// A result that is stored within this delay counts as stored at once.
const AT_ONCE: Span = Span::from_millis(1_200);

/// With `on_lost_worker: fail`, a run is executed a second time only if the first execution failed
/// without being cancelled. A run whose last execution was cut off must not be queued again. Runs
/// requeued by an override are not checked.
pub fn at_most_once_attempts_run_once(
    evidence: &Evidence<'_>,
    runs: &[Attempt],
    violations: &mut Vec<String>,
) {
    let fails = |job: &JobNo| {
        let planned = evidence.plan.iter().find(|planned| planned.job == *job);
        planned.is_some_and(|planned| planned.definition.on_lost_worker == OnLostWorker::Fail)
    };
    let overridden: BTreeSet<AttemptKey> =
        evidence.overrides.iter().map(|change| change.key.first_attempt()).collect();
    let mut bodies: BTreeMap<AttemptKey, Vec<&BodyRecord>> = BTreeMap::new();
    for body in evidence.records.iter().filter(|body| fails(&body.key.job_no)) {
        bodies.entry(body.key.first_attempt()).or_default().push(body);
    }
    bodies.retain(|run, _| !overridden.contains(run));
    let stored: BTreeMap<AttemptKey, AttemptStatus> =
        runs.iter().map(|run| (run.key, run.status)).collect();
    for mut bodies in bodies.into_values() {
        bodies.sort_by_key(|body| body.began);
        for pair in bodies.windows(2) {
            let failed = pair[0].outcome.is_some_and(Ended::is_failure);
            if !failed || pair[0].key == pair[1].key {
                violations.push(format!("a run that may start once started again: {pair:?}"));
            }
        }
        let cut_off = bodies.last().filter(|body| body.outcome.is_none());
        let status = cut_off.and_then(|body| stored.get(&body.key));
        if status.is_some_and(|status| *status == AttemptStatus::Pending) {
            violations.push(format!("a run that may start once waits to start again: {bodies:?}"));
        }
    }
}

/// Checks that an earlier run was active when a scheduled time was skipped because of an overlap.
/// Simulations with store faults are not checked here, because the earlier run may finish between
/// the decision to skip and its storage. A separate test covers store faults.
pub fn skipped_times_overlapped(
    evidence: &Evidence<'_>,
    runs: &[Attempt],
    violations: &mut Vec<String>,
) {
    // With clock changes or overrides, stored times do not show when an execution ended.
    let faults = evidence.scenario.faults;
    if faults.time || faults.delay_changes() || evidence.scenario.overrides {
        return;
    }
    // Only jobs whose scheduled times never wait for an active run are checked.
    let skips = |definition: &Definition| {
        definition.overlap == OverlapPolicy::Skip && definition.misfire != MisfirePolicy::All
    };
    let plan = evidence.plan.iter().filter(|planned| skips(&planned.definition));
    overlaps_are_true(runs, &plan.map(|planned| planned.job).collect(), violations);
}

/// Checks for each skip record with the reason `overlap` that a run was active between the first
/// skipped time and the decision to skip, or ended shortly before.
fn overlaps_are_true(runs: &[Attempt], judged: &BTreeSet<JobNo>, violations: &mut Vec<String>) {
    // For each run, its scheduled time and the time until which the store counted it as active.
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
        let blocks = |(scheduled_at, ended): &(Timestamp, Timestamp)| {
            *scheduled_at <= decided_at && ended.saturating_add(AT_ONCE) >= skip.from
        };
        let others = active.get(&run.key.job_no);
        if !others.is_some_and(|others| others.values().any(blocks)) {
            violations.push(format!(
                "{:?} was skipped as overlapping, but no run was active: {skip:?}",
                run.key
            ));
        }
    }
}

#[test]
fn due_time_does_not_overlap_a_run_whose_end_could_not_be_stored() {
    for half_seconds in 0..10 {
        run_paused(async {
            let link = Arc::new(Link::default());
            let cluster = SmallCluster {
                link: Some(Arc::clone(&link)),
                ..SmallCluster::new(Duration::from_secs(1))
            };
            let every = Schedule::Interval(Interval::new(Span::from_secs(5), None).unwrap());
            let no = cluster.register(job(every, 1_000)).await;
            let _one = cluster.start("one", 4).await;
            tokio::time::sleep(Duration::from_millis(60_000 + half_seconds * 500)).await;
            link.down.store(true, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(20)).await;
            link.down.store(false, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(60)).await;
            let (scope, page) = (cluster.scope().await, PageRequest::first(1000));
            let listed =
                cluster.model.list_attempts(&scope, AttemptFilter::default(), page).await.unwrap();
            let mut violations = Vec::new();
            overlaps_are_true(&listed.items, &BTreeSet::from([no]), &mut violations);
            assert!(violations.is_empty(), "{half_seconds}: {violations:?}");
        });
    }
}

/// Starts a run of about an hour with `on_lost_worker: fail`. A normal failure of the run would be
/// retried.
async fn begin(cluster: &SmallCluster) -> (Engine, AttemptKey) {
    let hour = job(Schedule::Once(Once::NOW), 3_600_000);
    cluster.register(Definition { on_lost_worker: OnLostWorker::Fail, ..hour }).await;
    let engine = cluster.start("one", 4).await;
    let node = engine.context().unwrap().node;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if let Some(owned) = cluster.model.list_owned(node, 9).await.unwrap().first() {
            return (engine, owned.key);
        }
    }
}

/// Waits for half a day, then asserts that the run failed with this error and did not start again.
async fn failed(cluster: &SmallCluster, key: AttemptKey, error: &str, crashes: u16) {
    tokio::time::sleep(Duration::from_secs(12 * 3600)).await;
    let run = cluster.model.get_attempt(&cluster.scope().await, key).await.unwrap().unwrap();
    assert_eq!((run.status, run.crashes), (AttemptStatus::Failed, crashes), "{run:?}");
    assert_eq!(run.results.error.as_deref(), Some(error));
    assert_eq!(run.key.attempt, evenkeel_core::AttemptNo::FIRST);
    assert_eq!(cluster.seen.lock().unwrap().runs, 1);
}

#[test]
fn at_most_once_run_fails_when_its_node_drains() {
    run_paused(async {
        let cluster = SmallCluster::new(Duration::from_secs(1));
        let (one, key) = begin(&cluster).await;
        let _two = cluster.start("two", 4).await;
        one.drain(Duration::from_secs(2)).await;
        failed(&cluster, key, "node one shut down before its body ended", 0).await;
    });
}

#[test]
fn at_most_once_run_fails_when_its_node_dies() {
    run_paused(async {
        let cluster = SmallCluster::new(Duration::from_secs(1));
        let (one, key) = begin(&cluster).await;
        drop(one);
        let _two = cluster.start("two", 4).await;
        failed(&cluster, key, "node one died while it ran; 1 node lost in all", 1).await;
    });
}

#[test]
fn at_most_once_run_fails_when_its_node_restarts() {
    run_paused(async {
        let cluster = SmallCluster::new(Duration::from_secs(1));
        let (one, key) = begin(&cluster).await;
        drop(one);
        let _again = cluster.start("one", 4).await;
        failed(&cluster, key, "node one died while it ran; 1 node lost in all", 1).await;
    });
}

#[test]
fn at_most_once_run_fails_when_its_node_loses_the_store() {
    for lasts in [10, 600] {
        run_paused(async {
            let link = Arc::new(Link::default());
            let cluster = SmallCluster {
                link: Some(Arc::clone(&link)),
                ..SmallCluster::new(Duration::from_secs(1))
            };
            let (_one, key) = begin(&cluster).await;
            link.down.store(true, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(lasts)).await;
            link.down.store(false, Ordering::Relaxed);
            failed(&cluster, key, "node one lost contact with the store and ended its body", 0)
                .await;
        });
    }
}
