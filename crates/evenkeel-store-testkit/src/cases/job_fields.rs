//! Tests the fields of a job besides its definition.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_store::{
    Finish, FinishResult, FireResult, Job, LAST_ERROR_MAX, Results, RunCancelled,
};

use crate::Opened;
use crate::commands::Commands as _;
use crate::fixtures::{Begin, at, new_job, now};
use crate::rig::{Held, Known, OVER, Rig, next_attempt};

fn failed(rig: &Rig, held: Held, error: &str) -> Finish {
    let results = Results { error: Some(error.into()), ..Results::default() };
    Finish { results, ..rig.end(held, Outcome::Failed, OVER) }
}

/// Reads the job with every store operation that returns jobs. All operations must return the same
/// data.
async fn by_all_ways(rig: &Rig, job: Known) -> Job {
    let before = rig.store.now().await.unwrap();
    let (shown, now) = rig.store.get_with_now(&rig.scope, job.id).await.unwrap().unwrap();
    let after = rig.store.now().await.unwrap();
    assert!((before..=after).contains(&now), "{before} {now} {after}");
    assert_eq!(rig.store.get(&rig.scope, job.id).await.unwrap().as_ref(), Some(&shown));
    let many = rig.store.get_jobs(&rig.scope, &[job.id]).await.unwrap();
    assert_eq!(many, std::slice::from_ref(&shown));
    shown
}

pub async fn a_job_is_the_same_in_every_read(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    assert_eq!(by_all_ways(&rig, job).await.live, 0);
    let held = rig.start(job, 60).await;
    assert_eq!(by_all_ways(&rig, job).await.running, Some(held.key));
    rig.finish(rig.retry(held, at(70))).await;
    assert_eq!(by_all_ways(&rig, job).await.waiting, 1);
    rig.fire_delayed(&rig.delayed(70).await, Begin::Queued, 70).await;
    assert_eq!(by_all_ways(&rig, job).await.waiting, 1);
    let held = rig.claim_one(71).await;
    rig.finish(failed(&rig, held, "no route")).await;
    assert_eq!(by_all_ways(&rig, job).await.last_error.as_deref(), Some("no route"));
    let held = rig.start(job, 120).await;
    rig.finish(rig.success(held)).await;
    assert_eq!(by_all_ways(&rig, job).await.succeeded_runs, 1);
    let stranger = rig.tenant("stranger").await;
    assert_eq!(rig.store.get_with_now(&stranger, job.id).await.unwrap(), None);
    rig.store.delete(&rig.scope, job.id, now(130)).await.unwrap();
    assert_eq!(rig.store.get_with_now(&rig.scope, job.id).await.unwrap(), None);
}

pub async fn the_running_attempt_is_shown(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    assert_eq!(rig.job(job).await.running, None);
    let first = rig.start(job, 60).await;
    assert_eq!(rig.job(job).await.running, Some(first.key));
    rig.queue(job, 120).await;
    let shown = rig.job(job).await;
    assert_eq!((shown.running, shown.running_since), (Some(first.key), Some(at(60))));
    let second = rig.claim_one(121).await;
    assert_eq!(rig.job(job).await.running, Some(second.key));
}

pub async fn retries_are_counted_until_the_run_ends(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    assert_eq!(rig.job(job).await.retry_count, 0);
    rig.finish(rig.retry(held, at(70))).await;
    assert_eq!(rig.job(job).await.retry_count, 1);
    let fired = rig.fire_delayed(&rig.delayed(70).await, Begin::Queued, 70).await;
    assert!(matches!(fired[..], [FireResult::Fired(_)]));
    assert_eq!(rig.job(job).await.retry_count, 1);
    let second = rig.claim_one(71).await;
    let shown = rig.job(job).await;
    assert_eq!((shown.retry_count, shown.running), (1, Some(next_attempt(held.key))));
    rig.finish(rig.success(second)).await;
    assert_eq!(rig.job(job).await.retry_count, 0);
}

pub async fn successes_and_failures_are_counted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let outcomes = Outcome::ALL.into_iter().chain([Outcome::Completed]);
    for (nth, outcome) in outcomes.enumerate() {
        let held = rig.start(job, 60 * (nth as i64 + 1)).await;
        assert_eq!(rig.finish(rig.end(held, outcome, OVER)).await, FinishResult::Done);
    }
    let shown = rig.job(job).await;
    assert_eq!((shown.succeeded_runs, shown.failed_runs, shown.executions), (3, 2, 7));
}

pub async fn the_last_error_is_shown_until_another_outcome(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(failed(&rig, held, "no route")).await;
    assert_eq!(rig.job(job).await.last_error.as_deref(), Some("no route"));
    let held = rig.start(job, 120).await;
    assert_eq!(rig.job(job).await.last_error.as_deref(), Some("no route"));
    rig.finish(rig.success(held)).await;
    assert_eq!(rig.job(job).await.last_error, None);
    let held = rig.start(job, 180).await;
    rig.finish(rig.end(held, Outcome::TimedOut, OVER)).await;
    assert_eq!(
        rig.job(job).await.last_error,
        None,
        "a result without an error text clears the last error"
    );
}

pub async fn a_long_error_is_cut_in_the_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let long = "ü".repeat(LAST_ERROR_MAX + 1);
    rig.finish(failed(&rig, held, &long)).await;
    let shown = rig.job(job).await.last_error.unwrap();
    assert_eq!(shown.chars().count(), LAST_ERROR_MAX);
    assert_eq!(rig.run(held.key).await.results.error, Some(long));
}

pub async fn a_withdrawn_attempt_is_the_last_outcome(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").once_at(60).build()).await;
    let key = rig.queue(job, 60).await;
    let answer = rig.store.cancel_run(&rig.scope, key, now(61)).await.unwrap();
    assert_eq!(answer, RunCancelled::Withdrawn(key));
    let shown = rig.job(job).await;
    assert_eq!(shown.last_outcome, Some(Outcome::Cancelled));
    assert_eq!(shown.status(at(0)), evenkeel_core::status::JobStatus::Cancelled);
}
