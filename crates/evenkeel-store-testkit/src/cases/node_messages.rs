//! Tests messages from one node to another.

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, JobNo, NodeNo};
use evenkeel_store::{MessageKind, NodeMessage, Signal, Signals};

use super::races::at_once;
use crate::Opened;
use crate::fixtures::at;
use crate::rig::{Rig, next_attempt};

fn message(job: i64, kind: MessageKind) -> NodeMessage {
    NodeMessage { key: AttemptKey::regular(JobNo(job), at(60)), fence: Fence(1), kind }
}

async fn send(rig: &Rig, node: NodeNo, message: NodeMessage) {
    rig.store.send_message(node, message).await.expect("a message can be sent");
}

async fn take(rig: &Rig, node: NodeNo, limit: u32) -> Vec<NodeMessage> {
    rig.store.take_messages(node, limit).await.expect("messages can be taken")
}

pub async fn a_message_is_delivered_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert_eq!(take(&rig, rig.node, 9).await, []);
    for word in MessageKind::ALL {
        send(&rig, rig.node, message(1, word)).await;
        assert_eq!(take(&rig, rig.node, 9).await, [message(1, word)]);
        assert_eq!(take(&rig, rig.node, 9).await, []);
    }
}

pub async fn a_repeated_message_has_no_effect(opened: Opened) {
    let rig = Rig::new(opened).await;
    let one = message(1, MessageKind::Heartbeat);
    let different = [
        one,
        message(2, MessageKind::Heartbeat),
        message(1, MessageKind::Ended),
        NodeMessage { fence: Fence(u32::MAX), ..one },
        NodeMessage { key: next_attempt(one.key), ..one },
        NodeMessage { key: AttemptKey::regular(JobNo(1), at(61)), ..one },
    ];
    for _ in 0..3 {
        for one in different {
            send(&rig, rig.node, one).await;
        }
    }
    let taken = take(&rig, rig.node, 99).await;
    assert_eq!(taken.len(), different.len());
    assert_eq!(BTreeSet::from_iter(taken), BTreeSet::from(different));
    send(&rig, rig.node, one).await;
    assert_eq!(take(&rig, rig.node, 9).await, [one], "the job changed after it was returned");
}

pub async fn a_message_reaches_only_its_node(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.join("node-2", 1).await;
    send(&rig, rig.node, message(1, MessageKind::Ended)).await;
    send(&rig, other, message(1, MessageKind::Ended)).await;
    send(&rig, other, message(2, MessageKind::Ended)).await;
    assert_eq!(take(&rig, rig.node, 9).await, [message(1, MessageKind::Ended)]);
    assert_eq!(take(&rig, other, 9).await.len(), 2);
}

pub async fn no_more_messages_than_the_limit_are_taken(opened: Opened) {
    let rig = Rig::new(opened).await;
    for job in 1..=5 {
        send(&rig, rig.node, message(job, MessageKind::Heartbeat)).await;
    }
    let mut seen = Vec::new();
    for expected in [2, 2, 1, 0] {
        let taken = take(&rig, rig.node, 2).await;
        assert_eq!(taken.len(), expected);
        seen.extend(taken);
    }
    assert_eq!(BTreeSet::from_iter(seen).len(), 5);
}

pub async fn messages_of_a_node_that_is_gone_are_deleted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.join("node-2", 1).await;
    send(&rig, rig.node, message(1, MessageKind::Ended)).await;
    send(&rig, other, message(2, MessageKind::Ended)).await;
    assert!(rig.store.retire(rig.node).await.unwrap());
    send(&rig, rig.node, message(3, MessageKind::Ended)).await;
    send(&rig, NodeNo(other.0 + 1_000), message(4, MessageKind::Ended)).await;
    assert_eq!(take(&rig, rig.node, 9).await, []);
    assert_eq!(take(&rig, NodeNo(other.0 + 1_000), 9).await, []);
    assert_eq!(take(&rig, other, 9).await, [message(2, MessageKind::Ended)]);
}

/// Sends messages until the listener receives a signal, because a single signal may be lost.
async fn delayed(rig: &Rig, listener: &Signals) {
    let mut heard = listener.subscribe();
    for _ in 0..100 {
        send(rig, rig.node, message(1, MessageKind::Ended)).await;
        let wait = async {
            while let Ok(got) = heard.recv().await {
                if got == Signal::Messages {
                    return;
                }
            }
        };
        if tokio::time::timeout(Duration::from_millis(200), wait).await.is_ok() {
            return;
        }
    }
    panic!("the listener received no signal");
}

pub async fn an_ended_message_wakes_listeners(opened: Opened) {
    let rig = Rig::new(opened).await;
    delayed(&rig, rig.store.signals()).await;
    let other = rig.second().await;
    delayed(&rig, other.signals()).await;
}

pub async fn concurrent_takers_get_each_message_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let node = rig.node;
    for job in 1..=50 {
        send(&rig, node, message(job, MessageKind::Heartbeat)).await;
    }
    let taken =
        at_once(&rig, 8, |_, store| async move { store.take_messages(node, 20).await.unwrap() })
            .await;
    let mut taken: Vec<NodeMessage> = taken.into_iter().flatten().collect();
    // Each call skips messages that a concurrent call is taking, so some messages may be left.
    taken.extend(take(&rig, node, 99).await);
    assert_eq!(taken.len(), 50);
    assert_eq!(BTreeSet::from_iter(taken).len(), 50);
}

pub async fn a_retirement_and_a_message_leave_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    for round in 0..10 {
        let node = rig.join("node-2", round).await;
        at_once(&rig, 6, |n, store| async move {
            if n == 3 {
                assert!(store.retire(node).await.unwrap());
            } else {
                store.send_message(node, message(n as i64, MessageKind::Heartbeat)).await.unwrap();
            }
        })
        .await;
        assert_eq!(take(&rig, node, 9).await, []);
    }
}
