//! Tests overrides of outcomes while other calls change the same runs.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_store::{
    Action, Applied, FinishResult, LiveState, OverrideResult, RunCancelled, Trigger, Triggered,
};

use super::override_outcome::{back, ended, messages, runs};
use super::races::at_once;
use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{at, new_job, now};
use crate::rig::{ALPHA, Rig, claim_of};

pub async fn of_a_concurrent_end_and_override_one_counts(opened: Opened) {
    let rig = Rig::new(opened).await;
    for round in 0..10 {
        let job = rig.add(new_job(&format!("job {round}")).build()).await;
        let held = rig.start(job, 60).await;
        let (node, scope) = (rig.node, rig.scope);
        let end = rig.success(held);
        let request = ended(held.key, runs(held), Outcome::Failed, 70);
        let counted = at_once(&rig, 4, |n, store| {
            let (end, request) = (end.clone(), request.clone());
            async move {
                if n % 2 == 0 {
                    store.override_outcome(&scope, request).await.unwrap() == OverrideResult::Done
                } else {
                    let results = store.finish(node, vec![end], ALPHA).await.unwrap();
                    results == [FinishResult::Done]
                }
            }
        })
        .await;
        assert_eq!(counted.iter().filter(|counted| **counted).count(), 1, "{counted:?}");
        let shown = rig.job(job).await;
        assert_eq!((shown.live, shown.succeeded_runs + shown.failed_runs), (0, 1));
    }
}

pub async fn of_a_concurrent_claim_and_override_one_is_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    for round in 0..10 {
        let job = rig.add(new_job(&format!("job {round}")).build()).await;
        let key = rig.queue(job, 60).await;
        let (node, scope) = (rig.node, rig.scope);
        let request = ended(key, LiveState::Waiting, Outcome::Completed, 70);
        let got = at_once(&rig, 4, |n, store| {
            let request = request.clone();
            async move {
                if n % 2 == 0 {
                    store.override_outcome(&scope, request).await.unwrap() == OverrideResult::Done
                } else {
                    let claim = claim_of(node, 10);
                    !store.claim(&claim, now(70)).await.unwrap().attempts.is_empty()
                }
            }
        })
        .await;
        assert_eq!(got.iter().filter(|got| **got).count(), 1, "{got:?}");
        assert_eq!(rig.census().await.ready, 0);
        assert_eq!(rig.job(job).await.live, u32::from(!(got[0] || got[2])));
    }
}

pub async fn of_a_concurrent_requeue_and_override_one_counts(opened: Opened) {
    let rig = Rig::new(opened).await;
    for round in 0..10 {
        let job = rig.add(new_job(&format!("job {round}")).build()).await;
        let held = rig.start(job, 60).await;
        let (node, scope) = (rig.node, rig.scope);
        let requeue = rig.requeue_of(held, job, true).await;
        let words =
            [ended(held.key, runs(held), Outcome::Completed, 70), back(&rig, held, job, 70).await];
        let counted = at_once(&rig, 6, |n, store| {
            let (requeue, request) = (requeue.clone(), words[n / 2 % 2].clone());
            async move {
                if n % 2 == 0 {
                    store.override_outcome(&scope, request).await.unwrap() == OverrideResult::Done
                } else {
                    store.requeue(node, vec![requeue], now(70)).await.unwrap() == [true]
                }
            }
        })
        .await;
        assert_eq!(counted.iter().filter(|counted| **counted).count(), 1, "{counted:?}");
        let is_over = counted[0] || counted[4];
        let run = rig.run(held.key).await;
        assert_eq!(run.fence, held.fence.next());
        assert_eq!(run.status == AttemptStatus::Completed, is_over, "{:?}", run.status);
        assert_eq!(rig.job(job).await.live, u32::from(!is_over));
        assert_eq!(rig.claim(10, 71).await.len(), usize::from(!is_over));
    }
}

