//! Deduplication of runs.

use evenkeel_core::AttemptKey;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::on_failure::{DeathReason, Hook};
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_store::{Action, Finish, Redriven, Triggered};

use super::dedup::{
    HOUR, PENDING, RUNNING, act, kept_out, keyed, made, once, recurring, rekeyed, with_scope,
};
use crate::Opened;
use crate::commands::done;
use crate::fixtures::{Begin, at, now, plain_trigger, unnamed_job};
use crate::rig::{Known, OVER, Rig};

async fn trigger(rig: &Rig, job: Known, secs: i64) -> Triggered {
    rig.store.trigger(&rig.scope, job.id, plain_trigger(0), now(secs)).await.unwrap()
}

pub async fn a_key_also_applies_to_triggers(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, unnamed_job().overlap(OverlapPolicy::Allow).build(), 0).await;
    done(act(&rig, first, rekeyed(&rig.job(first).await, Some("a")), 1).await);
    let run = rig.trigger(first, 0, 2).await;
    let expected = Triggered::Duplicate { job: first.id, run: Some(run) };
    assert_eq!(trigger(&rig, first, 3).await, expected);
    done(act(&rig, first, rekeyed(&rig.job(first).await, None), 4).await);
    rig.trigger(first, 0, 5).await;
}

pub async fn a_recurring_job_may_be_triggered_once_between_its_times(opened: Opened) {
    let rig = Rig::new(opened).await;
    let allow = unnamed_job().overlap(OverlapPolicy::Allow);
    let job = made(&rig, keyed(allow, "a", PENDING), 0).await;
    let run = rig.trigger(job, 0, 10).await;
    let there = Triggered::Duplicate { job: job.id, run: Some(run) };
    assert_eq!(trigger(&rig, job, 11).await, there);
    rig.fire_delayed(&rig.delayed(11).await, Begin::Queued, 11).await;
    assert_eq!(trigger(&rig, job, 12).await, there);
    rig.claim_one(13).await;
    rig.trigger(job, 0, 14).await;
}

pub async fn a_due_time_stands_in_for_a_trigger(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = made(&rig, recurring("a"), 0).await;
    let due = AttemptKey::regular(job.no, at(60));
    let there = Triggered::Duplicate { job: job.id, run: Some(due) };
    assert_eq!(trigger(&rig, job, 60).await, there);
    let once = made(&rig, once("b"), 0).await;
    let to_come = AttemptKey::regular(once.no, at(60));
    let there = Triggered::Duplicate { job: once.id, run: Some(to_come) };
    assert_eq!(trigger(&rig, once, 10).await, there);
}

pub async fn an_active_run_stands_in_for_a_trigger(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = made(&rig, with_scope(recurring("a"), RUNNING), 0).await;
    let held = rig.start(job, 60).await;
    let there = Triggered::Duplicate { job: job.id, run: Some(held.key) };
    assert_eq!(trigger(&rig, job, 61).await, there);
    rig.finish(rig.success(held)).await;
    rig.trigger(job, 0, 70).await;
}

pub async fn without_the_running_scope_an_active_run_makes_the_job_busy(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = made(&rig, recurring("a"), 0).await;
    rig.start(job, 60).await;
    assert_eq!(trigger(&rig, job, 61).await, Triggered::Busy);
}

pub async fn within_a_window_the_last_run_stands_in_for_a_trigger(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = made(&rig, with_scope(once("a"), HOUR), 0).await;
    let ran = rig.run_successfully(job, 60).await;
    let there = Triggered::Duplicate { job: job.id, run: Some(ran) };
    assert_eq!(trigger(&rig, job, 3599).await, there);
    rig.trigger(job, 0, 3600).await;
    // A trigger takes the deduplication key again, which starts a new deduplication window of one
    // hour.
    assert_eq!(kept_out(&rig, with_scope(once("a"), HOUR), 7199).await, Some(job.id));
}

pub async fn another_holder_keeps_a_trigger_out(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, once("a"), 0).await;
    rig.run_successfully(first, 60).await;
    let second = made(&rig, keyed(unnamed_job().once_at(90), "a", PENDING), 70).await;
    let waits = AttemptKey::regular(second.no, at(90));
    let there = Triggered::Duplicate { job: second.id, run: Some(waits) };
    assert_eq!(trigger(&rig, first, 71).await, there);
    rig.run_successfully(second, 90).await;
    rig.trigger(first, 0, 100).await;
    assert_eq!(kept_out(&rig, once("a"), 101).await, Some(first.id));
}

pub async fn a_paused_holder_may_have_no_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, once("a"), 0).await;
    rig.run_successfully(first, 60).await;
    let second = made(&rig, keyed(unnamed_job().first_at(120), "a", PENDING), 70).await;
    done(act(&rig, second, Action::Pause, 71).await);
    let there = Triggered::Duplicate { job: second.id, run: None };
    assert_eq!(trigger(&rig, first, 72).await, there);
}

pub async fn a_dead_letter_is_not_redriven_beside_another_holder(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, once("a"), 0).await;
    let held = rig.start(first, 60).await;
    let hook = Hook::DeadLetter(DeathReason::RetriesExhausted);
    rig.finish(Finish { hook, ..rig.end(held, Outcome::Failed, OVER) }).await;
    let second = made(&rig, keyed(unnamed_job().once_at(90), "a", PENDING), 70).await;
    let redrive =
        async |secs| rig.store.redrive(&rig.scope, &[held.key], now(secs)).await.unwrap().remove(0);
    assert_eq!(redrive(71).await, Redriven::Duplicate(second.id));
    rig.run_successfully(second, 90).await;
    assert!(matches!(redrive(100).await, Redriven::Accepted(_)));
    assert_eq!(kept_out(&rig, once("a"), 101).await, Some(first.id));
}

pub async fn of_two_dead_letters_of_a_job_one_is_redriven(opened: Opened) {
    let rig = Rig::new(opened).await;
    let allow = unnamed_job().overlap(OverlapPolicy::Allow);
    let job = made(&rig, keyed(allow, "a", PENDING), 0).await;
    let mut dead = Vec::new();
    for secs in [60, 120] {
        let held = rig.start(job, secs).await;
        let hook = Hook::DeadLetter(DeathReason::RetriesExhausted);
        rig.finish(Finish { hook, ..rig.end(held, Outcome::Failed, OVER) }).await;
        dead.push(held.key);
    }
    let answers = rig.store.redrive(&rig.scope, &dead, now(130)).await.unwrap();
    assert!(matches!(answers[0], Redriven::Accepted(_)), "{answers:?}");
    assert_eq!(answers[1], Redriven::Duplicate(job.id));
}
