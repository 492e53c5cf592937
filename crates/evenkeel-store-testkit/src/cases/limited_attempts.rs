//! Tests that all store operations that show waiting attempts also show attempts that wait for a
//! permit.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::limit::{Limit, Limits};
use evenkeel_store::{
    Action, ClaimWindow, JobChange, LimitTerms, Permit, RunCancelled, WaitingAttempt, WaitsFor,
};

use super::limits::{claim_within, held, key_of, keys, queue, queue_many, release_all_limited};
use crate::Opened;
use crate::commands::{Commands as _, done, resume};
use crate::fixtures::{at, new_job, now};
use crate::rig::{Known, Rig};

/// Starts one attempt, and lets a second attempt wait for the permit that the first attempt holds.
async fn one_waits(rig: &Rig) -> (Known, evenkeel_core::AttemptKey) {
    queue_many(rig, "host", 1, 1).await;
    let waits = queue(rig, new_job("waits").limited("host", 1), 70).await;
    assert_eq!(rig.claim(9, 80).await.len(), 1);
    waits
}

pub async fn a_limited_attempt_shows_its_limit(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, key) = one_waits(&rig).await;
    let limit = Limit { key: key_of(&rig, "host"), most: 1 };
    let waits_for = WaitsFor::Permit { since: at(70), limit, running: Some(1) };
    let returned = rig.waiting_of(&rig.scope, job.id).await;
    assert_eq!(returned, [WaitingAttempt { key, priority: None, waits_for }]);
    let returned = rig.store.waiting_attempts(&rig.scope, job.id, None, now(100)).await.unwrap();
    let waits_for = WaitsFor::Permit { since: at(70), limit, running: None };
    assert_eq!(returned[0].waits_for, waits_for, "permits are counted on request");
    let other = rig.tenant("other").await;
    assert_eq!(rig.waiting_of(&other, job.id).await, []);
    assert_eq!(release_all_limited(&rig, 81).await, 0);
    rig.finish(rig.success(held_of(&rig).await)).await;
    assert_eq!(release_all_limited(&rig, 82).await, 1);
    let returned = rig.waiting_of(&rig.scope, job.id).await;
    assert!(
        matches!(returned[0].waits_for, WaitsFor::Worker { ahead: Some(0), .. }),
        "{returned:?}"
    );
}

async fn held_of(rig: &Rig) -> crate::rig::Held {
    let owned = rig.owned(rig.node).await;
    crate::rig::Held { key: owned[0].key, fence: owned[0].fence }
}

pub async fn a_limited_attempt_is_pending(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, key) = one_waits(&rig).await;
    assert_eq!(rig.run(key).await.status, AttemptStatus::Pending);
    let listed = rig.runs_of(job).await;
    assert_eq!((listed.len(), listed[0].key), (1, key));
    let job = rig.job(job).await;
    assert_eq!((job.live, job.waiting), (1, 1));
}

pub async fn limited_attempts_are_counted_separately(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (.., key) = one_waits(&rig).await;
    queue(&rig, new_job("free").pool("chrome"), 81).await;
    let depths = rig.store.queue_depths(100).await.unwrap();
    let pools: Vec<(&str, u64)> =
        depths.depths.iter().map(|depth| (depth.pool.as_str(), depth.waiting)).collect();
    assert_eq!((pools, depths.parked), (vec![("chrome", 1)], [1, 0, 0]));
    assert_eq!(rig.store.count_queued(&["default".into()], 100).await.unwrap(), 0);
    rig.store.cancel_run(&rig.scope, key, now(82)).await.unwrap();
    assert_eq!(rig.store.queue_depths(100).await.unwrap().parked, [0, 0, 0]);
}

pub async fn a_limited_attempt_can_be_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, key) = one_waits(&rig).await;
    let cancelled = rig.store.cancel_run(&rig.scope, key, now(81)).await.unwrap();
    assert_eq!(cancelled, RunCancelled::Withdrawn(key));
    assert_eq!(rig.run(key).await.status, AttemptStatus::Cancelled);
    assert_eq!(rig.job(job).await.live, 0);
}

pub async fn a_pause_withdraws_a_limited_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, key) = one_waits(&rig).await;
    let paused = rig.store.act(&rig.scope, job.id, Action::Pause, now(81)).await.unwrap();
    assert_eq!(done(paused).withdrawn, [key]);
    rig.finish(rig.success(held_of(&rig).await)).await;
    assert_eq!(release_all_limited(&rig, 82).await, 0);
    let resumed = rig.store.act(&rig.scope, job.id, resume(Some(at(200))), now(83)).await;
    done(resumed.unwrap());
    assert_eq!(keys(&rig.claim(9, 84).await), []);
}

pub async fn a_deletion_withdraws_a_limited_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, key) = one_waits(&rig).await;
    let gone = rig.store.delete(&rig.scope, job.id, now(81)).await.unwrap();
    assert_eq!(done(gone).withdrawn, [key]);
    let census = rig.census().await;
    assert_eq!((census.ready, census.live), (0, 1));
}

