//! Tests that an accepted command stays in effect if it runs concurrently with fires, claims and
//! finishes.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::status::JobStatus;
use evenkeel_store::{Action, Applied, FinishResult, FireResult, JobCommand, Triggered};

use super::races::{at_once, jobs};
use crate::Opened;
use crate::commands::{Commands, done, resume};
use crate::fixtures::{Begin, at, fire_of, now, plain_trigger};
use crate::rig::{ALPHA, Known, Rig, claim_of};

/// Asserts that no attempt waits and that every active run is running.
async fn assert_nothing_waits(rig: &Rig) {
    let census = rig.census().await;
    assert_eq!((census.ready, census.delayed), (0, 0));
    assert_eq!(census.live, census.running);
    assert_eq!(rig.claim(99, 900).await, []);
}

async fn status(rig: &Rig, job: Known) -> JobStatus {
    rig.job(job).await.status(at(0))
}

pub async fn a_pause_and_a_fire_agree_on_what_runs(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (place, job) in jobs(&rig, 20, OverlapPolicy::Skip).await.into_iter().enumerate() {
        let begin = if place % 2 == 0 { Begin::Claimed } else { Begin::Queued };
        let fire = fire_of(&rig.due(job).await, at(60), begin);
        let (scope, node) = (rig.scope, rig.node);
        let answers = at_once(&rig, 2, |n, store| {
            let batch = vec![fire.clone()];
            async move {
                if (n + place / 2) % 2 == 0 {
                    let fired = store.fire(node, batch, now(60)).await.unwrap().results;
                    (true, matches!(fired[..], [FireResult::Fired(_)]))
                } else {
                    let paused = store.act(&scope, job.id, Action::Pause, now(60)).await.unwrap();
                    (false, !done(paused).running.is_empty())
                }
            }
        })
        .await;
        let of = |fires: bool| answers.contains(&(fires, true));
        assert_eq!(of(false), of(true) && begin == Begin::Claimed, "{answers:?}");
        assert_eq!(status(&rig, job).await, JobStatus::Paused);
    }
    assert_nothing_waits(&rig).await;
}

pub async fn an_attempt_withdrawn_by_a_pause_is_not_claimed(opened: Opened) {
    let rig = Rig::new(opened).await;
    for job in jobs(&rig, 20, OverlapPolicy::Skip).await {
        let key = rig.queue(job, 60).await;
        let (scope, node) = (rig.scope, rig.node);
        let answers = at_once(&rig, 2, |n, store| async move {
            if n == 0 {
                let claimed = store.claim(&claim_of(node, 9), now(61)).await.unwrap();
                claimed.attempts.len()
            } else {
                let paused = store.act(&scope, job.id, Action::Pause, now(61)).await.unwrap();
                done(paused).running.len()
            }
        })
        .await;
        assert_eq!(answers[0], answers[1], "the pause returns the claimed attempts");
        let is = if answers[0] == 1 { AttemptStatus::Running } else { AttemptStatus::Cancelled };
        assert_eq!(rig.run(key).await.status, is);
    }
    assert_nothing_waits(&rig).await;
}

/// Finishes or requeues running attempts while a command stops their jobs.
async fn stopped_while_it_ends(rig: &Rig, action: &Action, gives_back: bool) {
    for (place, job) in jobs(rig, 20, OverlapPolicy::Skip).await.into_iter().enumerate() {
        let held = rig.start(job, 60).await;
        let (end, back) = (rig.retry(held, at(70)), rig.requeue_of(held, job, true).await);
        let (scope, node) = (rig.scope, rig.node);
        at_once(rig, 2, |n, store| {
            let (end, back, action) = (end.clone(), back.clone(), action.clone());
            async move {
                if (n + place) % 2 == 1 {
                    done(store.act(&scope, job.id, action, now(66)).await.unwrap());
                } else if gives_back {
                    let put = store.requeue(node, vec![back], now(66)).await.unwrap();
                    assert_eq!(put, [true]);
                } else {
                    let ended = store.finish(node, vec![end], ALPHA).await.unwrap();
                    assert_eq!(ended, [FinishResult::Done]);
                }
            }
        })
        .await;
        let first = rig.run(held.key).await.status;
        let ended = [AttemptStatus::Failed, AttemptStatus::Cancelled];
        assert!(ended.contains(&first), "{first:?}");
    }
    assert_nothing_waits(rig).await;
    assert_eq!(rig.census().await.live, 0);
}

