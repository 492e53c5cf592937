//! Tests the activity per time slot against the stored history of the same runs.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_core::activity::ActivityCounts;
use evenkeel_core::advance::SkipReason;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::retry::{Backoff, Jitter, RetryPolicy};
use evenkeel_core::{AttemptNo, Definition, NodeNo, Slot, Span, Timestamp};
use evenkeel_store::{
    ActivityDelta, Attempt, AttemptFilter, AttemptStore, PageRequest, RunStatsStore, SlotActivity,
};
use serde_json::json;

use crate::body::Time as _;
use crate::small_cluster::{SmallCluster, every, job, pass, run_paused};

const POLL: Duration = Duration::from_secs(1);

/// Registers jobs of which some succeed, some fail and are retried, and some skip scheduled times.
async fn register_jobs(cluster: &SmallCluster) {
    cluster.register(job(every(60), 1_000)).await;
    let failing = job(every(90), 1_000);
    let retry = RetryPolicy {
        max_retries: 1,
        backoff: Backoff::Fixed { delay: Span::from_secs(5) },
        jitter: Jitter::None,
    };
    let config = json!({ "mean_ms": 1_000, "fails_permille": 400 });
    let executor = evenkeel_core::job::ExecutorSpec { config, ..failing.executor.clone() };
    cluster.register(Definition { executor, retry, ..failing }).await;
    // A run takes 50 s to 150 s, so most runs are still active at the next scheduled time.
    let overlap = OverlapPolicy::Skip;
    cluster.register(Definition { overlap, ..job(every(60), 100_000) }).await;
}

async fn history(cluster: &SmallCluster) -> Vec<Attempt> {
    let (scope, mut all, mut after) = (cluster.scope().await, Vec::new(), None);
    loop {
        let page = PageRequest { after, ..PageRequest::first(500) };
        let filter = AttemptFilter::default();
        let found = cluster.model.list_attempts(&scope, filter, page).await.unwrap();
        all.extend(found.items);
        after = found.next;
        if after.is_none() {
            return all;
        }
    }
}

/// Computes the activity from the history. Every run starts as soon as it is fired, because the
/// cluster has enough workers.
fn counted(history: &[Attempt]) -> BTreeMap<Slot, ActivityCounts> {
    let mut slots: BTreeMap<Slot, ActivityCounts> = BTreeMap::new();
    let mut at = |time: Timestamp, count: &dyn Fn(&mut ActivityCounts)| {
        count(slots.entry(Slot::of(time)).or_default());
    };
    for attempt in history {
        if let Some(skip) = attempt.skipped {
            at(attempt.key.scheduled_at, &|counts| counts.skipped.add(skip.reason, skip.count));
            continue;
        }
        let started = attempt.started_at.unwrap();
        if attempt.key.attempt == AttemptNo::FIRST {
            let lateness = started.since(attempt.key.scheduled_at);
            at(started, &|counts| {
                counts.fired += 1;
                counts.lateness.record(lateness);
            });
        }
        let finished = attempt.finished_at.unwrap();
        let outcome = attempt.status.outcome().unwrap();
        at(finished, &|counts| counts.add_ended(outcome, finished.since(started)));
    }
    slots
}

async fn stored(cluster: &SmallCluster) -> BTreeMap<Slot, ActivityCounts> {
    let (from, until) = (Slot(0), Slot(i32::MAX));
    let found = cluster.model.list_activity(&cluster.scope().await, from, until, 10_000).await;
    found.unwrap().into_iter().map(|SlotActivity { slot, counts }| (slot, counts)).collect()
}

#[test]
fn activity_equals_the_history_of_all_runs() {
    run_paused(async {
        let cluster = SmallCluster::new(POLL);
        register_jobs(&cluster).await;
        let triggered = cluster.register(job(cluster.once_in(1), 1_000)).await;
        let engine = cluster.start("one", 16).await;
        pass(3600).await;
        cluster.trigger(triggered, None).await;
        pass(3600).await;
        engine.drain(Duration::from_secs(600)).await;
        let stored = stored(&cluster).await;
        assert_eq!(stored, counted(&history(&cluster).await));
        let mut total = ActivityCounts::default();
        stored.values().for_each(|counts| total.merge(counts));
        assert!(total.completed > 200 && total.failed > 20, "{total:?}");
        assert!(total.skipped.of(SkipReason::Overlap) > 20, "{total:?}");
        assert!((8..=9).contains(&stored.len()), "two hours have eight whole time slots");
    });
}

#[test]
fn activity_before_the_last_report_survives_a_crash() {
    run_paused(async {
        let cluster = SmallCluster::new(POLL);
        register_jobs(&cluster).await;
        let engine = cluster.start("one", 16).await;
        pass(1803).await;
        let crashed = cluster.time.db();
        drop(engine);
        let interval = Span::from(POLL * 5);
        let history = history(&cluster).await;
        let attempts = history.iter().filter(|attempt| attempt.skipped.is_none());
        let ended: Vec<Timestamp> = attempts.filter_map(|attempt| attempt.finished_at).collect();
        let reported = crashed.saturating_sub(interval);
        let certain = ended.iter().filter(|at| **at < reported).count() as u64;
        let ends = |counts: &ActivityCounts| counts.completed + counts.failed;
        let counted: u64 = stored(&cluster).await.values().map(ends).sum();
        assert!(certain > 40 && (certain..=ended.len() as u64).contains(&counted), "{counted}");
    });
}

#[test]
fn activity_is_kept_for_90_days() {
    run_paused(async {
        let cluster = SmallCluster::new(Duration::from_secs(60));
        let tenant = cluster.scope().await.tenant;
        let days_ago =
            |days: u64| Slot::of(cluster.time.db().saturating_sub(Span::from_secs(days * 86_400)));
        let counts = ActivityCounts { fired: 1, ..ActivityCounts::default() };
        let kept = [days_ago(80), days_ago(1)];
        let slots = [days_ago(200), days_ago(91)].into_iter().chain(kept);
        let activity = slots.map(|slot| ActivityDelta { tenant, slot, counts }).collect();
        let at = cluster.time.db();
        cluster.model.add_run_stats(NodeNo(1), vec![], vec![], activity, at).await.unwrap();
        let _engine = cluster.start("one", 1).await;
        // The node of this test prunes every seven days.
        pass(7 * 86_400 + 3600).await;
        assert_eq!(stored(&cluster).await.into_keys().collect::<Vec<_>>(), kept);
    });
}
