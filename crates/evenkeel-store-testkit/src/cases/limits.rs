//! Tests concurrency limits of keys, tenants and lanes.

use evenkeel_core::AttemptKey;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::limit::{KeyDigest, LimitKey, Limits};
use evenkeel_core::order::Lane;
use evenkeel_store::{
    AfterLoss, Claim, ClaimedAttempt, FinishResult, LimitTerms, Permit, ReleaseStep, Requeue, Scope,
};

use crate::Opened;
use crate::fixtures::{JobBuilder, at, new_job, now};
use crate::rig::{Held, Known, OVER, Rig, claim_of, delayed_fire_of};

/// Returns a release step over all limit queues.
pub(super) fn all_queues() -> ReleaseStep {
    ReleaseStep { after: None, limit: 1_000, terms: LimitTerms::default(), to_wider: false }
}

/// Returns a release step over all limit queues with these limits of tenants and lanes.
pub(super) fn queues_within(limits: &Limits) -> ReleaseStep {
    ReleaseStep {
        terms: LimitTerms { limits: limits.clone(), ..LimitTerms::default() },
        ..all_queues()
    }
}

/// Returns the limit key for a concurrency key of the first tenant.
pub(super) fn key_of(rig: &Rig, text: &str) -> LimitKey {
    LimitKey::of_key(rig.scope.tenant, KeyDigest::of(text))
}

/// Adds a job and queues an attempt of it.
pub(super) async fn queue(rig: &Rig, job: JobBuilder, secs: i64) -> (Known, AttemptKey) {
    let job = rig.add(job.build()).await;
    (job, rig.queue(job, secs).await)
}

/// Queues attempts of `count` jobs with the same concurrency key, one after the other.
pub(super) async fn queue_many(rig: &Rig, key: &str, most: u32, count: i64) -> Vec<AttemptKey> {
    let mut keys = Vec::new();
    for n in 0..count {
        keys.push(queue(rig, new_job(&format!("{key} {n}")).limited(key, most), 60 + n).await.1);
    }
    keys
}

pub(super) fn keys(claimed: &[ClaimedAttempt]) -> Vec<AttemptKey> {
    claimed.iter().map(|attempt| attempt.key).collect()
}

pub(super) fn held(claimed: &ClaimedAttempt) -> Held {
    Held { key: claimed.key, fence: claimed.fence }
}

/// Runs one release step over all limit queues, and returns the number of released attempts.
pub(super) async fn release_all_limited(rig: &Rig, secs: i64) -> u64 {
    unpark_within(rig, &Limits::default(), secs).await
}

/// Runs one release step with these limits of tenants and lanes, and returns the number of released
/// attempts.
pub(super) async fn unpark_within(rig: &Rig, limits: &Limits, secs: i64) -> u64 {
    let step_over = queues_within(limits);
    rig.store
        .release_all_limited(step_over, now(secs))
        .await
        .expect("limit queues can be read")
        .moved
}

pub(super) async fn claim_within(
    rig: &Rig,
    limits: &Limits,
    capacity: usize,
    secs: i64,
) -> Vec<ClaimedAttempt> {
    let claim = Claim { limits: limits.clone(), ..claim_of(rig.node, capacity) };
    rig.store.claim(&claim, now(secs)).await.expect("attempts can be claimed").attempts
}

pub async fn a_key_has_no_more_runs_than_its_limit(opened: Opened) {
    let rig = Rig::new(opened).await;
    let queued = queue_many(&rig, "host", 2, 5).await;
    let claimed = rig.claim(10, 100).await;
    assert_eq!(keys(&claimed), queued[..2]);
    assert_eq!(claimed[0].permits, [key_of(&rig, "host")]);
    assert_eq!(keys(&rig.claim(10, 101).await), []);
    assert_eq!(release_all_limited(&rig, 102).await, 0);
    assert_eq!(keys(&rig.claim(10, 103).await), []);
    let census = rig.census().await;
    assert_eq!((census.running, census.ready, census.live), (2, 3, 5));
}