pub async fn a_pause_and_an_end_leave_no_retry(opened: Opened) {
    let rig = Rig::new(opened).await;
    stopped_while_it_ends(&rig, &Action::Pause, false).await;
}

pub async fn a_pause_and_a_requeue_leave_nothing_in_the_queue(opened: Opened) {
    let rig = Rig::new(opened).await;
    stopped_while_it_ends(&rig, &Action::Pause, true).await;
}

pub async fn a_cancel_and_an_end_leave_no_retry(opened: Opened) {
    let rig = Rig::new(opened).await;
    stopped_while_it_ends(&rig, &Action::Cancel, false).await;
}

pub async fn a_cancel_and_a_requeue_leave_nothing_in_the_queue(opened: Opened) {
    let rig = Rig::new(opened).await;
    stopped_while_it_ends(&rig, &Action::Cancel, true).await;
}

pub async fn a_trigger_is_withdrawn_by_a_concurrent_pause_or_comes_after_it(opened: Opened) {
    let rig = Rig::new(opened).await;
    for job in jobs(&rig, 20, OverlapPolicy::Skip).await {
        let scope = rig.scope;
        at_once(&rig, 2, |n, store| async move {
            if n == 0 {
                let asked = store.trigger(&scope, job.id, plain_trigger(0), now(10)).await.unwrap();
                assert!(matches!(asked, Triggered::Accepted(_)), "{asked:?}");
            } else {
                done(store.act(&scope, job.id, Action::Pause, now(10)).await.unwrap());
            }
        })
        .await;
        let shown = rig.job(job).await;
        assert_eq!(shown.live, shown.waiting);
        for delayed in rig.delayed(20).await {
            assert!(Some(delayed.key.scheduled_at) > rig.job(job).await.stopped_at);
        }
        done(rig.store.act(&rig.scope, job.id, Action::Cancel, now(30)).await.unwrap());
    }
    assert_nothing_waits(&rig).await;
}

pub async fn of_equal_concurrent_commands_one_is_applied(opened: Opened) {
    let rig = Rig::new(opened).await;
    for action in [Action::Pause, resume(Some(at(90))), Action::Cancel, Action::Delete] {
        for job in jobs(&rig, 5, OverlapPolicy::Skip).await {
            let scope = rig.scope;
            if matches!(action, Action::Resume { .. }) {
                done(rig.store.act(&scope, job.id, Action::Pause, now(5)).await.unwrap());
            }
            let answers = at_once(&rig, 4, |_, store| {
                let action = action.clone();
                async move { store.act(&scope, job.id, action, now(10)).await.unwrap() }
            })
            .await;
            let applied = answers.iter().filter(|answer| matches!(answer, Applied::Done(_)));
            assert_eq!(applied.count(), 1, "{action:?}: {answers:?}");
            rig.store.delete(&scope, job.id, now(20)).await.unwrap();
        }
    }
}

pub async fn of_concurrent_commands_for_one_generation_one_is_applied(opened: Opened) {
    let rig = Rig::new(opened).await;
    for job in jobs(&rig, 10, OverlapPolicy::Skip).await {
        let scope = rig.scope;
        let answers = at_once(&rig, 4, |n, store| async move {
            let change = Action::Change(Box::default());
            let action = if n % 2 == 0 { Action::Pause } else { change };
            let order = JobCommand { id: job.id, if_generation: Some(1), if_fired: None, action };
            store.apply_one(&scope, order, now(10)).await.unwrap()
        })
        .await;
        let applied = answers.iter().filter(|answer| matches!(answer, Applied::Done(_)));
        assert_eq!(applied.count(), 1, "{answers:?}");
        assert_eq!(rig.job(job).await.generation, 2);
    }
}

