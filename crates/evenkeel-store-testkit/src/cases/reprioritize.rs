//! Tests changes of the aging settings while attempts wait.

use evenkeel_core::aging::Aging;
use evenkeel_core::order::{Lane, Priority};
use evenkeel_core::{AttemptKey, Span};
use evenkeel_store::{Claim, JobChange, Reprioritized, Trigger, WaitsFor};

use crate::Opened;
use crate::commands::Commands as _;
use crate::fixtures::{Begin, new_job, now, place_of};
use crate::rig::{Known, Rig, claim_of};

const HOUR: i64 = 3600;

/// Queues an attempt of a new job with the given priority, `secs` seconds after the start of the
/// case.
async fn wait(rig: &Rig, name: &str, priority: u8, secs: i64) -> Known {
    let job = rig.add(new_job(name).priority(priority).first_at(secs).build()).await;
    rig.queue(job, secs).await;
    job
}

/// Aging settings that add 10 to the priority every minute, without a minimum waiting time.
fn quick() -> Aging {
    Aging { every: Span::from_secs(60), after: Span::ZERO, ..Aging::default() }
}

/// Reprioritizes the whole queue in steps of two attempts, and returns how many attempts changed.
async fn reprioritize(rig: &Rig, aging: Aging) -> u64 {
    let (mut after, mut changed) = (None, 0);
    loop {
        let step = rig.store.reprioritize(aging, after, 2).await.unwrap();
        assert_eq!(step.missed, 0);
        changed += step.changed;
        after = step.next;
        if after.is_none() {
            return changed;
        }
    }
}

async fn ahead(rig: &Rig, job: Known, aging: Aging, secs: i64) -> u32 {
    let returned =
        rig.store.waiting_attempts(&rig.scope, job.id, Some(aging), now(secs)).await.unwrap();
    match returned[0].waits_for {
        WaitsFor::Worker { ahead, .. } => ahead.expect("queue positions were requested"),
        WaitsFor::Time(_) | WaitsFor::Permit { .. } => {
            panic!("the attempt does not wait for a worker")
        }
    }
}

async fn order(rig: &Rig, aging: Aging, secs: i64) -> Vec<i64> {
    let claim = Claim { aging, ..claim_of(rig.node, 100) };
    let claimed = rig.store.claim(&claim, now(secs)).await.unwrap();
    claimed.attempts.iter().map(|attempt| attempt.key.job_no.0).collect()
}

pub async fn queued_attempts_get_the_new_aging(opened: Opened) {
    let rig = Rig::new(opened).await;
    let old = wait(&rig, "old", 0, 0).await;
    let mut new = Vec::new();
    for n in 0..4 {
        new.push(wait(&rig, &format!("new {n}"), 50 - n, 600).await.no.0);
    }
    assert_eq!(reprioritize(&rig, Aging::default()).await, 0, "no attempt changes");
    assert_eq!(reprioritize(&rig, quick()).await, 5);
    assert_eq!(reprioritize(&rig, quick()).await, 0);
    let expected: Vec<i64> = [old.no.0].into_iter().chain(new).collect();
    assert_eq!(order(&rig, quick(), 630).await, expected);
    assert_eq!(reprioritize(&rig, quick()).await, 0);
}

pub async fn a_step_reads_no_more_than_its_limit(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut keys = Vec::new();
    for n in 0..3 {
        let job = wait(&rig, &format!("job {n}"), 0, 60 + n).await;
        keys.push(AttemptKey::regular(job.no, crate::fixtures::at(60 + n)));
    }
    for (after, changed, next) in
        [(None, 2, Some(keys[1])), (Some(keys[1]), 1, None), (Some(keys[2]), 0, None)]
    {
        let step = rig.store.reprioritize(quick(), after, 2).await.unwrap();
        assert_eq!(step, Reprioritized { changed, missed: 0, next });
    }
}

pub async fn a_run_with_its_own_priority_keeps_its_rank(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = wait(&rig, "job", 10, 60).await;
    let mut definition = rig.job(job).await.definition;
    definition.priority = Priority::MAX;
    let change = JobChange { definition: Some(definition), ..JobChange::default() };
    rig.store.update(&rig.scope, job.id, change, now(61)).await.unwrap();
    assert_eq!(reprioritize(&rig, Aging::default()).await, 0);
    assert_eq!(reprioritize(&rig, quick()).await, 1);
}

