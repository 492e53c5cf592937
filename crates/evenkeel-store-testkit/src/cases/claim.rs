//! Tests claims from the queue: the dispatch order, guaranteed lanes, pools, and that no attempt is
//! claimed twice.

use std::collections::BTreeSet;

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::lease::Fence;
use evenkeel_core::order::Lane;
use evenkeel_core::{JobNo, NodeNo};
use evenkeel_store::{Claim, FireResult, Start};

use crate::Opened;
use crate::fixtures::{Begin, JobBuilder, at, fire_of, new_job, now};
use crate::rig::{Known, Rig, claim_of};

/// Queues an attempt of the job that should start by `deadline`. Both times are in seconds.
async fn queue(rig: &Rig, job: JobBuilder, deadline: i64, secs: i64) -> JobNo {
    let job = rig.add(job.build()).await;
    let mut fire = fire_of(&rig.due(job).await, at(secs), Begin::Queued);
    if let Some((_, Start::Queued(entry))) = &mut fire.start {
        entry.should_start_by = at(deadline);
    }
    assert!(matches!(rig.fire(vec![fire], secs).await[..], [FireResult::Fired(_)]));
    job.no
}

async fn claim(rig: &Rig, claim: Claim) -> Vec<JobNo> {
    let claimed = rig.store.claim(&claim, now(200)).await.unwrap();
    claimed.attempts.iter().map(|attempt| attempt.key.job_no).collect()
}

/// Queues `counts` attempts of each lane and returns how many of each lane a claim gets.
async fn shares(
    rig: &Rig,
    counts: [usize; 3],
    capacity: usize,
    guaranteed: [usize; 3],
) -> [usize; 3] {
    let mut lanes = std::collections::BTreeMap::new();
    for (lane, count) in Lane::ALL.into_iter().zip(counts) {
        for n in 0..count {
            let job = new_job(&format!("{lane:?} {n}")).lane(lane);
            lanes.insert(queue(rig, job, 100, 60).await, lane);
        }
    }
    let mut got = [0; 3];
    for job in claim(rig, Claim { guaranteed, ..claim_of(rig.node, capacity) }).await {
        got[lanes[&job] as usize] += 1;
    }
    got
}

pub async fn queued_attempts_are_counted_by_pool_up_to_a_limit(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (name, pool) in [("a", "big"), ("b", "big"), ("c", "small")] {
        queue(&rig, new_job(name).pool(pool), 100, 60).await;
    }
    let (big, small) = ("big".to_owned(), "small".to_owned());
    for (pools, limit, count) in [
        (vec![], 9, 0),
        (vec![big.clone()], 9, 2),
        (vec![big.clone(), small.clone()], 9, 3),
        (vec![big.clone(), small], 1, 1),
        (vec![big], 0, 0),
    ] {
        assert_eq!(
            rig.store.count_queued(&pools, limit).await.unwrap(),
            count,
            "{pools:?} {limit}"
        );
    }
}

pub async fn a_claim_starts_the_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.queue(job, 60).await;
    let claimed = rig.store.claim(&claim_of(rig.node, 5), now(63)).await.unwrap();
    assert_eq!(claimed.now, at(63));
    let [attempt] = &claimed.attempts[..] else { panic!("expected one attempt") };
    assert_eq!((attempt.key, attempt.fence, attempt.tenant), (key, Fence(1), rig.scope.tenant));
    assert_eq!(attempt.definition, rig.due(job).await.definition);
    assert_eq!(attempt.checkpoint, None);
    let run = rig.run(key).await;
    assert_eq!((run.status, run.fence, run.number), (AttemptStatus::Running, Fence(1), Some(1)));
    assert_eq!((run.started_at, run.finished_at), (Some(at(63)), None));
    assert_eq!(run.node, Some((rig.node, "node-1".into())));
    let after = rig.job(job).await;
    assert_eq!((after.live, after.waiting, after.executions), (1, 0, 1));
}

pub async fn no_attempt_is_given_twice(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..10 {
        queue(&rig, new_job(&format!("job {n}")), 100, 60).await;
    }
    let other = rig.join("node-2", 60).await;
    let mut seen = BTreeSet::new();
    for node in [rig.node, other, rig.node, other] {
        for attempt in rig.claim_for(node, 3, 61).await {
            assert!(seen.insert(attempt.key), "claimed twice");
        }
    }
    assert_eq!(seen.len(), 10);
    assert_eq!(rig.claim(10, 61).await, []);
}

pub async fn a_worker_gets_no_more_than_its_capacity(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..5 {
        queue(&rig, new_job(&format!("job {n}")), 100, 60).await;
    }
    assert_eq!(rig.claim(0, 61).await, []);
    assert_eq!(rig.claim(2, 61).await.len(), 2);
    assert_eq!(rig.census().await.ready, 3);
}