pub async fn attempts_behind_a_limited_one_are_claimed(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..40 {
        queue(&rig, new_job(&format!("host {n}")).limited("host", 1).priority(90), 60).await;
    }
    let (_, other) = queue(&rig, new_job("other").limited("other", 1).priority(50), 70).await;
    let (_, free) = queue(&rig, new_job("free").priority(10), 70).await;
    // A claim skips all attempts whose concurrency key has no free permit, however many there are.
    assert_eq!(rig.claim(1, 100).await.len(), 1);
    assert_eq!(keys(&rig.claim(1, 100).await), [other]);
    assert_eq!(keys(&rig.claim(1, 100).await), [free]);
    assert_eq!(keys(&rig.claim(1, 100).await), []);
    assert_eq!(rig.census().await.ready, 39);
}

pub async fn an_end_frees_a_permit_for_the_next(opened: Opened) {
    let rig = Rig::new(opened).await;
    let queued = queue_many(&rig, "host", 1, 3).await;
    for (n, key) in queued.iter().enumerate() {
        let claimed = rig.claim(10, 100).await;
        assert_eq!(keys(&claimed), [*key], "{n}");
        assert_eq!(rig.finish(rig.success(held(&claimed[0]))).await, FinishResult::Done);
        assert_eq!(release_all_limited(&rig, 100).await, u64::from(n < 2));
    }
}

pub async fn as_many_attempts_are_released_as_have_ended(opened: Opened) {
    let rig = Rig::new(opened).await;
    queue_many(&rig, "host", 2, 6).await;
    queue_many(&rig, "other", 1, 3).await;
    let claimed = rig.claim(20, 100).await;
    assert_eq!(claimed.len(), 3);
    let ends = claimed.iter().map(|attempt| rig.success(held(attempt))).collect();
    rig.finish_all(ends).await;
    let place = |attempt: &ClaimedAttempt| Permit { limit: attempt.permits[0], run: attempt.key };
    let ended: Vec<Permit> = claimed.iter().map(place).collect();
    let released =
        rig.store.release_limited(&ended, &LimitTerms::default(), now(101)).await.unwrap();
    assert_eq!(released, 3);
    assert_eq!(rig.claim(20, 101).await.len(), 3);
    // The second call releases attempts although no permit is free, and the claim starts none of
    // them.
    assert_eq!(
        rig.store.release_limited(&ended, &LimitTerms::default(), now(102)).await.unwrap(),
        3
    );
    assert_eq!(rig.claim(20, 102).await.len(), 0);
    assert_eq!(rig.store.release_limited(&[], &LimitTerms::default(), now(102)).await.unwrap(), 0);
}

pub async fn attempts_are_released_in_dispatch_order(opened: Opened) {
    let rig = Rig::new(opened).await;
    let runs = queue(&rig, new_job("runs").limited("host", 1), 60).await.1;
    assert_eq!(keys(&rig.claim(9, 61).await), [runs]);
    let job = |name: &str| new_job(name).limited("host", 1);
    let (_, batch) = queue(&rig, job("batch").lane(Lane::Batch).priority(100), 62).await;
    let (_, low) = queue(&rig, job("low").priority(10), 62).await;
    let (_, high) = queue(&rig, job("high").priority(80), 9_000).await;
    let (_, higher) = queue(&rig, job("higher").priority(90), 9_001).await;
    let (_, critical) = queue(&rig, job("critical").lane(Lane::Critical), 9_002).await;
    assert_eq!(keys(&rig.claim(9, 9_003).await), []);
    // The attempt with low priority has now waited long enough to be ahead of the attempt with high
    // priority.
    let (limit, mut run) = (key_of(&rig, "host"), runs);
    let mut order = Vec::new();
    for _ in 0..5 {
        let owned = rig.owned(rig.node).await;
        let running = Held { key: run, fence: owned[0].fence };
        rig.finish(rig.success(running)).await;
        let ended = [Permit { limit, run }];
        assert_eq!(
            rig.store.release_limited(&ended, &LimitTerms::default(), now(9_004)).await.unwrap(),
            1
        );
        let claimed = rig.claim(9, 9_004).await;
        assert_eq!(claimed.len(), 1);
        run = claimed[0].key;
        order.push(run);
    }
    assert_eq!(order, [critical, low, higher, high, batch]);
}