pub async fn attempts_ahead_are_counted_by_waiting_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let aging = Aging::default();
    let old = wait(&rig, "old", 0, 10).await;
    let high = wait(&rig, "high", 90, 2 * HOUR).await;
    let higher = wait(&rig, "higher", 95, 2 * HOUR).await;
    let batch = rig.add(new_job("batch").lane(Lane::Batch).first_at(20).build()).await;
    rig.queue(batch, 20).await;
    let other = rig.tenant("other").await;
    let theirs = rig.add_for(&other, new_job("theirs").priority(1).first_at(5).build()).await;
    rig.queue(theirs, 5).await;
    // At 6,300 s the old attempt has rank 90 and an earlier deadline.
    for (secs, expected) in [(6_299, [2, 1, 0, 3]), (6_300, [1, 2, 0, 3]), (6_600, [0, 2, 1, 3])] {
        for (job, count) in [old, high, higher, batch].into_iter().zip(expected) {
            assert_eq!(ahead(&rig, job, aging, secs).await, count, "{secs}: {job:?}");
        }
    }
}

pub async fn attempts_ahead_are_claimed_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut jobs = Vec::new();
    for n in 0..12_i64 {
        let (priority, since) = ((n * 37 % 101) as u8, n * 1_111 % 7_000);
        jobs.push(wait(&rig, &format!("job {n}"), priority, since).await);
    }
    let mut returned = Vec::new();
    for job in &jobs {
        returned.push((ahead(&rig, *job, Aging::default(), 2 * HOUR).await, job.no.0));
    }
    returned.sort_unstable();
    let claimed = order(&rig, Aging::default(), 2 * HOUR).await;
    assert_eq!(returned, (0..).zip(claimed).collect::<Vec<(u32, i64)>>());
}

async fn given_of_owned(rig: &Rig) -> Vec<Option<u8>> {
    let owned = rig.store.list_owned(rig.node, 10).await.unwrap();
    let keys: Vec<AttemptKey> = owned.iter().map(|one| one.key).collect();
    let mut found = rig.store.find_owned(rig.node, &keys).await.unwrap();
    found.sort_by_key(|one| one.key);
    let mut all = owned.clone();
    all.sort_by_key(|one| one.key);
    assert_eq!(found, all);
    for one in &owned {
        let running = rig.store.find_running(one.key).await.unwrap().unwrap();
        assert_eq!(running.attempt, *one);
    }
    all.iter().map(|one| one.priority.map(Priority::get)).collect()
}

pub async fn a_running_attempt_has_its_own_priority(opened: Opened) {
    let rig = Rig::new(opened).await;
    let ask =
        |number| Trigger { n: 0, priority: Priority::try_from(number).ok(), idle_only: false };
    let regular = rig.add(new_job("regular").priority(7).build()).await;
    rig.start(regular, 60).await;
    let claimed = rig.add(new_job("claimed").priority(7).build()).await;
    rig.trigger_with(claimed, ask(80), 70).await;
    rig.fire_delayed(&rig.delayed(70).await, Begin::Queued, 70).await;
    let held = rig.claim_one(71).await;
    let fused = rig.add(new_job("fused").priority(7).build()).await;
    rig.trigger_with(fused, ask(90), 72).await;
    rig.fire_delayed(&rig.delayed(72).await, Begin::Claimed, 72).await;
    let plain = rig.add(new_job("plain").priority(7).build()).await;
    rig.trigger(plain, 0, 73).await;
    rig.fire_delayed(&rig.delayed(73).await, Begin::Claimed, 73).await;
    assert_eq!(given_of_owned(&rig).await, [None, Some(80), Some(90), None]);
    // A run with its own priority keeps this priority when it is requeued and claimed again.
    let mut back = rig.requeue_of(held, claimed, false).await;
    let priority = Priority::try_from(80).unwrap();
    let place = place_of(&mut back);
    (place.priority, place.is_own_priority) = (priority, true);
    assert!(rig.requeue(back, 80).await);
    rig.claim_one(81).await;
    assert_eq!(given_of_owned(&rig).await, [None, Some(80), Some(90), None]);
}
