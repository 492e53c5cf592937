//! Tests which active attempts of a job can go back to the queue.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::order::Priority;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_store::{
    Action, FinishResult, LiveAttempt, LiveState, LongAttempt, OverrideResult, Ping, Prune,
    RunCancelled, Trigger, Triggered,
};

use super::dedup::{HOUR, PENDING, RUNNING, act, keyed, made, once, with_scope};
use super::override_outcome::{apply, back, ended, messages, result_of, runs};
use crate::Opened;
use crate::commands::{done, resume};
use crate::fixtures::{Begin, at, new_job, now, unnamed_job};
use crate::rig::{Held, Known, OVER, Rig, next_attempt};

async fn active_attempts(rig: &Rig, job: Known) -> Vec<LiveAttempt> {
    rig.store.active_attempts(&rig.scope, job.id, 1_000).await.expect("active attempts can be read")
}

fn waits(key: evenkeel_core::AttemptKey) -> LiveAttempt {
    LiveAttempt { key, state: LiveState::Waiting, priority: None }
}

pub async fn active_attempts_are_returned_oldest_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    assert_eq!(active_attempts(&rig, job).await, []);
    let fails = rig.start(job, 60).await;
    rig.finish(rig.retry(fails, at(900))).await;
    rig.run_successfully(job, 120).await;
    let held = rig.start(job, 180).await;
    let queued = rig.queue(job, 240).await;
    let triggered = rig.trigger(job, 0, 250).await;
    let runs = LiveAttempt { key: held.key, state: runs(held), priority: None };
    let all = [waits(next_attempt(fails.key)), runs, waits(queued), waits(triggered)];
    assert_eq!(active_attempts(&rig, job).await, all);
    assert_eq!(rig.store.active_attempts(&rig.scope, job.id, 2).await.unwrap(), all[..2]);
    let other = rig.tenant("other").await;
    assert_eq!(rig.store.active_attempts(&other, job.id, 9).await.unwrap(), []);
    for one in all {
        assert!(apply(&rig, ended(one.key, one.state, Outcome::Completed, 260)).await);
    }
    assert_eq!(active_attempts(&rig, job).await, []);
    assert_eq!(rig.job(job).await.live, 0);
}

pub async fn all_active_attempts_are_returned(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let held = rig.start(job, 60).await;
    for n in 0..150 {
        rig.trigger(job, n, 70).await;
    }
    let all = active_attempts(&rig, job).await;
    assert_eq!(all.len(), 151);
    assert_eq!(all[0].key, held.key);
}

pub async fn a_long_attempt_is_active_after_newer_ones_were_pruned(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let held = rig.start(job, 60).await;
    for secs in [120, 180, 240] {
        rig.run_successfully(job, secs).await;
    }
    let long = LongAttempt { key: held.key, fence: held.fence, started_at: at(60) };
    let ping = Ping { node: rig.node, oldest_open: Some(at(240)), long_attempts: vec![long] };
    rig.store.ping(&ping, now(250)).await.unwrap();
    let prune = Prune { after: None, limit: 100, keep_per_job: 0, keep_since: at(9_000) };
    assert_eq!(rig.store.prune(prune).await.unwrap().deleted, 2);
    let runs = LiveAttempt { key: held.key, state: runs(held), priority: None };
    assert_eq!(active_attempts(&rig, job).await, [runs]);
}

pub async fn active_attempts_have_their_own_priority(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let priority = Priority::try_from(90).ok();
    let ask = Trigger { n: 0, priority, idle_only: false };
    let key = rig.trigger_with(job, ask, 10).await;
    let waiting = LiveAttempt { key, state: LiveState::Waiting, priority };
    assert_eq!(active_attempts(&rig, job).await, [waiting]);
    rig.fire_delayed(&rig.delayed(10).await, Begin::Queued, 10).await;
    assert_eq!(active_attempts(&rig, job).await, [waiting]);
    let held = rig.claim_one(11).await;
    let seen = LiveState::Running { fence: held.fence, started_at: at(11) };
    assert_eq!(active_attempts(&rig, job).await, [LiveAttempt { state: seen, ..waiting }]);
}

pub async fn a_run_of_a_cancelled_job_is_not_put_back(opened: Opened) {
    let rig = Rig::new(opened).await;
    for action in [Action::Cancel, Action::Delete] {
        let job = rig.add(unnamed_job().build()).await;
        let held = rig.start(job, 60).await;
        let again = back(&rig, held, job, 70).await;
        done(act(&rig, job, action, 65).await);
        assert_eq!(result_of(&rig, again).await, OverrideResult::Stopped);
        assert_eq!(rig.run(held.key).await.status, AttemptStatus::Running);
        assert_eq!(rig.claim(10, 71).await, []);
        // The attempt was asked to stop, and its worker may still store the result.
        let end = rig.end(held, Outcome::Cancelled, OVER);
        assert_eq!(rig.finish(end).await, FinishResult::Done);
    }
    assert_eq!(messages(&rig).await, []);
}