pub async fn an_attempt_that_is_asked_to_end_keeps_its_permit_until_it_has(opened: Opened) {
    let rig = Rig::new(opened).await;
    let queued = queue_many(&rig, "host", 1, 2).await;
    let claimed = rig.claim(9, 100).await;
    rig.store.cancel_run(&rig.scope, queued[0], now(101)).await.unwrap();
    assert_eq!(release_all_limited(&rig, 101).await, 0);
    rig.finish(rig.end(held(&claimed[0]), Outcome::Cancelled, OVER)).await;
    assert_eq!(release_all_limited(&rig, 102).await, 1);
    assert_eq!(keys(&rig.claim(9, 102).await), queued[1..]);
}

pub async fn a_retry_needs_its_own_permit(opened: Opened) {
    let rig = Rig::new(opened).await;
    let queued = queue_many(&rig, "host", 1, 2).await;
    let claimed = rig.claim(9, 100).await;
    rig.finish(rig.retry(held(&claimed[0]), at(110))).await;
    assert_eq!(release_all_limited(&rig, 101).await, 1);
    let second = rig.claim(9, 101).await;
    assert_eq!(keys(&second), queued[1..]);
    let delayed = rig.delayed(110).await;
    let fires =
        delayed.iter().map(|delayed| delayed_fire_of(delayed, crate::fixtures::Begin::Queued));
    rig.store.fire_delayed(rig.node, fires.collect(), now(110)).await.unwrap();
    assert_eq!(keys(&rig.claim(9, 110).await), []);
    rig.finish(rig.success(held(&second[0]))).await;
    assert_eq!(release_all_limited(&rig, 111).await, 1);
    assert_eq!(keys(&rig.claim(9, 111).await), [delayed[0].key]);
}

pub async fn permits_of_a_dead_node_are_free_after_takeover(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (first, _) = queue(&rig, new_job("first").limited("host", 1), 60).await;
    let (_, second) = queue(&rig, new_job("second").limited("host", 1).priority(90), 61).await;
    let other = rig.join("node-2", 0).await;
    // A claim for one attempt gets only the attempt with the higher priority.
    let claimed = rig.claim(1, 62).await;
    assert_eq!(keys(&claimed), [second]);
    assert_eq!(keys(&rig.claim_for(other, 9, 63).await), []);
    assert_eq!(release_all_limited(&rig, 63).await, 0);
    let due = rig.due(first).await;
    let requeue = Requeue {
        key: second,
        fence: claimed[0].fence,
        tenant: rig.scope.tenant,
        crashed: true,
        then: AfterLoss::Queue(crate::fixtures::queue_entry_of(&due, at(120), at(64))),
    };
    assert!(rig.requeue(requeue, 64).await);
    // The requeued attempt waits again, and one of the two attempts gets the permit.
    assert_eq!(release_all_limited(&rig, 64).await, 1);
    assert_eq!(rig.claim_for(other, 9, 64).await.len(), 1);
    assert_eq!(rig.claim_for(other, 9, 64).await.len(), 0);
    assert_eq!(rig.census().await.running, 1);
}

pub async fn a_requeued_attempt_may_start_again(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, run) = queue(&rig, new_job("only").limited("host", 1), 60).await;
    for secs in [61, 62, 63] {
        let held = rig.claim_one(secs).await;
        assert_eq!(held.key, run);
        let back = rig.requeue_of(held, job, false).await;
        assert!(rig.requeue(back, secs).await);
    }
    rig.claim_one(64).await;
    queue(&rig, new_job("next").limited("host", 1), 65).await;
    assert_eq!(keys(&rig.claim(9, 65).await), []);
}

pub async fn keys_of_different_tenants_are_independent(opened: Opened) {
    let rig = Rig::new(opened).await;
    queue_many(&rig, "host", 1, 2).await;
    let other: Scope = rig.tenant("other").await;
    let job = rig.add_for(&other, new_job("theirs").limited("host", 1).build()).await;
    let theirs = rig.queue(job, 70).await;
    let claimed = keys(&rig.claim(9, 100).await);
    assert_eq!(claimed.len(), 2);
    assert!(claimed.contains(&theirs));
}

