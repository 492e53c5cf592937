//! Pause and resume.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::status::{Command, JobStatus};
use evenkeel_core::{Shard, Slot, Span};
use evenkeel_store::{
    Action, Applied, CommandEffect, FinishResult, FireResult, Job, JobChange, JobState, Triggered,
};

use crate::Opened;
use crate::commands::{Commands, done, job_after, resume};
use crate::fixtures::{Begin, at, fire_of, new_job, now, plain_trigger};
use crate::rig::{Held, Known, Rig, next_attempt};

async fn act(rig: &Rig, job: Known, action: Action, secs: i64) -> Applied {
    rig.store.act(&rig.scope, job.id, action, now(secs)).await.unwrap()
}

async fn pause(rig: &Rig, job: Known, secs: i64) -> CommandEffect {
    done(act(rig, job, Action::Pause, secs).await)
}

async fn resumed(rig: &Rig, job: Known, next: Option<i64>, secs: i64) -> Job {
    job_after(act(rig, job, resume(next.map(at)), secs).await)
}

pub async fn a_paused_job_shows_since_when(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let paused = pause(&rig, job, 10).await;
    let shown = rig.job(job).await;
    assert_eq!(
        paused,
        CommandEffect {
            job: Some(shown.clone()),
            running: Vec::new(),
            withdrawn: Vec::new(),
            run: None
        }
    );
    assert_eq!((shown.status(at(0)), shown.state), (JobStatus::Paused, JobState::Paused));
    assert_eq!((shown.next_at, shown.stopped_at), (None, Some(at(10))));
    assert_eq!((shown.generation, shown.updated_at, shown.since), (2, at(10), at(0)));
    assert_eq!(rig.census().await.jobs, 1);
}

pub async fn a_paused_job_does_not_fire(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    pause(&rig, job, 10).await;
    assert_eq!(rig.fire(vec![fire], 60).await, [FireResult::Stale]);
    let until = Slot::of(at(9_000));
    assert_eq!(rig.store.load_due(Shard::of(job.no), until, None, 9).await.unwrap(), []);
    assert_eq!(rig.due(job).await.next_at, None);
}

pub async fn a_queued_attempt_is_recorded_as_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.queue(job, 60).await;
    let paused = pause(&rig, job, 70).await;
    assert_eq!((paused.running, paused.withdrawn), (vec![], vec![key]));
    let run = rig.run(key).await;
    assert_eq!((run.status, run.started_at), (AttemptStatus::Cancelled, None));
    assert_eq!(run.finished_at, Some(at(70)));
    assert_eq!(rig.claim(10, 71).await, []);
    let shown = rig.job(job).await;
    assert_eq!((shown.live, shown.last_outcome), (0, Some(Outcome::Cancelled)));
    assert_eq!(rig.times_of(job).await, [(60, 0)]);
}

pub async fn delayed_attempts_are_recorded_as_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let other = rig.add(new_job("other").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.retry(held, at(90))).await;
    let asked = rig.trigger(other, 0, 65).await;
    let returned = rig.delayed(1_000).await;
    assert_eq!(pause(&rig, job, 70).await.withdrawn, [next_attempt(held.key)]);
    assert_eq!(pause(&rig, other, 70).await.withdrawn, [asked]);
    assert_eq!(rig.delayed(1_000).await, []);
    assert_eq!(rig.fire_delayed(&returned, Begin::Claimed, 90).await, [FireResult::Stale; 2]);
    for key in [next_attempt(held.key), asked] {
        let run = rig.run(key).await;
        assert_eq!((run.status, run.finished_at), (AttemptStatus::Cancelled, Some(at(70))));
    }
    let census = rig.census().await;
    assert_eq!((census.delayed, census.live), (0, 0));
    assert_eq!(rig.runs_of(other).await.len(), 1);
}

