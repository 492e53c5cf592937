//! Checkpoints.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{NodeNo, Span};
use evenkeel_store::{
    Attachments, CheckpointDisposition, ClaimedAttempt, Finish, FinishResult, ProgressNote, Prune,
};

use super::progress::{note, note_for, silence, traceless};
use super::races::{at_once, jobs};
use crate::Opened;
use crate::fixtures::{Begin, at, new_job, now};
use crate::rig::{ALPHA, Held, Known, OVER, Rig, next_attempt};

fn saves(held: Held, data: &[u8]) -> ProgressNote {
    ProgressNote { checkpoint: Some(data.to_vec()), ..silence(held) }
}

fn with(finish: Finish, checkpoint: CheckpointDisposition) -> Finish {
    Finish { attachments: Attachments { has_notes: false, checkpoint }, ..finish }
}

/// Starts a job and saves a checkpoint.
async fn saved(rig: &Rig, name: &str, data: &[u8]) -> (Known, Held) {
    let job = rig.add(new_job(name).build()).await;
    let held = rig.start(job, 60).await;
    assert!(note(rig, saves(held, data)).await);
    (job, held)
}

/// Queues the only waiting retry and claims it.
async fn claim_wake(rig: &Rig) -> (bool, ClaimedAttempt) {
    let delayed = rig.delayed(900).await;
    assert_eq!(delayed.len(), 1);
    rig.fire_delayed(&delayed, Begin::Queued, 900).await;
    (delayed[0].has_checkpoint, claim(rig, rig.node).await)
}

async fn claim(rig: &Rig, node: NodeNo) -> ClaimedAttempt {
    let mut claimed = rig.claim_for(node, 9, 901).await;
    assert_eq!(claimed.len(), 1);
    claimed.remove(0)
}

pub async fn a_checkpoint_reaches_the_next_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let data: Vec<u8> = (0..=255).collect();
    let (_, held) = saved(&rig, "crawl", &data).await;
    assert_eq!(rig.finish(rig.retry(held, at(90))).await, FinishResult::Done);
    let (returned, second) = claim_wake(&rig).await;
    assert_eq!((returned, second.key), (true, next_attempt(held.key)));
    assert_eq!(second.checkpoint, Some(data.clone()));
    // The third attempt also gets the checkpoint of the first attempt, unless the second attempt
    // saves another checkpoint.
    let second = Held { key: second.key, fence: second.fence };
    assert_eq!(rig.finish(rig.retry(second, at(90))).await, FinishResult::Done);
    assert_eq!(claim_wake(&rig).await.1.checkpoint, Some(data));
}

pub async fn a_checkpoint_reaches_a_requeued_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, held) = saved(&rig, "crawl", b"half").await;
    assert!(rig.requeue(rig.requeue_of(held, job, false).await, 70).await);
    assert!(!note(&rig, saves(held, b"stale")).await);
    let again = claim(&rig, rig.node).await;
    assert_eq!((again.key, again.checkpoint), (held.key, Some(b"half".to_vec())));
}

pub async fn a_checkpoint_reaches_the_next_node_after_a_steal(opened: Opened) {
    let rig = Rig::new(opened).await;
    let heir = rig.join("node-2", 1).await;
    let (job, held) = saved(&rig, "crawl", b"half").await;
    let secs = Span::from_secs;
    assert!(rig.store.begin_steal(rig.node, secs(6), now(70)).await.unwrap());
    assert!(rig.store.steal(rig.node, at(70), secs(4), now(80)).await.unwrap());
    assert!(rig.requeue(rig.requeue_of(held, job, true).await, 81).await);
    assert!(!note(&rig, saves(held, b"late")).await);
    let again = claim(&rig, heir).await;
    assert_eq!((again.key, again.checkpoint), (held.key, Some(b"half".to_vec())));
}

