//! Cluster membership of nodes.

use evenkeel_core::NodeNo;
use evenkeel_store::{Member, NewNode, NodeState, Ping, Pinged, Roles};

use crate::Opened;
use crate::fixtures::{at, new_job, new_node, now};
use crate::rig::Rig;

async fn ping(rig: &Rig, node: NodeNo, secs: i64) -> Pinged {
    let ping = Ping { node, oldest_open: None, long_attempts: Vec::new() };
    rig.store.ping(&ping, now(secs)).await.unwrap()
}

async fn member(rig: &Rig, node: NodeNo) -> Option<Member> {
    let (_, members) = rig.store.members().await.unwrap();
    members.into_iter().find(|member| member.node == node)
}

pub async fn a_node_that_joins_is_live(opened: Opened) {
    let rig = Rig::new(opened).await;
    let roles = Roles { api: false, scheduler: true, worker: false };
    let pools = vec!["chrome".to_owned(), "a \"pool\", 'quoted'".to_owned()];
    let new = NewNode { roles, pools: pools.clone(), ..new_node("second") };
    let joined = rig.store.join(&new, now(5)).await.unwrap();
    assert_eq!((joined.now, joined.former), (at(5), Vec::new()));
    assert_ne!(joined.node, rig.node);
    let expected = Member {
        node: joined.node,
        name: "second".into(),
        roles,
        pools,
        state: NodeState::Live,
        joined_at: at(5),
        last_ping_at: at(5),
        steal_start_at: None,
    };
    assert_eq!(member(&rig, joined.node).await, Some(expected));
}

pub async fn former_nodes_of_an_identity_are_dead(opened: Opened) {
    let rig = Rig::new(opened).await;
    let joined = rig.store.join(&new_node("node-1"), now(5)).await.unwrap();
    assert_eq!(joined.former, [rig.node]);
    assert_eq!(member(&rig, rig.node).await.unwrap().state, NodeState::Dead);
    assert_eq!(member(&rig, joined.node).await.unwrap().state, NodeState::Live);
    assert_eq!(ping(&rig, rig.node, 6).await, Pinged::Fenced);
}

pub async fn a_draining_node_is_a_former_node_too(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.store.drain(rig.node).await.unwrap();
    let joined = rig.store.join(&new_node("node-1"), now(5)).await.unwrap();
    assert_eq!(joined.former, [rig.node]);
    assert_eq!(member(&rig, rig.node).await.unwrap().state, NodeState::Dead);
}

pub async fn a_node_that_is_gone_is_not_taken_over(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert!(rig.store.retire(rig.node).await.unwrap());
    let joined = rig.store.join(&new_node("node-1"), now(5)).await.unwrap();
    assert_eq!(joined.former, []);
}

pub async fn two_live_nodes_may_have_one_name(opened: Opened) {
    let rig = Rig::new(opened).await;
    let twin = NewNode { name: "node-1".into(), ..new_node("twin") };
    let joined = rig.store.join(&twin, now(5)).await.unwrap();
    assert_eq!(joined.former, []);
    assert_eq!(member(&rig, rig.node).await.unwrap().state, NodeState::Live);
}

pub async fn a_ping_is_answered_with_the_time_and_all_members(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.join("node-2", 1).await;
    let gone = rig.join("node-3", 1).await;
    rig.store.retire(gone).await.unwrap();
    let Pinged::Alive { now, mut members } = ping(&rig, other, 8).await else {
        panic!("the node is live")
    };
    members.sort_by_key(|member| member.node);
    assert_eq!(now, at(8));
    assert_eq!(members.iter().map(|one| one.node).collect::<Vec<_>>(), [rig.node, other]);
    assert_eq!((members[0].last_ping_at, members[1].last_ping_at), (at(0), at(8)));
    let (_, mut same) = rig.store.members().await.unwrap();
    same.sort_by_key(|member| member.node);
    assert_eq!(same, members);
}

pub async fn dead_nodes_are_members_until_they_are_gone(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.join("node-1", 5).await;
    assert_eq!(member(&rig, rig.node).await.unwrap().state, NodeState::Dead);
    assert!(rig.store.retire(rig.node).await.unwrap());
    assert_eq!(member(&rig, rig.node).await, None);
}

pub async fn a_draining_node_is_alive(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.store.drain(rig.node).await.unwrap();
    assert!(matches!(ping(&rig, rig.node, 5).await, Pinged::Alive { .. }));
    let state = member(&rig, rig.node).await.unwrap();
    assert_eq!((state.state, state.last_ping_at), (NodeState::Draining, at(5)));
}

pub async fn draining_does_not_bring_a_dead_node_back(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.join("node-1", 5).await;
    rig.store.drain(rig.node).await.unwrap();
    assert_eq!(ping(&rig, rig.node, 6).await, Pinged::Fenced);
}

pub async fn an_unknown_or_gone_node_is_fenced(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert_eq!(ping(&rig, NodeNo(rig.node.0 + 1_000), 5).await, Pinged::Fenced);
    rig.store.retire(rig.node).await.unwrap();
    assert_eq!(ping(&rig, rig.node, 5).await, Pinged::Fenced);
    assert_eq!(member(&rig, rig.node).await, None);
}

pub async fn a_node_retires_only_without_attempts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    assert!(!rig.store.retire(rig.node).await.unwrap());
    assert_eq!(member(&rig, rig.node).await.unwrap().state, NodeState::Live);
    rig.finish(rig.success(held)).await;
    assert!(rig.store.retire(rig.node).await.unwrap());
}

pub async fn an_attempt_of_another_node_does_not_prevent_retirement(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let idle = rig.join("node-2", 1).await;
    rig.start(job, 60).await;
    assert!(rig.store.retire(idle).await.unwrap());
}

pub async fn an_attempt_names_its_node_even_when_that_is_gone(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.run_successfully(job, 60).await;
    rig.store.retire(rig.node).await.unwrap();
    assert_eq!(rig.run(key).await.node, Some((rig.node, "node-1".into())));
}
