//! Tests how a silent node loses its lease.

use evenkeel_core::{NodeNo, Span, Timestamp};
use evenkeel_store::{FireResult, NodeState, Ping, Pinged};

use crate::Opened;
use crate::fixtures::{Begin, at, fire_of, new_job, now};
use crate::rig::Rig;

const SILENT_AFTER: Span = Span::from_secs(6);
const GRACE: Span = Span::from_secs(4);

async fn challenge(rig: &Rig, node: NodeNo, secs: i64) -> bool {
    rig.store.begin_steal(node, SILENT_AFTER, now(secs)).await.unwrap()
}

async fn steal(rig: &Rig, challenged: i64, secs: i64) -> bool {
    rig.store.steal(rig.node, at(challenged), GRACE, now(secs)).await.unwrap()
}

async fn challenged_at(rig: &Rig) -> Option<Timestamp> {
    let (_, members) = rig.store.members().await.unwrap();
    members.into_iter().find(|one| one.node == rig.node).and_then(|one| one.steal_start_at)
}

async fn state(rig: &Rig) -> NodeState {
    let (_, members) = rig.store.members().await.unwrap();
    members.into_iter().find(|one| one.node == rig.node).map_or(NodeState::Gone, |one| one.state)
}

async fn ping(rig: &Rig, secs: i64) -> Pinged {
    let ping = Ping { node: rig.node, oldest_open: None, long_attempts: Vec::new() };
    rig.store.ping(&ping, now(secs)).await.unwrap()
}

pub async fn only_a_silent_node_is_challenged(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert!(!challenge(&rig, rig.node, 5).await);
    assert_eq!(challenged_at(&rig).await, None);
    assert!(challenge(&rig, rig.node, 7).await);
    assert_eq!(challenged_at(&rig).await, Some(at(7)));
    assert_eq!(state(&rig).await, NodeState::Live);
}

pub async fn a_second_challenge_does_not_move_the_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    challenge(&rig, rig.node, 7).await;
    assert!(challenge(&rig, rig.node, 9).await);
    assert_eq!(challenged_at(&rig).await, Some(at(7)));
}

pub async fn a_ping_answers_the_challenge(opened: Opened) {
    let rig = Rig::new(opened).await;
    challenge(&rig, rig.node, 7).await;
    assert!(matches!(ping(&rig, 8).await, Pinged::Alive { .. }));
    assert_eq!(challenged_at(&rig).await, None);
    assert!(!challenge(&rig, rig.node, 12).await);
    assert!(!steal(&rig, 7, 100).await);
    assert_eq!(state(&rig).await, NodeState::Live);
}

pub async fn a_ping_from_the_future_counts_as_now(opened: Opened) {
    let rig = Rig::new(opened).await;
    ping(&rig, 5_000).await;
    assert!(!challenge(&rig, rig.node, 100).await);
    assert_eq!(challenged_at(&rig).await, None);
}

pub async fn a_lease_is_taken_only_after_the_grace(opened: Opened) {
    let rig = Rig::new(opened).await;
    challenge(&rig, rig.node, 7).await;
    assert!(!steal(&rig, 7, 10).await);
    assert_eq!(state(&rig).await, NodeState::Live);
    assert!(steal(&rig, 7, 12).await);
    assert_eq!(state(&rig).await, NodeState::Dead);
}

pub async fn a_lease_is_taken_only_for_the_challenge_that_was_seen(opened: Opened) {
    let rig = Rig::new(opened).await;
    challenge(&rig, rig.node, 7).await;
    ping(&rig, 8).await;
    challenge(&rig, rig.node, 20).await;
    assert!(!steal(&rig, 7, 100).await);
    assert_eq!(state(&rig).await, NodeState::Live);
    assert!(steal(&rig, 20, 100).await);
}

pub async fn a_node_that_was_not_challenged_keeps_its_lease(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert!(!steal(&rig, 7, 1_000).await);
    assert_eq!(state(&rig).await, NodeState::Live);
}

pub async fn a_draining_node_can_lose_its_lease(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.store.drain(rig.node).await.unwrap();
    assert!(challenge(&rig, rig.node, 7).await);
    assert!(steal(&rig, 7, 12).await);
    assert_eq!(ping(&rig, 13).await, Pinged::Fenced);
}

pub async fn a_node_without_a_lease_is_not_challenged(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.join("node-1", 1).await;
    assert!(!challenge(&rig, rig.node, 100).await, "dead");
    rig.store.retire(rig.node).await.unwrap();
    assert!(!challenge(&rig, rig.node, 100).await, "gone");
    assert!(!challenge(&rig, NodeNo(rig.node.0 + 1_000), 100).await, "unknown");
}

pub async fn writes_of_a_stolen_node_have_no_effect(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let queued = rig.add(new_job("queued").build()).await;
    rig.queue(queued, 60).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    challenge(&rig, rig.node, 61).await;
    assert!(steal(&rig, 61, 70).await);
    let before = rig.census().await;
    assert_eq!(ping(&rig, 71).await, Pinged::Fenced);
    assert_eq!(rig.fire(vec![fire], 71).await, [FireResult::Stale]);
    assert_eq!(rig.claim(9, 71).await, []);
    assert_eq!(rig.census().await, before);
    assert_eq!(state(&rig).await, NodeState::Dead);
}

pub async fn attempts_of_a_stolen_node_are_requeued_and_its_late_ends_refused(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let heir = rig.join("node-2", 1).await;
    let held = rig.start(job, 60).await;
    challenge(&rig, rig.node, 70).await;
    assert!(steal(&rig, 70, 80).await);
    let owned = rig.owned(rig.node).await;
    assert_eq!(owned.iter().map(|one| one.key).collect::<Vec<_>>(), [held.key]);
    assert!(rig.requeue(rig.requeue_of(held, job, true).await, 81).await);
    let late = rig.finish(rig.success(held)).await;
    assert_eq!(late, evenkeel_store::FinishResult::LeaseLost);
    assert_eq!(rig.claim_for(heir, 9, 82).await[0].key, held.key);
    assert!(rig.store.retire(rig.node).await.unwrap());
}
