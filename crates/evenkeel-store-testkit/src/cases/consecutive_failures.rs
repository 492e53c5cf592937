//! Tests the stored counts of consecutive failures of jobs.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::on_failure::{Hook, OnFailure};
use evenkeel_core::status::JobStatus;
use evenkeel_store::{
    Action, Applied, FailingJob, Finish, FinishResult, JobCommand, JobState, NewJob,
};

use crate::Opened;
use crate::commands::{Commands, done, job_after, resume};
use crate::fixtures::{at, new_job, now};
use crate::rig::{Known, OVER, Rig};

fn failing_job(name: &str, after: u16) -> NewJob {
    let mut job = new_job(name).build();
    job.definition.on_failure = OnFailure::Pause { after, note: Some("look at it".into()) };
    job
}

async fn fail(rig: &Rig, job: Known, after: u16, secs: i64) {
    let held = rig.start(job, secs).await;
    let hook = Hook::CountFailure { pause_after: after };
    let end = Finish { hook, ..rig.end(held, Outcome::Failed, OVER) };
    assert_eq!(rig.finish(end).await, FinishResult::Done);
}

async fn failing(rig: &Rig) -> Vec<(Known, u32)> {
    let jobs = rig.store.list_failing(100).await.unwrap();
    jobs.into_iter().map(|job| (Known { no: job.no, id: job.id }, job.failures)).collect()
}

pub async fn a_job_is_listed_after_its_number_of_failures(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(failing_job("crawl", 3)).await;
    fail(&rig, job, 3, 60).await;
    fail(&rig, job, 3, 120).await;
    assert_eq!(failing(&rig).await, []);
    fail(&rig, job, 3, 180).await;
    let returned = rig.store.list_failing(100).await.unwrap();
    let shown = rig.job(job).await;
    let expected = FailingJob {
        no: job.no,
        id: job.id,
        tenant: rig.scope.tenant,
        failures: 3,
        generation: shown.generation,
        definition: rig.due(job).await.definition,
    };
    assert_eq!(returned, [expected]);
    assert_eq!((shown.state, shown.note), (JobState::Active, None), "the job is not changed");
    fail(&rig, job, 3, 240).await;
    assert_eq!(failing(&rig).await, [(job, 4)]);
}

pub async fn a_success_resets_the_count(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(failing_job("crawl", 2)).await;
    fail(&rig, job, 2, 60).await;
    rig.run_successfully(job, 120).await;
    fail(&rig, job, 2, 180).await;
    assert_eq!(failing(&rig).await, []);
    fail(&rig, job, 2, 240).await;
    assert_eq!(failing(&rig).await, [(job, 2)]);
    rig.run_successfully(job, 300).await;
    assert_eq!(failing(&rig).await, [], "a success resets the count");
    fail(&rig, job, 2, 360).await;
    assert_eq!(failing(&rig).await, [], "one failure is below the limit of two");
}

pub async fn retried_attempts_do_not_count(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(failing_job("crawl", 1)).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.retry(held, at(70))).await;
    assert_eq!(failing(&rig).await, []);
}

pub async fn a_cancelled_run_does_not_count(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(failing_job("crawl", 1)).await;
    let held = rig.start(job, 60).await;
    rig.store.cancel_run(&rig.scope, held.key, now(61)).await.unwrap();
    let hook = Hook::CountFailure { pause_after: 1 };
    rig.finish(Finish { hook, ..rig.end(held, Outcome::Failed, OVER) }).await;
    assert_eq!(failing(&rig).await, []);
}

pub async fn a_repeated_end_does_not_count_again(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(failing_job("crawl", 2)).await;
    let held = rig.start(job, 60).await;
    let hook = Hook::CountFailure { pause_after: 2 };
    let end = Finish { hook, ..rig.end(held, Outcome::Failed, OVER) };
    assert_eq!(rig.finish(end.clone()).await, FinishResult::Done);
    assert_eq!(rig.finish(end).await, FinishResult::AlreadyDone);
    assert_eq!(failing(&rig).await, []);
}