pub async fn a_run_from_before_a_pause_is_not_put_back(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let held = rig.start(job, 60).await;
    let again = back(&rig, held, job, 70).await;
    done(act(&rig, job, Action::Pause, 65).await);
    assert_eq!(result_of(&rig, again.clone()).await, OverrideResult::Stopped);
    let run = rig.run(held.key).await;
    assert_eq!((run.status, run.fence), (AttemptStatus::Running, held.fence));
    assert_eq!(messages(&rig).await, []);
    // A run that was triggered during the pause can go back to the queue.
    rig.trigger(job, 0, 66).await;
    rig.fire_delayed(&rig.delayed(66).await, Begin::Queued, 66).await;
    let asked_for = rig.claim_one(67).await;
    let request = back(&rig, asked_for, job, 70).await;
    assert!(apply(&rig, request).await);
    assert_eq!(rig.claim_one(75).await.key, asked_for.key);
    // A run that started before the pause can go back to the queue once the job is resumed.
    done(act(&rig, job, resume(Some(at(900))), 80).await);
    assert!(apply(&rig, again).await);
    assert_eq!(rig.claim_one(85).await.key, held.key);
}

pub async fn a_run_that_is_asked_to_end_is_not_put_back(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let asked = rig.store.cancel_run(&rig.scope, held.key, now(65)).await.unwrap();
    assert_eq!(asked, RunCancelled::Asked(held.key));
    let again = back(&rig, held, job, 70).await;
    assert_eq!(result_of(&rig, again).await, OverrideResult::Stopped);
    assert_eq!(rig.run(held.key).await.status, AttemptStatus::Running);
    // An operator can still override the outcome of a run that was asked to stop.
    assert!(apply(&rig, ended(held.key, runs(held), Outcome::Failed, 71)).await);
    assert_eq!(rig.store.cancellations(rig.node).await.unwrap(), []);
}

pub async fn a_run_whose_key_another_job_holds_is_not_put_back(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, once("a"), 0).await;
    let held = rig.start(first, 60).await;
    let second = made(&rig, once_at("a", 600), 61).await;
    let again = back(&rig, held, first, 70).await;
    assert_eq!(result_of(&rig, again.clone()).await, OverrideResult::Duplicate(second.id));
    let run = rig.run(held.key).await;
    assert_eq!((run.status, run.fence), (AttemptStatus::Running, held.fence));
    assert_eq!(messages(&rig).await, []);
    // Once the second job has finished, the attempt of the first job can go back to the queue, and
    // the first job holds the deduplication key again.
    rig.run_successfully(second, 600).await;
    assert!(apply(&rig, again).await);
    let third = once_at("a", 900);
    assert_eq!(super::dedup::kept_out(&rig, third, 610).await, Some(first.id));
}

fn once_at(key: &str, secs: i64) -> evenkeel_store::NewJob {
    keyed(unnamed_job().once_at(secs), key, PENDING)
}

pub async fn a_run_whose_job_holds_its_key_is_put_back(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (key, scope) in [("a", PENDING), ("b", RUNNING), ("c", HOUR)] {
        let job = made(&rig, with_scope(once(key), scope), 0).await;
        let held = rig.start(job, 60).await;
        let again = back(&rig, held, job, 70).await;
        assert!(apply(&rig, again).await, "{scope:?}");
        let Held { key, .. } = rig.claim_one(75).await;
        assert_eq!(key, held.key);
    }
}

pub async fn an_idle_only_trigger_needs_a_job_without_active_runs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let idle_only = Trigger { n: 0, priority: None, idle_only: true };
    let ask = async |job: Known, secs| {
        rig.store.trigger(&rig.scope, job.id, idle_only, now(secs)).await.unwrap()
    };
    let plain = rig.add(unnamed_job().overlap(OverlapPolicy::Allow).build()).await;
    let unique = unnamed_job().overlap(OverlapPolicy::Allow);
    let unique = made(&rig, keyed(unique, "a", PENDING), 0).await;
    for job in [plain, unique] {
        assert!(matches!(ask(job, 10).await, Triggered::Accepted(_)));
        // The job already has a waiting run, so the trigger reports `Busy`, even for a job with a
        // deduplication key.
        assert_eq!(ask(job, 11).await, Triggered::Busy);
    }
    rig.fire_delayed(&rig.delayed(12).await, Begin::Claimed, 12).await;
    for job in [plain, unique] {
        assert_eq!(ask(job, 13).await, Triggered::Busy);
        rig.trigger(job, 1, 14).await;
    }
}
