//! Tests concurrent calls, over two handles of the database if the store can be shared.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_core::attempt::Outcome;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{AttemptKey, Shard};
use evenkeel_store::{Applied, FinishResult, FireResult, JobChange, Registered, Store, Triggered};
use futures::future::join_all;

use crate::Opened;
use crate::commands::{Commands, done};
use crate::fixtures::{Begin, at, fire_of, new_job, now, plain_trigger};
use crate::rig::{ALPHA, Known, OVER, Rig, claim_of, delayed_fire_of};

/// Runs `count` tasks concurrently, each with one of two store handles, and returns their results
/// in order.
pub(super) async fn at_once<T, F>(
    rig: &Rig,
    count: usize,
    task: impl Fn(usize, Arc<dyn Store>) -> F,
) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let handles = [Arc::clone(&rig.store), rig.second().await];
    let tasks: Vec<_> = (0..count)
        .map(|n| tokio::spawn(task(n, Arc::clone(&handles[n % handles.len()]))))
        .collect();
    join_all(tasks).await.into_iter().map(|done| done.expect("no task panics")).collect()
}

pub(super) async fn jobs(rig: &Rig, count: usize, overlap: OverlapPolicy) -> Vec<Known> {
    let new = |n| new_job(&format!("job {n}")).overlap(overlap).build();
    rig.add_all((0..count).map(new).collect()).await
}

pub async fn each_job_is_fired_once_by_concurrent_schedulers(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, 100, OverlapPolicy::Allow).await;
    let nodes = [rig.node, rig.join("node-2", 0).await];
    let mut batch = Vec::new();
    for job in &jobs {
        batch.push(fire_of(&rig.due(*job).await, at(60), Begin::Claimed));
    }
    let answers = at_once(&rig, 4, |n, store| {
        let (node, mut batch) = (nodes[n % 2], batch.clone());
        // Some tasks process the batch in reverse order, so that wrong locking would cause a
        // deadlock.
        if n >= 2 {
            batch.reverse();
        }
        async move {
            let mut results = store.fire(node, batch, now(60)).await.unwrap().results;
            if n >= 2 {
                results.reverse();
            }
            results
        }
    })
    .await;
    for place in 0..jobs.len() {
        let fired = answers.iter().filter(|one| matches!(one[place], FireResult::Fired(_)));
        assert_eq!(fired.count(), 1, "job {place}");
    }
    let census = rig.census().await;
    assert_eq!((census.runs, census.running, census.live), (100, 100, 100));
}

pub async fn no_attempt_is_given_to_two_workers(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, 100, OverlapPolicy::Skip).await;
    let mut batch = Vec::new();
    for job in &jobs {
        batch.push(fire_of(&rig.due(*job).await, at(60), Begin::Queued));
    }
    rig.fire(batch, 60).await;
    let nodes = [rig.node, rig.join("node-2", 0).await];
    let mut given: Vec<AttemptKey> = at_once(&rig, 4, |n, store| {
        let claim = claim_of(nodes[n % 2], 7);
        async move {
            let mut got = Vec::new();
            for _ in 0..4 {
                got.extend(store.claim(&claim, now(61)).await.unwrap().attempts);
            }
            got
        }
    })
    .await
    .into_iter()
    .flatten()
    .map(|attempt| attempt.key)
    .collect();
    given.extend(rig.claim(100, 62).await.iter().map(|attempt| attempt.key));
    given.sort_unstable();
    let count = given.len();
    given.dedup();
    assert_eq!((count, given.len()), (100, 100));
    let census = rig.census().await;
    assert_eq!((census.ready, census.running), (0, 100));
}

pub async fn of_concurrent_triggers_one_is_accepted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let scope = rig.scope;
    let answers = at_once(&rig, 8, |n, store| async move {
        store.trigger(&scope, job.id, plain_trigger(n as u32), now(10)).await.unwrap()
    })
    .await;
    let accepted = answers.iter().filter(|one| matches!(one, Triggered::Accepted(_)));
    assert_eq!(accepted.count(), 1, "{answers:?}");
    assert_eq!(rig.census().await.delayed, 1);
    assert_eq!(rig.job(job).await.live, 1);
}

pub async fn concurrent_triggers_that_may_overlap_get_different_keys(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let scope = rig.scope;
    let mut answers = at_once(&rig, 8, |_, store| async move {
        match store.trigger(&scope, job.id, plain_trigger(0), now(10)).await.unwrap() {
            Triggered::Accepted(key) => key,
            other => panic!("{other:?}"),
        }
    })
    .await;
    answers.sort_unstable();
    answers.dedup();
    assert_eq!(answers.len(), 8);
    assert_eq!(rig.job(job).await.live, 8);
}