pub async fn order_is_lane_then_priority_then_deadline_then_age(opened: Opened) {
    let rig = Rig::new(opened).await;
    let batch = queue(&rig, new_job("batch").lane(Lane::Batch).priority(100), 61, 60).await;
    let newer = queue(&rig, new_job("newer").priority(10), 100, 70).await;
    let older = queue(&rig, new_job("older").priority(10), 100, 65).await;
    let nearer = queue(&rig, new_job("nearer").priority(10), 99, 75).await;
    let heavier = queue(&rig, new_job("heavier").priority(90), 500, 80).await;
    let critical = queue(&rig, new_job("critical").lane(Lane::Critical), 900, 90).await;
    assert_eq!(
        claim(&rig, claim_of(rig.node, 10)).await,
        [critical, heavier, nearer, older, newer, batch]
    );
}

pub async fn the_first_in_dispatch_order_are_claimed_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    let light = queue(&rig, new_job("light").priority(1), 100, 60).await;
    let heavy = queue(&rig, new_job("heavy").priority(9), 100, 60).await;
    let middle = queue(&rig, new_job("middle").priority(5), 100, 60).await;
    assert_eq!(claim(&rig, claim_of(rig.node, 2)).await, [heavy, middle]);
    assert_eq!(claim(&rig, claim_of(rig.node, 2)).await, [light]);
}

pub async fn guaranteed_capacity_goes_first_and_the_rest_in_order_of_lanes(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert_eq!(shares(&rig, [9, 9, 9], 8, [2, 1, 1]).await, [6, 1, 1]);
}

pub async fn guaranteed_capacity_that_a_lane_does_not_need_goes_to_others(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert_eq!(shares(&rig, [1, 0, 9], 8, [4, 2, 1]).await, [1, 0, 7]);
}

pub async fn without_guarantees_earlier_lanes_take_all(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert_eq!(shares(&rig, [3, 3, 3], 5, [0; 3]).await, [3, 2, 0]);
}

pub async fn guarantees_beyond_the_capacity_are_cut_from_the_last_lane(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert_eq!(shares(&rig, [3, 3, 3], 3, [2, 2, 2]).await, [2, 1, 0]);
}

pub async fn claimed_attempts_come_in_dispatch_order_even_with_guarantees(opened: Opened) {
    let rig = Rig::new(opened).await;
    let batch = queue(&rig, new_job("batch").lane(Lane::Batch), 100, 60).await;
    let first = queue(&rig, new_job("first").lane(Lane::Critical), 100, 60).await;
    let second = queue(&rig, new_job("second").lane(Lane::Critical), 101, 60).await;
    queue(&rig, new_job("left out").lane(Lane::Critical), 102, 60).await;
    let wanted = Claim { guaranteed: [1, 1, 1], ..claim_of(rig.node, 3) };
    assert_eq!(claim(&rig, wanted).await, [first, second, batch]);
}

pub async fn a_worker_gets_nothing_from_other_pools(opened: Opened) {
    let rig = Rig::new(opened).await;
    let big = queue(&rig, new_job("big").pool("big").priority(50), 100, 60).await;
    let plain = queue(&rig, new_job("plain"), 100, 60).await;
    let gpu = queue(&rig, new_job("gpu").pool("gpu").priority(90), 100, 60).await;
    assert_eq!(claim(&rig, claim_of(rig.node, 10)).await, [plain]);
    let none = Claim { pools: Vec::new(), ..claim_of(rig.node, 10) };
    assert_eq!(claim(&rig, none).await, []);
    let both = Claim { pools: vec!["big".into(), "gpu".into()], ..claim_of(rig.node, 10) };
    assert_eq!(claim(&rig, both).await, [gpu, big]);
}

pub async fn capacity_is_shared_by_all_pools_of_a_worker(opened: Opened) {
    let rig = Rig::new(opened).await;
    for pool in ["a", "b", "c"] {
        for n in 0..4 {
            queue(&rig, new_job(&format!("{pool} {n}")).pool(pool), 100, 60).await;
        }
    }
    let pools = vec!["a".into(), "b".into(), "c".into()];
    let wanted = Claim { pools, ..claim_of(rig.node, 5) };
    assert_eq!(claim(&rig, wanted).await.len(), 5);
}

pub async fn a_node_that_is_not_live_gets_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    queue(&rig, new_job("crawl"), 100, 60).await;
    let former = rig.node;
    let live = rig.join("node-1", 61).await;
    assert_eq!(rig.claim_for(former, 5, 62).await, []);
    assert_eq!(rig.claim_for(NodeNo(live.0 + 1_000), 5, 62).await, []);
    rig.store.drain(live).await.unwrap();
    assert_eq!(rig.claim_for(live, 5, 62).await, []);
    assert!(rig.store.retire(live).await.unwrap());
    assert_eq!(rig.claim_for(live, 5, 62).await, []);
    assert_eq!(rig.census().await.ready, 1);
}

pub async fn a_claimed_run_keeps_its_position_among_the_runs_of_its_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job: Known = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    rig.queue(job, 120).await;
    assert_eq!(rig.times_of(job).await, [(120, 0), (60, 0)]);
    let held = rig.claim_one(121).await;
    assert_eq!(rig.times_of(job).await, [(120, 0), (60, 0)]);
    rig.finish(rig.success(held)).await;
    rig.run_successfully(job, 180).await;
    assert_eq!(rig.times_of(job).await, [(180, 0), (120, 0), (60, 0)]);
}
