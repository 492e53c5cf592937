//! Tests that the store finds all attempts of a lost node (invariant I7).

use evenkeel_core::{AttemptKey, NodeNo};
use evenkeel_store::{LongAttempt, Ping, Pinged};

use crate::Opened;
use crate::fixtures::{at, new_job, now};
use crate::rig::{Held, Rig};

async fn ping(rig: &Rig, oldest_open: Option<i64>, long_attempts: Vec<LongAttempt>, secs: i64) {
    let ping = Ping { node: rig.node, oldest_open: oldest_open.map(at), long_attempts };
    let answer = rig.store.ping(&ping, now(secs)).await.unwrap();
    assert!(matches!(answer, Pinged::Alive { .. }));
}

async fn owned_by(rig: &Rig, node: NodeNo) -> Vec<AttemptKey> {
    let mut keys: Vec<AttemptKey> = rig.owned(node).await.iter().map(|owned| owned.key).collect();
    keys.sort_unstable();
    keys
}

/// Restarts the first node and returns the attempts of its former node number.
async fn lost(rig: &Rig, secs: i64) -> Vec<AttemptKey> {
    rig.join("node-1", secs).await;
    owned_by(rig, rig.node).await
}

fn long(held: Held, secs: i64) -> LongAttempt {
    LongAttempt { key: held.key, fence: held.fence, started_at: at(secs) }
}

pub async fn all_running_attempts_of_a_node_are_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs: Vec<_> = (0..4).map(|n| new_job(&format!("job {n}")).build()).collect();
    let jobs = rig.add_all(jobs).await;
    let other = rig.join("node-2", 1).await;
    let mut mine = vec![rig.start(jobs[0], 60).await.key, rig.start(jobs[1], 61).await.key];
    mine.sort_unstable();
    rig.start_on(other, jobs[2], 60).await;
    rig.queue(jobs[3], 60).await;
    assert_eq!(owned_by(&rig, rig.node).await, mine);
}

pub async fn an_owned_attempt_has_all_that_a_takeover_needs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 63).await;
    let owned = rig.owned(rig.node).await;
    assert_eq!(owned.len(), 1);
    assert_eq!((owned[0].key, owned[0].fence), (held.key, held.fence));
    assert_eq!((owned[0].tenant, owned[0].started_at), (rig.scope.tenant, at(63)));
    assert_eq!((owned[0].crashes, &owned[0].definition), (0, &rig.due(job).await.definition));
}

pub async fn an_ended_attempt_is_not_owned(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.retry(held, at(90))).await;
    assert_eq!(rig.owned(rig.node).await, []);
    assert_eq!(rig.store.find_owned(rig.node, &[held.key]).await.unwrap(), []);
}

pub async fn no_more_than_the_limit_is_returned(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs: Vec<_> = (0..5).map(|n| new_job(&format!("job {n}")).build()).collect();
    for job in rig.add_all(jobs).await {
        rig.start(job, 60).await;
    }
    assert_eq!(rig.store.list_owned(rig.node, 3).await.unwrap().len(), 3);
}

pub async fn of_given_attempts_those_that_run_on_the_node_are_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs: Vec<_> = (0..4).map(|n| new_job(&format!("job {n}")).build()).collect();
    let jobs = rig.add_all(jobs).await;
    let other = rig.join("node-2", 1).await;
    let mine = rig.start(jobs[0], 60).await;
    let theirs = rig.start_on(other, jobs[1], 60).await;
    let waits = rig.queue(jobs[2], 60).await;
    let ended = rig.run_successfully(jobs[3], 60).await;
    let never = AttemptKey::regular(jobs[0].no, at(7));
    rig.start(jobs[3], 120).await;
    let asked = [never, ended, waits, theirs.key, mine.key];
    let found = rig.store.find_owned(rig.node, &asked).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].key, found[0].fence), (mine.key, mine.fence));
    assert_eq!(rig.store.find_owned(rig.node, &[]).await.unwrap(), []);
}

pub async fn a_fire_for_an_older_time_than_announced_is_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").first_at(-3_000).every(90_000).build()).await;
    ping(&rig, Some(500), Vec::new(), 500).await;
    let held = rig.start(job, 501).await;
    assert_eq!(held.key.scheduled_at, at(-3_000));
    assert_eq!(lost(&rig, 510).await, [held.key]);
}

pub async fn a_claim_for_an_older_time_than_announced_is_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.queue(job, 60).await;
    ping(&rig, Some(5_000), Vec::new(), 5_000).await;
    let held = rig.claim_one(5_001).await;
    assert_eq!(lost(&rig, 5_010).await, [held.key]);
}

pub async fn a_retry_for_an_older_time_than_announced_is_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.retry(held, at(4_000))).await;
    ping(&rig, Some(5_000), Vec::new(), 5_000).await;
    rig.fire_delayed(&rig.delayed(5_000).await, crate::fixtures::Begin::Claimed, 5_001).await;
    assert_eq!(lost(&rig, 5_010).await, [crate::rig::next_attempt(held.key)]);
}

pub async fn a_ping_without_a_bound_keeps_the_last_one(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    ping(&rig, Some(60), Vec::new(), 70).await;
    ping(&rig, None, Vec::new(), 5_000).await;
    assert_eq!(lost(&rig, 5_010).await, [held.key]);
}

pub async fn a_long_attempt_is_found_before_the_bound(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (old, new) = (rig.add(new_job("old").build()).await, rig.add(new_job("new").build()).await);
    let long_one = rig.start(old, 60).await;
    ping(&rig, Some(60), Vec::new(), 70).await;
    ping(&rig, Some(5_000), vec![long(long_one, 60)], 5_000).await;
    assert_eq!(owned_by(&rig, rig.node).await, [long_one.key]);
    let short_one = rig.start(new, 6_000).await;
    ping(&rig, Some(5_000), vec![long(long_one, 60)], 6_001).await;
    assert_eq!(lost(&rig, 6_010).await, [long_one.key, short_one.key]);
}

pub async fn a_long_attempt_after_the_bound_is_returned_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    ping(&rig, Some(0), vec![long(held, 60)], 100).await;
    assert_eq!(lost(&rig, 110).await, [held.key]);
}

pub async fn an_ended_long_attempt_is_not_owned(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    ping(&rig, Some(5_000), vec![long(held, 60)], 5_000).await;
    rig.finish(rig.success(held)).await;
    assert_eq!(lost(&rig, 5_010).await, []);
}

pub async fn a_node_with_a_long_attempt_does_not_retire(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    ping(&rig, Some(5_000), vec![long(held, 60)], 5_000).await;
    assert!(!rig.store.retire(rig.node).await.unwrap());
}