pub async fn the_last_checkpoint_counts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (_, held) = saved(&rig, "crawl", b"first").await;
    assert!(note(&rig, saves(held, b"second")).await);
    assert!(note(&rig, silence(held)).await);
    rig.finish(rig.retry(held, at(90))).await;
    let (_, second) = claim_wake(&rig).await;
    assert_eq!(second.checkpoint.as_deref(), Some(&b"second"[..]));
    let second = Held { key: second.key, fence: second.fence };
    let end = with(rig.retry(second, at(90)), CheckpointDisposition::Replace(b"third".to_vec()));
    assert_eq!(rig.finish(end).await, FinishResult::Done);
    assert_eq!(claim_wake(&rig).await.1.checkpoint.as_deref(), Some(&b"third"[..]));
}

pub async fn an_end_may_save_the_first_checkpoint(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let end = with(rig.retry(held, at(90)), CheckpointDisposition::Replace(Vec::new()));
    assert_eq!(rig.finish(end).await, FinishResult::Done);
    let (returned, second) = claim_wake(&rig).await;
    assert_eq!((returned, second.checkpoint), (true, Some(Vec::new())), "an empty list is no gap");
}

pub async fn an_end_may_delete_the_checkpoint(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (_, held) = saved(&rig, "crawl", b"half").await;
    let end = with(rig.retry(held, at(90)), CheckpointDisposition::Delete);
    assert_eq!(rig.finish(end).await, FinishResult::Done);
    let (returned, second) = claim_wake(&rig).await;
    assert_eq!((returned, second.checkpoint), (false, None));
}

pub async fn a_checkpoint_belongs_to_its_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    let allow = new_job("crawl").overlap(OverlapPolicy::Allow).build();
    let (job, other) = (rig.add(allow).await, rig.add(new_job("other").build()).await);
    let first = rig.start(job, 60).await;
    assert!(note(&rig, saves(first, b"half")).await);
    rig.finish(rig.retry(first, at(130))).await;
    for held in [rig.start(job, 120).await, rig.start(other, 60).await] {
        rig.finish(rig.retry(held, at(130))).await;
    }
    rig.trigger(job, 0, 130).await;
    let returned: Vec<_> = rig.delayed(200).await;
    assert_eq!(returned.len(), 4);
    for delayed in returned {
        assert_eq!(
            delayed.has_checkpoint,
            delayed.key == next_attempt(first.key),
            "{:?}",
            delayed.key
        );
    }
}

pub async fn a_refused_end_does_not_change_the_checkpoint(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (_, held) = saved(&rig, "crawl", b"half").await;
    let stale = Held { fence: held.fence.next(), ..held };
    for fate in [CheckpointDisposition::Delete, CheckpointDisposition::Replace(b"stale".to_vec())] {
        let end = with(rig.retry(stale, at(90)), fate.clone());
        assert_eq!(rig.finish(end).await, FinishResult::LeaseLost);
    }
    rig.finish(rig.retry(held, at(90))).await;
    for fate in [CheckpointDisposition::Delete, CheckpointDisposition::Replace(b"twice".to_vec())] {
        let end = with(rig.retry(held, at(90)), fate.clone());
        assert_eq!(rig.finish(end).await, FinishResult::AlreadyDone);
    }
    assert_eq!(claim_wake(&rig).await.1.checkpoint.as_deref(), Some(&b"half"[..]));
}

pub async fn ends_with_and_without_attachments_share_a_batch(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["plain", "kept", "deleted", "saved", "stale"];
    let mut held = Vec::new();
    for name in names {
        held.push(saved(&rig, name, name.as_bytes()).await.1);
    }
    held[4].fence = held[4].fence.next();
    let retry = |n: usize| rig.retry(held[n], at(90));
    let batch = vec![
        with(retry(3), CheckpointDisposition::Replace(b"anew".to_vec())),
        rig.success(held[0]),
        with(retry(4), CheckpointDisposition::Delete),
        traceless(retry(2)),
        retry(1),
    ];
    let mut expected = [FinishResult::Done; 5];
    expected[2] = FinishResult::LeaseLost;
    assert_eq!(rig.finish_all(batch).await, expected);
    let delayed = rig.delayed(90).await;
    rig.fire_delayed(&delayed, Begin::Queued, 90).await;
    let mut found: Vec<_> =
        rig.claim(9, 91).await.into_iter().map(|one| (one.key.job_no, one.checkpoint)).collect();
    found.sort();
    let expected = [(1, Some(b"kept".to_vec())), (2, None), (3, Some(b"anew".to_vec()))];
    assert_eq!(found, expected.map(|(n, data)| (held[n].key.job_no, data)));
}