pub async fn a_tenant_has_no_more_runs_than_its_limit(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    for n in 0..4 {
        queue(&rig, new_job(&format!("job {n}")), 60).await;
        let job = rig.add_for(&other, new_job(&format!("job {n}")).build()).await;
        rig.queue(job, 60).await;
    }
    let limits =
        Limits { tenant: Some(1), tenants: [(other.tenant, 3)].into(), ..Limits::default() };
    let claimed = claim_within(&rig, &limits, 20, 100).await;
    let of = |scope: &Scope| claimed.iter().filter(|one| one.tenant == scope.tenant).count();
    assert_eq!((of(&rig.scope), of(&other)), (1, 3));
    let ours = claimed.iter().find(|one| one.tenant == rig.scope.tenant).unwrap();
    assert_eq!(ours.permits, [LimitKey::of_tenant(rig.scope.tenant)]);
    rig.finish(rig.success(held(ours))).await;
    assert_eq!(unpark_within(&rig, &limits, 101).await, 1);
    let next = claim_within(&rig, &limits, 20, 101).await;
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].tenant, rig.scope.tenant);
}

pub async fn a_lane_has_no_more_runs_than_its_limit(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    for n in 0..3 {
        queue(&rig, new_job(&format!("batch {n}")).lane(Lane::Batch), 60).await;
        queue(&rig, new_job(&format!("standard {n}")), 60).await;
        let job = new_job(&format!("batch {n}")).lane(Lane::Batch).build();
        let job = rig.add_for(&other, job).await;
        rig.queue(job, 60).await;
    }
    let limits = Limits { lanes: [None, None, Some(2)], ..Limits::default() };
    let claimed = claim_within(&rig, &limits, 20, 100).await;
    let lane = LimitKey::of_lane(Lane::Batch);
    let in_lane = claimed.iter().filter(|one| one.permits == [lane]).count();
    assert_eq!((claimed.len(), in_lane), (5, 2));
    // Without the lane limit, the attempts start as soon as they are back in their pool.
    assert_eq!(claim_within(&rig, &Limits::default(), 20, 101).await.len(), 0);
    for attempt in claimed.iter().filter(|one| !one.permits.is_empty()) {
        let mut end = rig.success(held(attempt));
        end.tenant = attempt.tenant;
        rig.finish(end).await;
    }
    assert_eq!(unpark_within(&rig, &limits, 102).await, 2);
    assert_eq!(unpark_within(&rig, &limits, 102).await, 2);
    assert_eq!(claim_within(&rig, &Limits::default(), 20, 102).await.len(), 4);
}

pub async fn an_attempt_under_several_limits_needs_a_permit_of_each(opened: Opened) {
    let rig = Rig::new(opened).await;
    let limits = Limits { tenant: Some(2), ..Limits::default() };
    let queued = queue_many(&rig, "host", 1, 3).await;
    let (_, free) = queue(&rig, new_job("free"), 70).await;
    queue(&rig, new_job("one too many"), 71).await;
    let claimed = claim_within(&rig, &limits, 20, 100).await;
    assert_eq!(keys(&claimed), [queued[0], free]);
    let tenant = LimitKey::of_tenant(rig.scope.tenant);
    assert_eq!(claimed[0].permits, [key_of(&rig, "host"), tenant]);
    let depths = rig.store.queue_depths(100).await.unwrap();
    assert_eq!(depths.parked, [2, 1, 0]);
    // The concurrency key has a free permit again, and the tenant has one free permit for the first
    // of the released attempts.
    rig.finish(rig.success(held(&claimed[0]))).await;
    assert_eq!(unpark_within(&rig, &limits, 101).await, 2);
    assert_eq!(keys(&claim_within(&rig, &limits, 20, 101).await), [queued[1]]);
}

pub async fn guaranteed_capacity_goes_to_others_if_limits_block_it(opened: Opened) {
    let rig = Rig::new(opened).await;
    let batch = |name: &str| new_job(name).lane(Lane::Batch);
    for n in 0..4 {
        queue(&rig, new_job(&format!("critical {n}")).lane(Lane::Critical), 60).await;
    }
    let (_, first) = queue(&rig, batch("first").limited("host", 1).priority(90), 60).await;
    queue(&rig, batch("second").limited("host", 1).priority(80), 60).await;
    let (_, third) = queue(&rig, batch("third").priority(70), 60).await;
    let claim = Claim { guaranteed: [1, 0, 2], ..claim_of(rig.node, 3) };
    let claimed = rig.store.claim(&claim, now(61)).await.unwrap().attempts;
    assert_eq!(claimed.len(), 3);
    assert_eq!(keys(&claimed)[1..], [first, third]);
}

