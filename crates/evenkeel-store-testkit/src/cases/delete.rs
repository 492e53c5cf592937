//! Deleted jobs.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::{Shard, Slot};
use evenkeel_store::{Applied, FinishResult, JobFilter, JobSort, PageRequest};

use crate::Opened;
use crate::commands::{Commands, done, gone};
use crate::fixtures::{Begin, at, new_job, now};
use crate::rig::{Known, OVER, Rig, cancelled, next_attempt};

async fn delete(rig: &Rig, job: Known, secs: i64) -> Applied {
    rig.store.delete(&rig.scope, job.id, now(secs)).await.unwrap()
}

pub async fn a_deleted_job_is_not_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    assert_eq!(delete(&rig, job, 1).await, gone(Vec::new()));
    assert_eq!(rig.store.get(&rig.scope, job.id).await.unwrap(), None);
    let listed = rig
        .store
        .list_jobs(&rig.scope, &JobFilter::default(), JobSort::default(), PageRequest::first(9))
        .await
        .unwrap();
    assert_eq!((listed.items, listed.total), (Vec::new(), 0));
    assert_eq!(rig.store.load_jobs(&[job.no]).await.unwrap(), []);
    let until = Slot::of(at(9_000));
    assert_eq!(rig.store.load_due(Shard::of(job.no), until, None, 9).await.unwrap(), []);
    assert_eq!(rig.look(1, 10).await.changed, []);
    assert_eq!(rig.census().await.jobs, 0);
}

pub async fn a_second_deletion_finds_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    delete(&rig, job, 1).await;
    assert_eq!(delete(&rig, job, 2).await, Applied::NotFound);
}

pub async fn a_deleted_job_frees_its_name(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    delete(&rig, job, 1).await;
    let again = rig.add(new_job("crawl").build()).await;
    assert_ne!(again.no, job.no);
    delete(&rig, again, 2).await;
    rig.add(new_job("crawl").build()).await;
}

pub async fn a_deleted_job_keeps_its_history(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.run_successfully(job, 60).await;
    rig.run_successfully(job, 120).await;
    delete(&rig, job, 130).await;
    let run = rig.run(key).await;
    assert_eq!((run.status, run.job), (AttemptStatus::Completed, job.id));
    assert_eq!(rig.times_of(job).await, [(120, 0), (60, 0)]);
    assert_eq!(rig.runs_page(None, PageRequest::first(9)).await.items.len(), 2);
}

pub async fn a_queued_attempt_is_recorded_as_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.queue(job, 60).await;
    let deleted = done(delete(&rig, job, 70).await);
    assert_eq!((deleted.running, deleted.withdrawn), (vec![], vec![key]));
    let run = rig.run(key).await;
    assert_eq!((run.status, run.started_at), (AttemptStatus::Cancelled, None));
    assert_eq!(run.finished_at, Some(at(70)));
    assert_eq!(rig.claim(10, 71).await, []);
    let census = rig.census().await;
    assert_eq!((census.ready, census.live, census.runs), (0, 0, 1));
    assert_eq!(rig.times_of(job).await, [(60, 0)]);
}

pub async fn a_delayed_retry_is_recorded_as_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.retry(held, at(90))).await;
    delete(&rig, job, 70).await;
    assert_eq!(rig.delayed(1_000).await, []);
    let run = rig.run(next_attempt(held.key)).await;
    assert_eq!((run.status, run.finished_at), (AttemptStatus::Cancelled, Some(at(70))));
    let census = rig.census().await;
    assert_eq!((census.delayed, census.live, census.runs), (0, 0, 2));
    assert_eq!(rig.times_of(job).await, [(60, 1), (60, 0)]);
}

pub async fn a_delayed_trigger_is_recorded_as_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.trigger(job, 0, 10).await;
    delete(&rig, job, 20).await;
    let run = rig.run(key).await;
    assert_eq!((run.status, run.started_at), (AttemptStatus::Cancelled, None));
    let census = rig.census().await;
    assert_eq!((census.delayed, census.live, census.runs), (0, 0, 1));
    assert_eq!(rig.runs_of(job).await.len(), 1);
}

pub async fn a_requeued_attempt_is_recorded_as_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let back = rig.requeue_of(held, job, true).await;
    assert!(rig.requeue(back, 65).await);
    delete(&rig, job, 70).await;
    assert_eq!(rig.run(held.key).await.status, AttemptStatus::Cancelled);
    assert_eq!(rig.claim(10, 71).await, []);
    assert_eq!(rig.census().await.live, 0);
}

pub async fn a_running_attempt_is_asked_to_end_until_it_has(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let other = rig.add(new_job("other").build()).await;
    let held = rig.start(job, 60).await;
    rig.start(other, 60).await;
    assert_eq!(delete(&rig, job, 70).await, gone(vec![held.key]));
    let bystander = rig.join("node-2", 70).await;
    assert_eq!(rig.store.cancellations(bystander).await.unwrap(), []);
    for _ in 0..2 {
        assert_eq!(rig.cancellations().await, [cancelled(held)]);
    }
    let end = rig.end(held, Outcome::Cancelled, OVER);
    assert_eq!(rig.finish(end).await, FinishResult::Done);
    assert_eq!(rig.cancellations().await, []);
}

pub async fn a_running_attempt_may_still_end(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    delete(&rig, job, 61).await;
    assert_eq!(rig.census().await.live, 1);
    let end = rig.end(held, Outcome::Cancelled, OVER);
    assert_eq!(rig.finish(end).await, FinishResult::Done);
    assert_eq!(rig.run(held.key).await.status, AttemptStatus::Cancelled);
    assert_eq!(rig.census().await.live, 0);
    assert_eq!(rig.store.get(&rig.scope, job.id).await.unwrap(), None);
}

pub async fn a_run_of_a_deleted_job_is_not_retried(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    delete(&rig, job, 61).await;
    assert_eq!(rig.finish(rig.retry(held, at(90))).await, FinishResult::Done);
    assert_eq!(rig.run(held.key).await.status, AttemptStatus::Failed);
    assert_eq!(rig.delayed(1_000).await, []);
    let census = rig.census().await;
    assert_eq!((census.delayed, census.live), (0, 0));
}

pub async fn a_requeue_of_a_deleted_job_is_recorded_as_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let back = rig.requeue_of(held, job, true).await;
    delete(&rig, job, 61).await;
    assert!(rig.requeue(back, 65).await);
    let run = rig.run(held.key).await;
    assert_eq!((run.status, run.finished_at), (AttemptStatus::Cancelled, Some(at(65))));
    assert_eq!(rig.claim(10, 66).await, []);
    assert_eq!(rig.owned(rig.node).await, []);
    let census = rig.census().await;
    assert_eq!((census.ready, census.live, census.running), (0, 0, 0));
}

pub async fn a_delayed_attempt_of_a_deleted_job_is_stale(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.trigger(job, 0, 10).await;
    let delayed = rig.delayed(10).await;
    delete(&rig, job, 11).await;
    let answer = rig.fire_delayed(&delayed, Begin::Claimed, 12).await;
    assert_eq!(answer, [evenkeel_store::FireResult::Stale]);
    assert_eq!(rig.census().await.running, 0);
}
