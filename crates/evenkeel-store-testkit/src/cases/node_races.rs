//! Tests concurrent calls by nodes and about nodes.

use evenkeel_core::Span;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_store::{FireResult, NodeState, Ping, Pinged};

use super::races::{at_once, jobs};
use crate::Opened;
use crate::fixtures::{Begin, at, fire_of, new_node, now};
use crate::rig::{Held, Rig, claim_of};

pub async fn of_concurrent_joins_of_an_identity_one_is_live(opened: Opened) {
    let rig = Rig::new(opened).await;
    at_once(
        &rig,
        6,
        |_, store| async move { store.join(&new_node("node-9"), now(1)).await.unwrap() },
    )
    .await;
    let (_, members) = rig.store.members().await.unwrap();
    let live = members.iter().filter(|one| one.name == "node-9" && one.state == NodeState::Live);
    assert_eq!(live.count(), 1);
}

pub async fn of_a_concurrent_ping_and_steal_one_wins(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..10 {
        let node = rig.join(&format!("victim {n}"), 0).await;
        assert!(rig.store.begin_steal(node, Span::from_secs(6), now(10)).await.unwrap());
        let won = at_once(&rig, 2, |n, store| async move {
            if n == 0 {
                let ping = Ping { node, oldest_open: None, long_attempts: Vec::new() };
                matches!(store.ping(&ping, now(20)).await.unwrap(), Pinged::Alive { .. })
            } else {
                store.steal(node, at(10), Span::from_secs(4), now(20)).await.unwrap()
            }
        })
        .await;
        assert!(won[0] != won[1], "{won:?}");
    }
}

pub async fn a_concurrent_steal_and_fire_lose_no_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (n, job) in jobs(&rig, 10, OverlapPolicy::Skip).await.into_iter().enumerate() {
        let node = rig.join(&format!("victim {n}"), 0).await;
        assert!(rig.store.begin_steal(node, Span::from_secs(6), now(40)).await.unwrap());
        let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
        let answers = at_once(&rig, 2, |n, store| {
            let batch = vec![fire.clone()];
            async move {
                if n == 0 {
                    let fired = store.fire(node, batch, now(60)).await.unwrap().results;
                    matches!(fired[..], [FireResult::Fired(_)])
                } else {
                    let stolen = store.steal(node, at(40), Span::from_secs(4), now(60)).await;
                    let owned = store.list_owned(node, 10).await.unwrap();
                    stolen.unwrap() && owned.len() == 1
                }
            }
        })
        .await;
        // A node that takes over a lease sees every attempt that was fired under that lease.
        assert_eq!(answers[0], answers[1]);
    }
}

pub async fn a_concurrent_retirement_and_claim_lose_no_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (n, job) in jobs(&rig, 10, OverlapPolicy::Skip).await.into_iter().enumerate() {
        let node = rig.join(&format!("leaver {n}"), 0).await;
        rig.queue(job, 60).await;
        let answers = at_once(&rig, 2, |n, store| async move {
            if n == 0 {
                let claimed = store.claim(&claim_of(node, 5), now(61)).await.unwrap();
                claimed.attempts.len() == 1
            } else {
                store.retire(node).await.unwrap()
            }
        })
        .await;
        assert!(answers[0] != answers[1], "it has an attempt, or is gone: {answers:?}");
        let left = rig.claim(5, 62).await;
        assert_eq!(left.len(), usize::from(answers[1]));
        for attempt in left {
            let held = Held { key: attempt.key, fence: attempt.fence };
            rig.finish(rig.success(held)).await;
        }
    }
}