pub async fn running_attempts_continue_and_are_returned(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let paused = pause(&rig, job, 61).await;
    assert_eq!((paused.running, paused.withdrawn), (vec![held.key], vec![]));
    assert_eq!(rig.cancellations().await, []);
    assert_eq!(rig.finish(rig.success(held)).await, FinishResult::Done);
    let shown = rig.job(job).await;
    assert_eq!((shown.status(at(0)), shown.live, shown.next_at), (JobStatus::Paused, 0, None));
    assert_eq!(shown.last_outcome, Some(Outcome::Completed));
}

pub async fn running_attempts_are_not_retried(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    pause(&rig, job, 61).await;
    assert_eq!(rig.finish(rig.retry(held, at(90))).await, FinishResult::Done);
    assert_eq!(rig.run(held.key).await.status, AttemptStatus::Failed);
    assert_eq!(rig.delayed(1_000).await, []);
    assert_eq!(rig.job(job).await.live, 0);
}

pub async fn a_pause_holds_after_the_clock_was_set_back(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    pause(&rig, job, 50).await;
    assert_eq!(rig.finish(rig.retry(held, at(90))).await, FinishResult::Done);
    assert_eq!(rig.delayed(1_000).await, []);
    assert_eq!(rig.job(job).await.live, 0);
}

pub async fn a_requeued_attempt_is_recorded_as_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let back = rig.requeue_of(held, job, true).await;
    pause(&rig, job, 61).await;
    assert!(rig.requeue(back, 65).await);
    let run = rig.run(held.key).await;
    assert_eq!((run.status, run.finished_at), (AttemptStatus::Cancelled, Some(at(65))));
    assert_eq!(rig.claim(10, 66).await, []);
    let shown = rig.job(job).await;
    assert_eq!((shown.live, shown.last_outcome), (0, Some(Outcome::Cancelled)));
}

pub async fn a_trigger_of_a_paused_job_runs_to_its_end(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    pause(&rig, job, 10).await;
    let key = rig.trigger(job, 0, 20).await;
    let delayed = rig.delayed(20).await;
    let fired = rig.fire_delayed(&delayed, Begin::Claimed, 20).await;
    let [FireResult::Fired(fence)] = fired[..] else { panic!("{fired:?}") };
    assert_eq!(rig.finish(rig.retry(Held { key, fence }, at(40))).await, FinishResult::Done);
    let delayed = rig.delayed(40).await;
    let fired = rig.fire_delayed(&delayed, Begin::Claimed, 40).await;
    let [FireResult::Fired(fence)] = fired[..] else { panic!("{fired:?}") };
    let second = Held { key: next_attempt(key), fence };
    let back = rig.requeue_of(second, job, true).await;
    assert!(rig.requeue(back, 45).await);
    let again = rig.claim_one(46).await;
    assert_eq!(again.key, second.key);
    assert_eq!(rig.finish(rig.success(again)).await, FinishResult::Done);
    assert_eq!(rig.job(job).await.status(at(0)), JobStatus::Paused);
}

pub async fn a_trigger_at_the_moment_of_the_pause_gets_a_later_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    pause(&rig, job, 10).await;
    let after = at(10).saturating_add(Span::from_micros(1));
    assert_eq!(rig.trigger(job, 0, 10).await.scheduled_at, after);
    assert_eq!(rig.delayed(11).await[0].due, after);
}

pub async fn a_paused_job_can_be_changed_but_gets_no_next_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    pause(&rig, job, 10).await;
    let other = new_job("crawl").every(900).build();
    let change = JobChange {
        definition: Some(other.definition.clone()),
        next_at: Some(Some(at(60))),
        ..JobChange::default()
    };
    let answer = rig.store.update(&rig.scope, job.id, change, now(20)).await.unwrap();
    let after = job_after(answer);
    assert_eq!((after.next_at, after.status(at(0))), (None, JobStatus::Paused));
    assert_eq!((after.stopped_at, after.updated_at, after.since), (Some(at(10)), at(20), at(20)));
    assert_eq!(after.definition, other.definition);
    assert_eq!(rig.due(job).await.next_at, None);
    assert_eq!(
        rig.look(21, 10).await.changed.len(),
        1,
        "the scheduler is notified of the registration only"
    );
}

