//! Purging of deleted jobs.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_store::{FireResult, PageRequest, Prune};

use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{Begin, at, new_job, now};
use crate::rig::{Known, Rig, next_attempt};

async fn purge(rig: &Rig, job: Known, limit: u32) -> u64 {
    rig.store.purge(&rig.scope, job.id, limit).await.unwrap()
}

pub async fn a_deleted_job_is_purged_in_steps(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let other = rig.add(new_job("other").build()).await;
    for minute in 1..=7 {
        rig.run_successfully(job, minute * 60).await;
        rig.run_successfully(other, minute * 60).await;
    }
    rig.store.delete(&rig.scope, job.id, now(500)).await.unwrap();
    assert_eq!(purge(&rig, job, 3).await, 3);
    assert_eq!(rig.times_of(job).await, [(240, 0), (180, 0), (120, 0), (60, 0)]);
    assert_eq!(purge(&rig, job, 3).await, 3);
    assert_eq!(purge(&rig, job, 3).await, 1);
    assert_eq!(purge(&rig, job, 3).await, 0);
    assert_eq!(rig.runs_of(job).await.len(), 0);
    assert_eq!(rig.runs_of(other).await.len(), 7);
    assert_eq!(rig.runs_page(None, PageRequest::first(99)).await.items.len(), 7);
}

pub async fn a_run_is_purged_whole(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    let held = rig.start(job, 120).await;
    rig.finish(rig.retry(held, at(130))).await;
    rig.store.delete(&rig.scope, job.id, now(140)).await.unwrap();
    assert_eq!(purge(&rig, job, 1).await, 2);
    assert_eq!(rig.times_of(job).await, [(60, 0)]);
}

pub async fn active_runs_are_not_purged(opened: Opened) {
    let rig = Rig::new(opened).await;
    let allow = evenkeel_core::overlap::OverlapPolicy::Allow;
    let job = rig.add(new_job("crawl").overlap(allow).build()).await;
    let first = rig.start(job, 60).await;
    rig.run_successfully(job, 120).await;
    let held = rig.start(job, 180).await;
    rig.finish(rig.retry(held, at(190))).await;
    let fired = rig.fire_delayed(&rig.delayed(190).await, Begin::Claimed, 190).await;
    assert!(matches!(fired[..], [FireResult::Fired(_)]));
    rig.store.delete(&rig.scope, job.id, now(200)).await.unwrap();
    assert_eq!(purge(&rig, job, 10).await, 1);
    let second = next_attempt(held.key);
    assert_eq!(rig.run(second).await.status, AttemptStatus::Running);
    assert_eq!(rig.times_of(job).await, [(180, 1), (180, 0), (60, 0)]);
    rig.finish(rig.success(first)).await;
    assert_eq!(purge(&rig, job, 10).await, 1);
    assert_eq!(rig.times_of(job).await, [(180, 1), (180, 0)]);
}

pub async fn attempts_that_pruning_keeps_are_purged(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.end(held, evenkeel_core::attempt::Outcome::Failed, crate::rig::OVER)).await;
    for minute in 2..=9 {
        rig.run_successfully(job, minute * 60).await;
    }
    let all_but_two = Prune { after: None, limit: 100, keep_per_job: 2, keep_since: at(0) };
    rig.store.prune(all_but_two).await.unwrap();
    assert_eq!(rig.times_of(job).await, [(540, 0), (480, 0), (60, 0)]);
    rig.store.delete(&rig.scope, job.id, now(600)).await.unwrap();
    assert_eq!(purge(&rig, job, 100).await, 3);
    assert_eq!(rig.census().await.runs, 0);
}

pub async fn only_deleted_jobs_of_the_scope_are_purged(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    assert_eq!(purge(&rig, job, 10).await, 0, "a job that is not deleted is not purged");
    rig.store.delete(&rig.scope, job.id, now(70)).await.unwrap();
    let stranger = rig.tenant("stranger").await;
    assert_eq!(rig.store.purge(&stranger, job.id, 10).await.unwrap(), 0);
    assert_eq!(rig.runs_of(job).await.len(), 1);
}