pub async fn a_pause_shows_its_note_until_the_job_is_resumed(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(failing_job("crawl", 1)).await;
    fail(&rig, job, 1, 60).await;
    let note = "paused because a run failed".to_owned();
    let returned = rig.store.list_failing(1).await.unwrap().remove(0);
    let order = JobCommand {
        id: returned.id,
        if_generation: Some(returned.generation),
        if_fired: None,
        action: Action::Suspend { note: note.clone() },
    };
    let paused = job_after(rig.store.apply_one(&rig.scope, order.clone(), now(70)).await.unwrap());
    assert_eq!((paused.status(at(0)), paused.note.as_ref()), (JobStatus::Paused, Some(&note)));
    assert_eq!((paused.stopped_at, paused.next_at), (Some(at(70)), None));
    assert_eq!(rig.job(job).await, paused);
    let listed = rig.store.get_jobs(&rig.scope, &[job.id]).await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&paused));
    assert_eq!(failing(&rig).await, [], "a paused job is not returned again");
    let again = rig.store.apply_one(&rig.scope, order, now(71)).await.unwrap();
    assert!(matches!(again, Applied::NotAllowed(_)), "{again:?}");
    let change = Action::Change(Box::default());
    let changed = job_after(rig.store.act(&rig.scope, job.id, change, now(72)).await.unwrap());
    assert_eq!(changed.note, Some(note), "the job is still paused");
    let action = resume(Some(at(120)));
    let resumed = job_after(rig.store.act(&rig.scope, job.id, action, now(80)).await.unwrap());
    assert_eq!((resumed.status(at(0)), resumed.note), (JobStatus::Scheduled, None));
    let paused = rig.store.act(&rig.scope, job.id, Action::Pause, now(90)).await.unwrap();
    assert_eq!(job_after(paused).note, None, "a pause without a note");
}

pub async fn a_pause_or_resume_resets_the_count(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(failing_job("crawl", 2)).await;
    fail(&rig, job, 2, 60).await;
    done(rig.store.act(&rig.scope, job.id, Action::Pause, now(70)).await.unwrap());
    let action = resume(Some(at(120)));
    done(rig.store.act(&rig.scope, job.id, action, now(80)).await.unwrap());
    fail(&rig, job, 2, 120).await;
    assert_eq!(failing(&rig).await, []);
    fail(&rig, job, 2, 180).await;
    assert_eq!(failing(&rig).await, [(job, 2)]);
    // A caller that read the job before it was resumed has an outdated generation.
    let returned = rig.store.list_failing(1).await.unwrap().remove(0);
    done(rig.store.act(&rig.scope, job.id, Action::Pause, now(190)).await.unwrap());
    let action = resume(Some(at(240)));
    done(rig.store.act(&rig.scope, job.id, action, now(200)).await.unwrap());
    let order = JobCommand {
        id: returned.id,
        if_generation: Some(returned.generation),
        if_fired: None,
        action: Action::Suspend { note: "late".into() },
    };
    let answer = rig.store.apply_one(&rig.scope, order, now(201)).await.unwrap();
    assert!(matches!(answer, Applied::Stale(_)), "{answer:?}");
    assert_eq!(failing(&rig).await, []);
}

pub async fn a_reset_job_is_not_listed(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["a", "b", "c"];
    let jobs = rig.add_all(names.map(|name| failing_job(name, 1)).to_vec()).await;
    for job in &jobs {
        fail(&rig, *job, 1, 60).await;
    }
    assert_eq!(rig.store.list_failing(2).await.unwrap().len(), 2);
    rig.store.prune_failing(&[jobs[0].no, jobs[2].no]).await.unwrap();
    rig.store.prune_failing(&[]).await.unwrap();
    assert_eq!(failing(&rig).await, [(jobs[1], 1)]);
}

pub async fn a_cancelled_or_deleted_job_counts_no_failures(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["cancelled", "deleted"];
    let jobs = rig.add_all(names.map(|name| failing_job(name, 1)).to_vec()).await;
    let mut held = Vec::new();
    for job in &jobs {
        fail(&rig, *job, 1, 60).await;
        held.push(rig.start(*job, 120).await);
    }
    assert_eq!(failing(&rig).await.len(), 2);
    done(rig.store.act(&rig.scope, jobs[0].id, Action::Cancel, now(121)).await.unwrap());
    done(rig.store.act(&rig.scope, jobs[1].id, Action::Delete, now(121)).await.unwrap());
    assert_eq!(failing(&rig).await, []);
    for held in held {
        let hook = Hook::CountFailure { pause_after: 1 };
        rig.finish(Finish { hook, ..rig.end(held, Outcome::Failed, OVER) }).await;
    }
    assert_eq!(failing(&rig).await, []);
}