/// Checks that an accepted command stays in effect while the job is fired, claimed, finished and
/// triggered concurrently.
async fn stopped_in_a_crowd(rig: &Rig, action: &Action) {
    for (place, job) in jobs(rig, 15, OverlapPolicy::Allow).await.into_iter().enumerate() {
        let held = rig.start(job, 60).await;
        rig.queue(job, 120).await;
        let fire = fire_of(&rig.due(job).await, at(180), Begin::Queued);
        let end = rig.retry(held, at(181));
        let (scope, node) = (rig.scope, rig.node);
        at_once(rig, 5, |n, store| {
            let (fire, end, action) = (vec![fire.clone()], vec![end.clone()], action.clone());
            async move {
                match (n + place) % 5 {
                    0 => drop(store.fire(node, fire, now(182)).await.unwrap()),
                    1 => drop(store.claim(&claim_of(node, 9), now(182)).await.unwrap()),
                    2 => drop(store.finish(node, end, ALPHA).await.unwrap()),
                    3 => drop(
                        store.trigger(&scope, job.id, plain_trigger(0), now(170)).await.unwrap(),
                    ),
                    _ => {
                        done(store.act(&scope, job.id, action, now(182)).await.unwrap());
                    }
                }
            }
        })
        .await;
        // Only a run that was triggered after the pause may wait.
        let first =
            rig.delayed(900).await.into_iter().find(|delayed| delayed.key.scheduled_at <= at(182));
        assert_eq!(first, None);
        if *action == Action::Pause {
            done(rig.store.act(&rig.scope, job.id, Action::Cancel, now(190)).await.unwrap());
        }
        for attempt in rig.owned(rig.node).await {
            let held = crate::rig::Held { key: attempt.key, fence: attempt.fence };
            assert_eq!(rig.finish(rig.retry(held, at(200))).await, FinishResult::Done);
        }
        assert_nothing_waits(rig).await;
        assert_eq!(rig.census().await.live, 0);
    }
}

pub async fn a_pause_holds_against_all_concurrent_calls(opened: Opened) {
    let rig = Rig::new(opened).await;
    stopped_in_a_crowd(&rig, &Action::Pause).await;
}

pub async fn a_cancel_holds_against_all_concurrent_calls(opened: Opened) {
    let rig = Rig::new(opened).await;
    stopped_in_a_crowd(&rig, &Action::Cancel).await;
}

pub async fn a_deletion_holds_against_all_concurrent_calls(opened: Opened) {
    let rig = Rig::new(opened).await;
    stopped_in_a_crowd(&rig, &Action::Delete).await;
}

pub async fn concurrent_batches_of_commands_do_not_deadlock(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, 60, OverlapPolicy::Skip).await;
    let scope = rig.scope;
    at_once(&rig, 4, |n, store| {
        let mut jobs = jobs.clone();
        // Each task processes the jobs in another order.
        jobs.rotate_left(n * 15);
        async move {
            for round in 0..4 {
                let action = if (n + round) % 2 == 0 { Action::Pause } else { resume(None) };
                let orders = jobs.iter().map(|job| JobCommand {
                    id: job.id,
                    if_generation: None,
                    if_fired: None,
                    action: action.clone(),
                });
                let answers =
                    store.apply_commands(&scope, orders.collect(), now(10)).await.unwrap();
                assert_eq!(answers.len(), 60);
            }
        }
    })
    .await;
    let known = [JobStatus::Paused, JobStatus::Pending, JobStatus::Scheduled];
    for job in jobs {
        assert!(known.contains(&status(&rig, job).await));
    }
}
