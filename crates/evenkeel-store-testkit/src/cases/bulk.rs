//! Batches of the maximum size.

use std::collections::BTreeSet;

use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, Shard, Slot};
use evenkeel_store::{DueJob, FinishResult, FireResult};

use crate::Opened;
use crate::fixtures::{Begin, at, fire_of, new_job, now, queue_entry_of};
use crate::rig::{Held, Known, Rig, claim_of};

async fn many(rig: &Rig, count: usize) -> Vec<Known> {
    rig.add_all((0..count).map(|n| new_job(&format!("job {n}")).build()).collect()).await
}

async fn loaded(rig: &Rig, jobs: &[Known]) -> Vec<DueJob> {
    let numbers: Vec<_> = jobs.iter().map(|job| job.no).collect();
    let mut loaded = rig.store.load_jobs(&numbers).await.unwrap();
    assert_eq!(loaded.len(), jobs.len());
    loaded.sort_by_key(|job| job.no);
    loaded
}

pub async fn ten_thousand_jobs_are_registered_at_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = many(&rig, 10_000).await;
    let expected: BTreeSet<_> = jobs.iter().map(|job| job.no).collect();
    assert_eq!((expected.len(), rig.census().await.jobs), (10_000, 10_000));
    let mut found = BTreeSet::new();
    for shard in Shard::all() {
        let mut after = None;
        loop {
            let page = rig.store.load_due(shard, Slot::of(at(60)), after, 25).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.no);
            assert!(page.iter().all(|job| Shard::of(job.no) == shard && found.insert(job.no)));
        }
    }
    assert_eq!(found, expected);
}

pub async fn a_thousand_jobs_are_fired_and_ended_at_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = many(&rig, 1_000).await;
    let batch: Vec<_> =
        loaded(&rig, &jobs).await.iter().map(|job| fire_of(job, at(60), Begin::Claimed)).collect();
    assert_eq!(rig.fire(batch, 60).await, [FireResult::Fired(Fence(1)); 1_000]);
    let held: Vec<_> = jobs
        .iter()
        .map(|job| Held { key: AttemptKey::regular(job.no, at(60)), fence: Fence(1) })
        .collect();
    let keys: Vec<_> = held.iter().map(|one| one.key).collect();
    assert_eq!(rig.store.find_owned(rig.node, &keys).await.unwrap().len(), 1_000);
    assert_eq!(rig.owned(rig.node).await.len(), 1_000);
    let ends = held.iter().map(|one| rig.success(*one)).collect();
    assert_eq!(rig.finish_all(ends).await, [FinishResult::Done; 1_000]);
    let census = rig.census().await;
    assert_eq!((census.runs, census.running, census.live), (1_000, 0, 0));
}

pub async fn a_thousand_attempts_go_through_the_queue_twice(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = many(&rig, 1_000).await;
    let due = loaded(&rig, &jobs).await;
    let batch = due.iter().map(|job| fire_of(job, at(60), Begin::Queued)).collect();
    rig.fire(batch, 60).await;
    let claimed = rig.store.claim(&claim_of(rig.node, 2_000), now(61)).await.unwrap();
    assert_eq!(claimed.attempts.len(), 1_000);
    let entry = queue_entry_of(&due[0], at(120), at(60));
    let back = claimed
        .attempts
        .iter()
        .map(|attempt| evenkeel_store::Requeue {
            key: attempt.key,
            fence: attempt.fence,
            tenant: attempt.tenant,
            crashed: true,
            then: evenkeel_store::AfterLoss::Queue(entry.clone()),
        })
        .collect();
    let answers = rig.store.requeue(rig.node, back, now(62)).await.unwrap();
    assert_eq!(answers, [true; 1_000]);
    let again = rig.claim(2_000, 63).await;
    assert_eq!(again.len(), 1_000);
    let first = claimed.attempts[0].fence;
    assert!(again.iter().all(|attempt| attempt.fence > first));
    assert_eq!(rig.census().await.ready, 0);
}

pub async fn a_thousand_retries_wait_and_fire(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = many(&rig, 1_000).await;
    let batch =
        loaded(&rig, &jobs).await.iter().map(|job| fire_of(job, at(60), Begin::Claimed)).collect();
    rig.fire(batch, 60).await;
    let ends = jobs
        .iter()
        .map(|job| Held { key: AttemptKey::regular(job.no, at(60)), fence: Fence(1) })
        .map(|held| rig.retry(held, at(90)))
        .collect();
    rig.finish_all(ends).await;
    let delayed = rig.delayed(90).await;
    assert_eq!(delayed.len(), 1_000);
    let fired = rig.fire_delayed(&delayed, Begin::Claimed, 90).await;
    assert_eq!(fired, [FireResult::Fired(Fence(1)); 1_000]);
    let census = rig.census().await;
    assert_eq!((census.delayed, census.running, census.live), (0, 1_000, 1_000));
}