pub async fn a_changed_key_applies_to_a_limited_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, key) = one_waits(&rig).await;
    let mut definition = rig.job(job).await.definition;
    definition.concurrency_key = Some("another".into());
    let change = JobChange { definition: Some(definition), ..JobChange::default() };
    done(rig.store.update(&rig.scope, job.id, change, now(81)).await.unwrap());
    let claimed = rig.claim(9, 82).await;
    assert_eq!(keys(&claimed), [key]);
    assert_eq!(claimed[0].permits, [key_of(&rig, "another")]);
}

pub async fn a_changed_limit_applies_to_a_limited_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, key) = one_waits(&rig).await;
    let mut definition = rig.job(job).await.definition;
    definition.concurrency_limit = Some(2);
    let change = JobChange { definition: Some(definition), ..JobChange::default() };
    done(rig.store.update(&rig.scope, job.id, change, now(81)).await.unwrap());
    assert_eq!(keys(&rig.claim(9, 82).await), [key]);
}

pub async fn a_released_attempt_goes_back_to_its_pool(opened: Opened) {
    let rig = Rig::new(opened).await;
    queue_many(&rig, "host", 1, 1).await;
    let running = rig.claim(9, 80).await;
    let (_, chrome) = queue(&rig, new_job("chrome").pool("chrome").limited("host", 1), 81).await;
    let from_chrome =
        evenkeel_store::Claim { pools: vec!["chrome".into()], ..crate::rig::claim_of(rig.node, 9) };
    assert_eq!(rig.store.claim(&from_chrome, now(82)).await.unwrap().attempts.len(), 0);
    rig.finish(rig.success(held(&running[0]))).await;
    let ended = [Permit { limit: key_of(&rig, "host"), run: running[0].key }];
    assert_eq!(
        rig.store.release_limited(&ended, &LimitTerms::default(), now(83)).await.unwrap(),
        1
    );
    assert_eq!(keys(&rig.claim(9, 84).await), []);
    let claimed = rig.store.claim(&from_chrome, now(84)).await.unwrap().attempts;
    assert_eq!(keys(&claimed), [chrome]);
}

pub async fn an_attempt_outside_its_claim_window_is_not_released(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (.., closed) = one_waits(&rig).await;
    let (_, open) = queue(&rig, new_job("open").limited("host", 1), 71).await;
    assert_eq!(keys(&rig.claim(9, 81).await), []);
    let window = ClaimWindow { from: Some(at(500)), until: None };
    rig.store.set_claim_windows(&[(closed, window)]).await.unwrap();
    rig.finish(rig.success(held_of(&rig).await)).await;
    assert_eq!(release_all_limited(&rig, 82).await, 1);
    assert_eq!(keys(&rig.claim(9, 82).await), [open]);
    rig.finish(rig.success(held_of(&rig).await)).await;
    assert_eq!(release_all_limited(&rig, 83).await, 0);
    assert_eq!(release_all_limited(&rig, 500).await, 1);
    assert_eq!(keys(&rig.claim(9, 500).await), [closed]);
}

pub async fn an_attempt_blocked_by_a_tenant_limit_shows_it(opened: Opened) {
    let rig = Rig::new(opened).await;
    let limits = Limits { tenant: Some(1), ..Limits::default() };
    queue(&rig, new_job("runs"), 60).await;
    let (job, key) = queue(&rig, new_job("waits"), 61).await;
    assert_eq!(claim_within(&rig, &limits, 9, 62).await.len(), 1);
    let returned = rig.waiting_of(&rig.scope, job.id).await;
    let limit = evenkeel_core::limit::LimitKey::of_tenant(rig.scope.tenant);
    let limit = Limit { key: limit, most: 1 };
    let waits_for = WaitsFor::Permit { since: at(61), limit, running: Some(1) };
    assert_eq!(returned, [WaitingAttempt { key, priority: None, waits_for }]);
}

pub async fn an_attempt_blocked_by_a_lane_limit_does_not_show_how_many_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    let limits = Limits { lanes: [None, Some(1), None], ..Limits::default() };
    queue(&rig, new_job("runs"), 60).await;
    let (job, key) = queue(&rig, new_job("waits"), 61).await;
    assert_eq!(claim_within(&rig, &limits, 9, 62).await.len(), 1);
    // For a lane limit, the number of running attempts is hidden, because they may belong to other
    // tenants.
    let limit = evenkeel_core::limit::LimitKey::of_lane(evenkeel_core::order::Lane::Standard);
    let limit = Limit { key: limit, most: 1 };
    let waits_for = WaitsFor::Permit { since: at(61), limit, running: None };
    let returned = rig.waiting_of(&rig.scope, job.id).await;
    assert_eq!(returned, [WaitingAttempt { key, priority: None, waits_for }]);
}