pub async fn a_permit_goes_to_the_earlier_lane(opened: Opened) {
    let rig = Rig::new(opened).await;
    queue(&rig, new_job("batch").lane(Lane::Batch).limited("host", 1), 60).await;
    for n in 0..2 {
        queue(&rig, new_job(&format!("free {n}")).lane(Lane::Critical).priority(90), 60).await;
    }
    let job = new_job("critical").lane(Lane::Critical).limited("host", 1);
    let (_, critical) = queue(&rig, job, 60).await;
    // Although the claim guarantees one attempt to the batch lane, the only permit goes to the more
    // urgent critical lane.
    let claim = Claim { guaranteed: [1, 0, 1], ..claim_of(rig.node, 4) };
    let claimed = keys(&rig.store.claim(&claim, now(61)).await.unwrap().attempts);
    assert_eq!(claimed.len(), 3);
    assert!(claimed.contains(&critical));
}

pub async fn jobs_of_a_key_may_have_different_limits(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (_, shy) = queue(&rig, new_job("shy").limited("host", 1), 60).await;
    let (_, bold) = queue(&rig, new_job("bold").limited("host", 3), 61).await;
    queue(&rig, new_job("shy too").limited("host", 1), 62).await;
    let (_, bold_too) = queue(&rig, new_job("bold too").limited("host", 3), 63).await;
    let (_, last) = queue(&rig, new_job("last").limited("host", 3), 64).await;
    let claimed = rig.claim(9, 100).await;
    assert_eq!(keys(&claimed), [shy, bold, bold_too]);
    rig.finish(rig.success(held(&claimed[1]))).await;
    // Two attempts with the concurrency key are running, so the job with limit 1, which is first in
    // the limit queue, cannot start.
    assert_eq!(release_all_limited(&rig, 101).await, 1);
    assert_eq!(keys(&rig.claim(9, 101).await), [last]);
}

pub async fn permits_survive_a_restart(opened: Opened) {
    let rig = Rig::new(opened).await;
    queue_many(&rig, "host", 1, 3).await;
    assert_eq!(rig.claim(1, 100).await.len(), 1);
    let rig = rig.restart().await;
    assert_eq!(rig.claim(9, 101).await.len(), 0);
    assert_eq!(release_all_limited(&rig, 102).await, 0);
}

pub async fn permits_of_ended_runs_are_pruned_and_others_kept(opened: Opened) {
    let rig = Rig::new(opened).await;
    queue_many(&rig, "a", 3, 3).await;
    queue_many(&rig, "b", 3, 3).await;
    let claimed = rig.claim(9, 100).await;
    assert_eq!(claimed.len(), 6);
    for attempt in claimed.iter().step_by(2) {
        rig.finish(rig.success(held(attempt))).await;
    }
    let (mut after, mut steps) = (None, 0);
    loop {
        after = rig.store.prune_permits(after, 2).await.unwrap();
        steps += 1;
        if after.is_none() {
            break;
        }
        assert!(steps < 10, "the loop ends");
    }
    // Three of the six permits are in use, so exactly three attempts can start.
    for key in ["a", "b"] {
        for n in 10..13 {
            queue(&rig, new_job(&format!("{key} {n}")).limited(key, 3), 101).await;
        }
    }
    assert_eq!(rig.claim(9, 102).await.len(), 3);
}

pub async fn limit_queues_are_read_one_after_the_other(opened: Opened) {
    let rig = Rig::new(opened).await;
    for key in ["a", "b", "c"] {
        queue_many(&rig, key, 1, 2).await;
    }
    let claimed = rig.claim(9, 100).await;
    rig.finish_all(claimed.iter().map(|one| rig.success(held(one))).collect()).await;
    let (mut after, mut moved) = (None, Vec::new());
    loop {
        let step_over = ReleaseStep { after, limit: 1, ..all_queues() };
        let step = rig.store.release_all_limited(step_over, now(101)).await.unwrap();
        moved.push(step.moved);
        after = step.next;
        if after.is_none() {
            break;
        }
        assert!(moved.len() < 10, "the loop ends");
    }
    assert_eq!(moved, [1, 1, 1, 0]);
}