pub async fn a_trigger_and_a_regular_time_do_not_overlap(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..10 {
        let job = rig.add(new_job(&format!("job {n}")).build()).await;
        let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
        let (scope, node) = (rig.scope, rig.node);
        let begun = at_once(&rig, 2, |n, store| {
            let batch = vec![fire.clone()];
            async move {
                if n == 0 {
                    let fired = store.fire(node, batch, now(60)).await.unwrap();
                    matches!(fired.results[..], [FireResult::Fired(_)])
                } else {
                    let asked =
                        store.trigger(&scope, job.id, plain_trigger(0), now(60)).await.unwrap();
                    matches!(asked, Triggered::Accepted(_))
                }
            }
        })
        .await;
        assert_eq!(begun.iter().filter(|begun| **begun).count(), 1, "{begun:?}");
        assert_eq!(rig.job(job).await.live, 1);
    }
}

pub async fn a_deletion_and_a_fire_agree_on_what_runs(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (n, job) in jobs(&rig, 20, OverlapPolicy::Skip).await.into_iter().enumerate() {
        let begin = if n % 2 == 0 { Begin::Claimed } else { Begin::Queued };
        let fire = fire_of(&rig.due(job).await, at(60), begin);
        let (scope, node) = (rig.scope, rig.node);
        let answers = at_once(&rig, 2, |n, store| {
            let batch = vec![fire.clone()];
            async move {
                if n == 0 {
                    let fired = store.fire(node, batch, now(60)).await.unwrap().results;
                    matches!(fired[..], [FireResult::Fired(_)])
                } else {
                    let deleted = store.delete(&scope, job.id, now(60)).await.unwrap();
                    !done(deleted).running.is_empty()
                }
            }
        })
        .await;
        let runs = answers[0] && begin == Begin::Claimed;
        assert_eq!(answers[1], runs, "the deletion returns the running attempts");
        assert_eq!(rig.claim(9, 61).await, []);
    }
    let census = rig.census().await;
    assert_eq!((census.ready, census.delayed, census.jobs), (0, 0, 0));
    assert_eq!(census.live, census.running);
}

pub async fn a_deletion_and_a_trigger_leave_nothing_to_start(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (place, job) in jobs(&rig, 40, OverlapPolicy::Allow).await.into_iter().enumerate() {
        let scope = rig.scope;
        at_once(&rig, 2, |n, store| async move {
            if n == 0 {
                // The number of reads before the first trigger varies, so that the deletion happens
                // at a different moment in each iteration.
                for _ in 0..place % 10 {
                    store.get(&scope, job.id).await.unwrap();
                }
                for number in 0..10 {
                    let asked = store
                        .trigger(&scope, job.id, plain_trigger(number), now(70))
                        .await
                        .unwrap();
                    assert!(matches!(asked, Triggered::Accepted(_) | Triggered::NotFound));
                }
            } else {
                let deleted = store.delete(&scope, job.id, now(70)).await.unwrap();
                assert_eq!(done(deleted).running, []);
            }
        })
        .await;
    }
    let census = rig.census().await;
    assert_eq!((census.delayed, census.ready, census.live), (0, 0, 0));
}

pub async fn of_a_concurrent_end_and_requeue_one_wins(opened: Opened) {
    let rig = Rig::new(opened).await;
    for job in jobs(&rig, 20, OverlapPolicy::Skip).await {
        let held = rig.start(job, 60).await;
        let (end, back) = (rig.success(held), rig.requeue_of(held, job, true).await);
        let node = rig.node;
        let won = at_once(&rig, 2, |n, store| {
            let (end, back) = (end.clone(), back.clone());
            async move {
                if n == 0 {
                    store.finish(node, vec![end], ALPHA).await.unwrap() == [FinishResult::Done]
                } else {
                    store.requeue(node, vec![back], now(70)).await.unwrap()[0]
                }
            }
        })
        .await;
        assert!(won[0] != won[1], "{won:?}");
        let live = rig.job(job).await.live;
        assert_eq!(live, u32::from(won[1]));
    }
    let census = rig.census().await;
    assert_eq!((census.running, census.ready), (0, census.live));
}

pub async fn of_two_concurrent_ends_one_counts(opened: Opened) {
    let rig = Rig::new(opened).await;
    for job in jobs(&rig, 20, OverlapPolicy::Skip).await {
        let held = rig.start(job, 60).await;
        let end = rig.retry(held, at(90));
        let node = rig.node;
        let answers = at_once(&rig, 2, |_, store| {
            let batch = vec![end.clone()];
            async move { store.finish(node, batch, ALPHA).await.unwrap()[0] }
        })
        .await;
        assert!(
            answers.contains(&FinishResult::Done) && answers.contains(&FinishResult::AlreadyDone)
        );
        assert_eq!(rig.job(job).await.history.consecutive_failures, 1);
    }
    assert_eq!(rig.census().await.delayed, 20);
}

