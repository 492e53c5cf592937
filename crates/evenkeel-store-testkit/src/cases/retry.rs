//! Commands that retry failed runs.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::status::JobStatus;
use evenkeel_core::{Origin, Sequence};
use evenkeel_store::{Action, Applied, FinishResult, FireResult, Then};

use crate::Opened;
use crate::commands::{Commands, done};
use crate::fixtures::{Begin, at, new_job, now};
use crate::rig::{Held, Known, OVER, Rig};

const STOPS: Then = Then::EndRun { stop_job: true, next_at: None };

async fn retry(rig: &Rig, job: Known, next: Option<i64>, secs: i64) -> Applied {
    let action = Action::Retry { n: 7, next_at: next.map(at) };
    rig.store.act(&rig.scope, job.id, action, now(secs)).await.unwrap()
}

async fn fail(rig: &Rig, job: Known, then: Then, secs: i64) -> Held {
    let held = rig.start(job, secs).await;
    assert_eq!(rig.finish(rig.end(held, Outcome::Failed, then)).await, FinishResult::Done);
    held
}

pub async fn a_failed_run_is_retried_as_a_new_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    fail(&rig, job, OVER, 60).await;
    let answer = done(retry(&rig, job, None, 70).await);
    let key = answer.run.unwrap();
    assert_eq!((key.scheduled_at, key.attempt.0), (at(70), 0));
    assert_eq!(key.sequence, Sequence::new(Origin::Trigger, 7));
    let shown = rig.job(job).await;
    assert_eq!(answer.job, Some(shown.clone()));
    assert_eq!((shown.status(at(0)), shown.live, shown.retry_count), (JobStatus::Pending, 1, 0));
    assert_eq!((shown.next_at, shown.generation, shown.since), (Some(at(120)), 2, at(0)));
    let delayed = rig.delayed(70).await;
    assert_eq!((delayed[0].key, delayed[0].due), (key, at(70)));
    let fired = rig.fire_delayed(&delayed, Begin::Claimed, 70).await;
    let [FireResult::Fired(fence)] = fired[..] else { panic!("{fired:?}") };
    assert_eq!(rig.finish(rig.success(Held { key, fence })).await, FinishResult::Done);
    rig.run_successfully(job, 120).await;
    assert_eq!(rig.times_of(job).await, [(120, 0), (70, 0), (60, 0)]);
}

pub async fn a_job_stopped_by_failures_continues(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    fail(&rig, job, STOPS, 60).await;
    assert_eq!(rig.job(job).await.status(at(0)), JobStatus::Failed);
    rig.look(69, 10).await;
    let shown = done(retry(&rig, job, Some(180), 70).await).job.unwrap();
    assert_eq!((shown.next_at, shown.since), (Some(at(180)), at(70)));
    assert_eq!(shown.status(at(0)), JobStatus::Pending);
    assert_eq!(rig.look(70, 10).await.changed, [rig.due(job).await]);
}

pub async fn a_job_that_has_a_next_time_keeps_it(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    fail(&rig, job, OVER, 60).await;
    let shown = done(retry(&rig, job, Some(180), 70).await).job.unwrap();
    assert_eq!((shown.next_at, shown.since), (Some(at(120)), at(0)));
}

pub async fn a_job_whose_last_run_did_not_fail_is_not_retried(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["good", "new", "running", "paused"];
    let jobs = rig.add_all(names.map(|name| new_job(name).build()).to_vec()).await;
    rig.run_successfully(jobs[0], 60).await;
    fail(&rig, jobs[2], OVER, 60).await;
    rig.start(jobs[2], 120).await;
    fail(&rig, jobs[3], OVER, 60).await;
    done(rig.store.act(&rig.scope, jobs[3].id, Action::Pause, now(70)).await.unwrap());
    for job in jobs {
        let before = rig.job(job).await;
        let answer = retry(&rig, job, None, 130).await;
        assert!(matches!(answer, Applied::NotAllowed(_)), "{answer:?}");
        assert_eq!(rig.job(job).await, before);
    }
    assert_eq!(rig.census().await.delayed, 0);
}

pub async fn a_taken_number_is_replaced_by_the_next(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    fail(&rig, job, OVER, 60).await;
    let first = done(retry(&rig, job, None, 70).await).run.unwrap();
    let fired = rig.fire_delayed(&rig.delayed(70).await, Begin::Claimed, 70).await;
    let [FireResult::Fired(fence)] = fired[..] else { panic!("{fired:?}") };
    rig.finish(rig.end(Held { key: first, fence }, Outcome::Failed, OVER)).await;
    let second = done(retry(&rig, job, None, 70).await).run.unwrap();
    assert_eq!(second.sequence, Sequence::new(Origin::Trigger, 8));
}