pub async fn a_concurrent_cancel_and_override_both_count(opened: Opened) {
    let rig = Rig::new(opened).await;
    for round in 0..10 {
        let job = rig.add(new_job(&format!("job {round}")).build()).await;
        let waits = round % 2 == 0;
        let (key, seen) = if waits {
            (rig.queue(job, 60).await, LiveState::Waiting)
        } else {
            let held = rig.start(job, 60).await;
            (held.key, runs(held))
        };
        let scope = rig.scope;
        let request = ended(key, seen, Outcome::Completed, 70);
        let done = at_once(&rig, 4, |n, store| {
            let request = request.clone();
            async move {
                if n % 2 == 0 {
                    return store.override_outcome(&scope, request).await.unwrap()
                        == OverrideResult::Done;
                }
                let result = store.cancel_run(&scope, key, now(70)).await.unwrap();
                matches!(result, RunCancelled::Withdrawn(_))
            }
        })
        .await;
        // `cancel_run` only asks a running attempt to stop, so an override of its outcome still
        // takes effect.
        assert_eq!(done.iter().filter(|done| **done).count(), 1, "{done:?}");
        let run = rig.run(key).await;
        let by_word = done[0] || done[2];
        assert!(by_word || waits);
        let status = if by_word { AttemptStatus::Completed } else { AttemptStatus::Cancelled };
        assert_eq!(run.status, status);
        assert_eq!(rig.job(job).await.live, 0);
        assert_eq!(rig.claim(10, 71).await, []);
        assert_eq!(rig.store.cancellations(rig.node).await.unwrap(), []);
        messages(&rig).await;
    }
}

pub async fn of_a_concurrent_pause_and_put_back_one_is_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    for round in 0..10 {
        let job = rig.add(new_job(&format!("job {round}")).build()).await;
        let held = rig.start(job, 60).await;
        let (scope, id) = (rig.scope, job.id);
        let request = back(&rig, held, job, 70).await;
        let result = at_once(&rig, 2, |n, store| {
            let request = request.clone();
            async move {
                if n == 0 {
                    return Some(store.override_outcome(&scope, request).await.unwrap());
                }
                let paused = store.act(&scope, id, Action::Pause, now(70)).await.unwrap();
                assert!(matches!(paused, Applied::Done(_)), "{paused:?}");
                None
            }
        })
        .await[0];
        let run = rig.run(held.key).await;
        match result {
            // If the override came first, the attempt was waiting when the job was paused, so the
            // pause cancelled the attempt.
            Some(OverrideResult::Done) => assert_eq!(run.status, AttemptStatus::Cancelled),
            Some(OverrideResult::Stopped) => {
                assert_eq!((run.status, run.fence), (AttemptStatus::Running, held.fence));
                assert_eq!(rig.finish(rig.success(held)).await, FinishResult::Done);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(rig.job(job).await.live, 0);
        assert_eq!(rig.claim(10, 71).await, []);
    }
}

pub async fn concurrent_idle_only_triggers_succeed_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    for round in 0..10 {
        let name = format!("job {round}");
        let job = rig.add(new_job(&name).overlap(OverlapPolicy::Allow).build()).await;
        let (scope, id) = (rig.scope, job.id);
        let asked = at_once(&rig, 6, |n, store| async move {
            let ask = Trigger { n: n as u32, priority: None, idle_only: true };
            store.trigger(&scope, id, ask, now(30)).await.unwrap()
        })
        .await;
        let accepted = |one: &&Triggered| matches!(one, Triggered::Accepted(_));
        assert_eq!(asked.iter().filter(accepted).count(), 1, "{asked:?}");
        assert!(asked.iter().all(|one| accepted(&one) || *one == Triggered::Busy), "{asked:?}");
        assert_eq!(rig.job(job).await.live, 1);
        // A trigger without `idle_only` starts a second run.
        rig.trigger(job, 9, 31).await;
        assert_eq!(rig.job(job).await.live, 2);
    }
    assert_eq!(rig.delayed(40).await.iter().filter(|delayed| delayed.due <= at(40)).count(), 20);
}
