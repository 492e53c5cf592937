//! Tests that cancelled jobs never run again but stay visible.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::status::{Command, JobStatus};
use evenkeel_core::{Shard, Slot};
use evenkeel_store::{
    Action, Applied, CommandEffect, FinishResult, FireResult, JobFilter, JobSort, JobState,
    PageRequest, Registered, Triggered,
};

use crate::Opened;
use crate::commands::{Commands, done, gone, resume};
use crate::fixtures::{Begin, at, fire_of, new_job, now, plain_trigger};
use crate::rig::{Known, OVER, Rig, cancelled, next_attempt};

async fn act(rig: &Rig, job: Known, action: Action, secs: i64) -> Applied {
    rig.store.act(&rig.scope, job.id, action, now(secs)).await.unwrap()
}

async fn cancel(rig: &Rig, job: Known, secs: i64) -> CommandEffect {
    done(act(rig, job, Action::Cancel, secs).await)
}

pub async fn a_cancelled_job_has_ended_and_is_still_visible(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    let answer = cancel(&rig, job, 10).await;
    let shown = rig.job(job).await;
    assert_eq!(
        answer,
        CommandEffect {
            job: Some(shown.clone()),
            running: Vec::new(),
            withdrawn: Vec::new(),
            run: None
        }
    );
    assert_eq!((shown.status(at(0)), shown.state), (JobStatus::Cancelled, JobState::Cancelled));
    assert_eq!((shown.next_at, shown.stopped_at), (None, Some(at(10))));
    assert_eq!(rig.fire(vec![fire], 60).await, [FireResult::Stale]);
    assert_eq!(rig.store.load_jobs(&[job.no]).await.unwrap(), []);
    let until = Slot::of(at(9_000));
    assert_eq!(rig.store.load_due(Shard::of(job.no), until, None, 9).await.unwrap(), []);
    assert_eq!(rig.look(10, 10).await.changed, []);
    let (filter, sort) = (JobFilter::default(), JobSort::default());
    let page = PageRequest::first(9);
    let listed = rig.store.list_jobs(&rig.scope, &filter, sort, page).await.unwrap();
    assert_eq!((listed.items, listed.total), (vec![shown], 1));
    let again = rig.register(vec![new_job("crawl").build()]).await;
    assert_eq!(again, [Registered::NameTaken(job.id)]);
}

pub async fn waiting_attempts_are_recorded_as_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = ["queued", "retried", "asked for"].map(|name| new_job(name).build());
    let jobs = rig.add_all(jobs.to_vec()).await;
    let held = rig.start(jobs[1], 60).await;
    rig.finish(rig.retry(held, at(90))).await;
    let keys =
        [rig.queue(jobs[0], 60).await, next_attempt(held.key), rig.trigger(jobs[2], 0, 65).await];
    for (job, key) in jobs.iter().zip(keys) {
        cancel(&rig, *job, 70).await;
        let run = rig.run(key).await;
        assert_eq!((run.status, run.finished_at), (AttemptStatus::Cancelled, Some(at(70))));
    }
    let census = rig.census().await;
    assert_eq!((census.ready, census.delayed, census.live, census.at_risk), (0, 0, 0, 0));
}

pub async fn running_attempts_are_asked_to_end(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    assert_eq!(cancel(&rig, job, 61).await.running, [held.key]);
    assert_eq!(rig.cancellations().await, [cancelled(held)]);
    let end = rig.end(held, Outcome::Cancelled, OVER);
    assert_eq!(rig.finish(end).await, FinishResult::Done);
    let shown = rig.job(job).await;
    assert_eq!((shown.status(at(0)), shown.live), (JobStatus::Cancelled, 0));
    assert_eq!(shown.stopped_at, Some(at(61)));
}

pub async fn a_cancelled_job_is_not_retried(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["failed", "handed back"];
    let jobs = rig.add_all(names.map(|name| new_job(name).build()).to_vec()).await;
    let (failed, lost) = (rig.start(jobs[0], 60).await, rig.start(jobs[1], 60).await);
    let back = rig.requeue_of(lost, jobs[1], true).await;
    cancel(&rig, jobs[0], 61).await;
    cancel(&rig, jobs[1], 61).await;
    assert_eq!(rig.finish(rig.retry(failed, at(90))).await, FinishResult::Done);
    assert!(rig.requeue(back, 65).await);
    assert_eq!(rig.run(lost.key).await.status, AttemptStatus::Cancelled);
    let census = rig.census().await;
    assert_eq!((census.ready, census.delayed, census.live), (0, 0, 0));
}

pub async fn a_cancelled_job_accepts_only_its_deletion(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    cancel(&rig, job, 10).await;
    let before = rig.job(job).await;
    for action in [
        Action::Pause,
        resume(Some(at(90))),
        Action::Cancel,
        Action::Retry { n: 0, next_at: None },
        Action::Change(Box::default()),
    ] {
        let Applied::NotAllowed(refusal) = act(&rig, job, action.clone(), 20).await else {
            panic!("{action:?}");
        };
        assert_eq!(refusal.status, JobStatus::Cancelled);
        assert_eq!(refusal.allowed, [Command::Delete]);
    }
    let asked = rig.store.trigger(&rig.scope, job.id, plain_trigger(0), now(20)).await.unwrap();
    assert!(matches!(asked, Triggered::NotAllowed(_)), "{asked:?}");
    assert_eq!(rig.job(job).await, before);
    assert_eq!(act(&rig, job, Action::Delete, 30).await, gone(Vec::new()));
    assert_eq!(act(&rig, job, Action::Delete, 31).await, Applied::NotFound);
}

pub async fn a_paused_job_can_be_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    done(act(&rig, job, Action::Pause, 10).await);
    let key = rig.trigger(job, 0, 20).await;
    let after = cancel(&rig, job, 30).await.job.unwrap();
    assert_eq!((after.status(at(0)), after.stopped_at), (JobStatus::Cancelled, Some(at(30))));
    assert_eq!(rig.run(key).await.status, AttemptStatus::Cancelled);
}

pub async fn a_cancelled_job_is_no_longer_at_risk(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.store.mark_at_risk(&[job.no]).await.unwrap();
    cancel(&rig, job, 61).await;
    assert_eq!(rig.census().await.at_risk, 0);
    rig.finish(rig.end(held, Outcome::Failed, OVER)).await;
    rig.store.mark_at_risk(&[job.no]).await.unwrap();
    assert_eq!(rig.census().await.at_risk, 0);
    assert_eq!(rig.look(100, 10).await.changed, []);
}