pub async fn concurrent_ends_of_one_job_are_all_counted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let mut ends = Vec::new();
    for n in 1..=8 {
        let held = rig.start(job, n * 60).await;
        ends.push(rig.end(held, Outcome::Failed, OVER));
    }
    let node = rig.node;
    let answers = at_once(&rig, 8, |n, store| {
        let batch = vec![ends[n].clone()];
        async move { store.finish(node, batch, ALPHA).await.unwrap()[0] }
    })
    .await;
    assert_eq!(answers, [FinishResult::Done; 8]);
    let after = rig.job(job).await;
    assert_eq!((after.live, after.history.consecutive_failures), (0, 8));
}

pub async fn a_delayed_attempt_is_fired_by_one_node(opened: Opened) {
    let rig = Rig::new(opened).await;
    for job in jobs(&rig, 20, OverlapPolicy::Skip).await {
        rig.trigger(job, 0, 10).await;
    }
    let returned = rig.delayed(10).await;
    let nodes = [rig.node, rig.join("node-2", 0).await];
    let answers = at_once(&rig, 4, |n, store| {
        let batch: Vec<_> =
            returned.iter().map(|delayed| delayed_fire_of(delayed, Begin::Claimed)).collect();
        let node = nodes[n % 2];
        async move { store.fire_delayed(node, batch, now(11)).await.unwrap().results }
    })
    .await;
    for place in 0..returned.len() {
        let fired = answers.iter().filter(|one| matches!(one[place], FireResult::Fired(_)));
        assert_eq!(fired.count(), 1);
    }
    assert_eq!(rig.census().await.running, 20);
}

pub async fn a_changed_job_is_returned_to_one_scheduler(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, 50, OverlapPolicy::Skip).await;
    let answers = at_once(&rig, 4, |_, store| async move {
        let shards: Vec<Shard> = Shard::all().collect();
        store.look_ahead(&shards, at(1), 100, now(1)).await.unwrap().changed
    })
    .await;
    let mut returned = BTreeMap::new();
    let rest = rig.look(2, 100).await.changed;
    for job in answers.into_iter().flatten().chain(rest) {
        *returned.entry(job.no).or_insert(0) += 1;
    }
    assert_eq!(returned.len(), jobs.len());
    assert!(returned.values().all(|times| *times == 1), "returned twice");
}

pub async fn a_concurrent_change_and_fire_are_serialized(opened: Opened) {
    let rig = Rig::new(opened).await;
    for job in jobs(&rig, 10, OverlapPolicy::Skip).await {
        let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
        let (scope, node) = (rig.scope, rig.node);
        let answers = at_once(&rig, 2, |n, store| {
            let batch = vec![fire.clone()];
            async move {
                if n == 0 {
                    let fired = store.fire(node, batch, now(60)).await.unwrap().results;
                    matches!(fired[..], [FireResult::Fired(_)])
                } else {
                    let changed = store.update(&scope, job.id, JobChange::default(), now(60)).await;
                    matches!(changed.unwrap(), Applied::Done(_))
                }
            }
        })
        .await;
        assert!(answers[1]);
        let after = rig.job(job).await;
        let next_at = if answers[0] { at(120) } else { at(60) };
        assert_eq!((after.generation, after.next_at), (2, Some(next_at)));
    }
}

pub async fn concurrent_registrations_of_one_name_create_one_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    let scope = rig.scope;
    let answers = at_once(&rig, 6, |n, store| async move {
        let own = new_job(&format!("own {n}")).build();
        let batch = vec![new_job("shared").build(), own];
        store.register(&scope, batch, now(0)).await.unwrap()
    })
    .await;
    let created = |answer: &Registered| matches!(answer, Registered::Created { .. });
    assert_eq!(answers.iter().filter(|one| created(&one[0])).count(), 1);
    assert!(answers.iter().all(|one| created(&one[1])));
    assert_eq!(rig.census().await.jobs, 7);
}

pub async fn concurrent_readers_of_a_setting_get_one_value(opened: Opened) {
    let rig = Rig::new(opened).await;
    let values = at_once(&rig, 8, |n, store| async move {
        store.setting("colour", &format!("colour {n}")).await.unwrap()
    })
    .await;
    assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
    let tenants =
        at_once(&rig, 8, |_, store| async move { store.tenant("new").await.unwrap() }).await;
    assert!(tenants.iter().all(|tenant| *tenant == tenants[0]), "{tenants:?}");
}