pub async fn a_paused_job_cannot_be_paused_again(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    pause(&rig, job, 10).await;
    let key = rig.trigger(job, 0, 20).await;
    let before = rig.job(job).await;
    let Applied::NotAllowed(refusal) = act(&rig, job, Action::Pause, 21).await else { panic!() };
    assert_eq!((refusal.status, refusal.command), (JobStatus::Paused, Command::Pause));
    assert!(refusal.allowed.contains(&Command::Resume));
    assert_eq!(rig.job(job).await, before, "no attempt is cancelled");
    assert_eq!(rig.delayed(21).await[0].key, key);
}

pub async fn a_resumed_job_continues_at_the_given_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    pause(&rig, job, 70).await;
    rig.look(70, 10).await;
    let after = resumed(&rig, job, Some(500), 400).await;
    assert_eq!((after.status(at(0)), after.next_at), (JobStatus::Scheduled, Some(at(500))));
    assert_eq!((after.stopped_at, after.since, after.generation), (None, at(400), 3));
    assert_eq!(rig.look(400, 10).await.changed, [rig.due(job).await]);
    rig.run_successfully(job, 500).await;
    assert_eq!(rig.times_of(job).await, [(500, 0), (60, 0)]);
    pause(&rig, job, 510).await;
    let after = resumed(&rig, job, None, 520).await;
    assert_eq!((after.next_at, after.since), (None, at(400)), "no new decision was made");
}

pub async fn a_job_is_not_resumed_at_a_fired_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    pause(&rig, job, 61).await;
    let before = rig.job(job).await;
    let answer = act(&rig, job, resume(Some(at(60))), 62).await;
    assert_eq!(answer, Applied::Stale(Box::new(before.clone())));
    assert_eq!(rig.job(job).await, before);
}

pub async fn a_job_may_be_resumed_without_a_next_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").once_at(60).build()).await;
    let held = rig.start(job, 60).await;
    pause(&rig, job, 61).await;
    rig.finish(rig.success(held)).await;
    let after = resumed(&rig, job, None, 70).await;
    assert_eq!((after.status(at(0)), after.next_at), (JobStatus::Completed, None));
}

pub async fn only_a_paused_job_can_be_resumed(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let answer = act(&rig, job, resume(Some(at(90))), 10).await;
    assert!(matches!(answer, Applied::NotAllowed(_)), "{answer:?}");
    assert_eq!(rig.job(job).await.next_at, Some(at(60)));
}

pub async fn running_attempts_are_retried_after_a_resume(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    pause(&rig, job, 61).await;
    let answer = act(&rig, job, resume(Some(at(120))), 62).await;
    assert_eq!(done(answer).running, [held.key]);
    assert_eq!(rig.finish(rig.retry(held, at(90))).await, FinishResult::Done);
    assert_eq!(rig.delayed(90).await[0].key, next_attempt(held.key));
}

pub async fn an_at_risk_job_is_judged_again_when_it_is_paused(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.store.mark_at_risk(&[job.no]).await.unwrap();
    let shards: Vec<Shard> = Shard::all().collect();
    let before = rig.store.to_judge(&shards, 10, now(1)).await.unwrap().jobs;
    pause(&rig, job, 10).await;
    let after = rig.store.to_judge(&shards, 10, now(10)).await.unwrap().jobs;
    assert_eq!((before.len(), after.len(), after[0].active), (1, 1, false));
    assert_ne!(after[0].touched, before[0].touched);
}

pub async fn a_paused_job_may_be_triggered_unless_a_run_is_active(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.start(job, 60).await;
    pause(&rig, job, 61).await;
    let asked = rig.store.trigger(&rig.scope, job.id, plain_trigger(0), now(62)).await.unwrap();
    assert_eq!(asked, Triggered::Busy);
}