pub async fn one_job_may_end_several_times_in_a_batch_with_attachments(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let mut batch = Vec::new();
    for n in 1..=3_u8 {
        let held = rig.start(job, i64::from(n) * 60).await;
        assert!(note(&rig, saves(held, &[n])).await);
        let fate = if n == 2 {
            CheckpointDisposition::Delete
        } else {
            CheckpointDisposition::Replace(vec![n; 2])
        };
        batch.push(with(rig.retry(held, at(200)), fate));
    }
    assert_eq!(rig.finish_all(batch).await, [FinishResult::Done; 3]);
    rig.fire_delayed(&rig.delayed(200).await, Begin::Queued, 200).await;
    let mut claimed = rig.claim(9, 201).await;
    claimed.sort_by_key(|one| one.key);
    let found: Vec<_> = claimed.into_iter().map(|one| one.checkpoint).collect();
    assert_eq!(found, [Some(vec![1, 1]), None, Some(vec![3, 3])]);
}

pub async fn pruning_keeps_the_checkpoint_of_an_active_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let held = rig.start(job, 60).await;
    assert!(note(&rig, saves(held, b"half")).await);
    rig.finish(rig.retry(held, at(900))).await;
    // After a later run has failed, the first attempt of the waiting run is no longer the job's
    // last failure and may be pruned.
    let later = rig.start(job, 120).await;
    rig.finish(rig.end(later, Outcome::Failed, OVER)).await;
    let prune = async || {
        let step = Prune { after: None, limit: 100, keep_per_job: 0, keep_since: at(9_000) };
        rig.store.prune(step).await.unwrap().deleted
    };
    assert_eq!(prune().await, 1);
    let (returned, second) = claim_wake(&rig).await;
    assert_eq!((returned, second.checkpoint.as_deref()), (true, Some(&b"half"[..])));
    assert_eq!(prune().await, 0);
    let second = Held { key: second.key, fence: second.fence };
    assert!(rig.requeue(rig.requeue_of(second, job, false).await, 902).await);
    assert_eq!(prune().await, 0);
    assert_eq!(claim(&rig, rig.node).await.checkpoint.as_deref(), Some(&b"half"[..]));
}

/// If the checkpoint is saved first, the later result deletes the checkpoint. If the result is
/// stored first, the store rejects the checkpoint.
pub async fn a_concurrent_end_wins_over_a_note(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, 40, OverlapPolicy::Skip).await;
    let mut held = Vec::new();
    for job in &jobs {
        held.push(rig.start(*job, 60).await);
    }
    let ends: Vec<Finish> = held.iter().map(|one| traceless(rig.retry(*one, at(90)))).collect();
    let node = rig.node;
    at_once(&rig, held.len() * 4, |n, store| {
        let one = held[n / 4];
        let end = ends[n / 4].clone();
        async move {
            match n % 4 {
                2 => {
                    let done = store.finish(node, vec![end], ALPHA).await.unwrap();
                    assert_eq!(done, [FinishResult::Done]);
                }
                _ => {
                    store.save_progress(node, vec![saves(one, b"half")], now(62)).await.unwrap();
                }
            }
        }
    })
    .await;
    let delayed = rig.delayed(90).await;
    assert_eq!(delayed.len(), held.len());
    assert!(
        delayed.iter().all(|delayed| !delayed.has_checkpoint),
        "a finished attempt saved a checkpoint"
    );
    assert_eq!(note_for(&rig, node, vec![saves(held[0], b"late")]).await, [false]);
}
