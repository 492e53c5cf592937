//! Cancelled runs.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::{AttemptKey, JobNo};
use evenkeel_store::{FinishResult, FireResult, RunCancelled, Then};

use crate::Opened;
use crate::fixtures::{Begin, at, new_job, now};
use crate::rig::{OVER, Rig, cancelled, next_attempt};

async fn cancel(rig: &Rig, key: AttemptKey, secs: i64) -> RunCancelled {
    rig.store.cancel_run(&rig.scope, key, now(secs)).await.unwrap()
}

pub async fn a_running_attempt_is_asked_to_end_until_it_has(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let other = rig.add(new_job("other").build()).await;
    let held = rig.start(job, 60).await;
    rig.start(other, 60).await;
    for _ in 0..2 {
        assert_eq!(cancel(&rig, held.key, 70).await, RunCancelled::Asked(held.key));
        assert_eq!(rig.cancellations().await, [cancelled(held)]);
    }
    let end = rig.end(held, Outcome::Cancelled, OVER);
    assert_eq!(rig.finish(end).await, FinishResult::Done);
    assert_eq!(rig.cancellations().await, []);
    assert_eq!(cancel(&rig, held.key, 80).await, RunCancelled::Over);
    let shown = rig.job(job).await;
    assert_eq!((shown.next_at, shown.live), (Some(at(120)), 0));
}

pub async fn a_later_attempt_is_found_by_the_id_of_its_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.retry(held, at(70))).await;
    let delayed = rig.delayed(70).await;
    assert!(matches!(
        rig.fire_delayed(&delayed, Begin::Claimed, 70).await[..],
        [FireResult::Fired(_)]
    ));
    let second = next_attempt(held.key);
    assert_eq!(cancel(&rig, held.key, 71).await, RunCancelled::Asked(second));
    assert_eq!(cancel(&rig, second, 71).await, RunCancelled::Asked(second));
}

pub async fn a_queued_attempt_is_recorded_as_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.queue(job, 60).await;
    assert_eq!(cancel(&rig, key, 70).await, RunCancelled::Withdrawn(key));
    let run = rig.run(key).await;
    assert_eq!(
        (run.status, run.started_at, run.finished_at),
        (AttemptStatus::Cancelled, None, Some(at(70)))
    );
    assert_eq!(rig.claim(10, 71).await, []);
    let census = rig.census().await;
    assert_eq!((census.ready, census.live, census.runs), (0, 0, 1));
    assert_eq!(rig.times_of(job).await, [(60, 0)]);
    assert_eq!(cancel(&rig, key, 72).await, RunCancelled::Over);
    // The job continues.
    rig.run_successfully(job, 120).await;
    assert_eq!(rig.times_of(job).await, [(120, 0), (60, 0)]);
}

pub async fn a_delayed_retry_is_recorded_as_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.retry(held, at(90))).await;
    let second = next_attempt(held.key);
    assert_eq!(cancel(&rig, held.key, 70).await, RunCancelled::Withdrawn(second));
    assert_eq!(rig.delayed(1_000).await, []);
    let run = rig.run(second).await;
    assert_eq!((run.status, run.finished_at), (AttemptStatus::Cancelled, Some(at(70))));
    let census = rig.census().await;
    assert_eq!((census.delayed, census.live), (0, 0));
    assert_eq!(rig.times_of(job).await, [(60, 1), (60, 0)]);
}

pub async fn a_delayed_trigger_is_recorded_as_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.trigger(job, 0, 10).await;
    let returned = rig.delayed(10).await;
    assert_eq!(cancel(&rig, key, 11).await, RunCancelled::Withdrawn(key));
    assert_eq!(rig.fire_delayed(&returned, Begin::Claimed, 12).await, [FireResult::Stale]);
    assert_eq!(rig.run(key).await.status, AttemptStatus::Cancelled);
    assert_eq!(rig.census().await.live, 0);
    assert_eq!(rig.runs_of(job).await.len(), 1);
    rig.run_successfully(job, 60).await;
    assert_eq!(rig.runs_of(job).await.len(), 2);
}

pub async fn a_requeued_attempt_is_recorded_as_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let back = rig.requeue_of(held, job, true).await;
    assert!(rig.requeue(back, 65).await);
    assert_eq!(cancel(&rig, held.key, 70).await, RunCancelled::Withdrawn(held.key));
    assert_eq!(rig.run(held.key).await.status, AttemptStatus::Cancelled);
    assert_eq!(rig.claim(10, 71).await, []);
    assert_eq!(rig.census().await.live, 0);
}

pub async fn a_run_that_was_asked_to_end_is_not_retried(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    cancel(&rig, held.key, 61).await;
    assert_eq!(rig.finish(rig.retry(held, at(90))).await, FinishResult::Done);
    assert_eq!(rig.run(held.key).await.status, AttemptStatus::Failed);
    assert_eq!(rig.delayed(1_000).await, []);
    let census = rig.census().await;
    assert_eq!((census.delayed, census.live), (0, 0));
}

pub async fn a_failure_of_a_run_that_was_asked_to_end_does_not_stop_the_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    cancel(&rig, held.key, 61).await;
    let end = rig.end(held, Outcome::Failed, Then::EndRun { stop_job: true, next_at: None });
    assert_eq!(rig.finish(end).await, FinishResult::Done);
    assert_eq!(rig.job(job).await.next_at, Some(at(120)));
}

pub async fn an_attempt_that_was_asked_to_end_is_not_requeued(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let back = rig.requeue_of(held, job, true).await;
    cancel(&rig, held.key, 61).await;
    assert!(rig.requeue(back, 65).await);
    let run = rig.run(held.key).await;
    assert_eq!((run.status, run.finished_at), (AttemptStatus::Cancelled, Some(at(65))));
    assert_eq!(rig.claim(10, 66).await, []);
    let census = rig.census().await;
    assert_eq!((census.ready, census.live, census.running), (0, 0, 0));
    assert_eq!(rig.cancellations().await, []);
}

pub async fn an_ended_unknown_or_foreign_run_is_not_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.run_successfully(job, 60).await;
    assert_eq!(cancel(&rig, key, 70).await, RunCancelled::Over);
    assert_eq!(rig.run(key).await.status, AttemptStatus::Completed);
    let never = AttemptKey::regular(job.no, at(61));
    assert_eq!(cancel(&rig, never, 70).await, RunCancelled::NotFound);
    let nobodys = AttemptKey::regular(JobNo(987_654), at(60));
    assert_eq!(cancel(&rig, nobodys, 70).await, RunCancelled::NotFound);
    let stranger = rig.tenant("stranger").await;
    let held = rig.start(job, 120).await;
    let asked = rig.store.cancel_run(&stranger, held.key, now(121)).await.unwrap();
    assert_eq!(asked, RunCancelled::NotFound);
    assert_eq!(rig.cancellations().await, []);
}
