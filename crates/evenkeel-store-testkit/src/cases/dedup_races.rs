//! Tests concurrent requests for the same deduplication keys, over two handles of the database if
//! the store can be shared.

use evenkeel_core::JobId;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::dedup::Dedup;
use evenkeel_store::{Applied, JobChange, NewJob, Registered, Scope, Triggered};

use super::dedup::{HOUR, PENDING, RETRY, keyed, made, once, with_scope};
use super::races::at_once;
use crate::Opened;
use crate::commands::{Commands, done};
use crate::fixtures::{now, plain_trigger, unnamed_job};
use crate::rig::{OVER, Rig};

/// Concurrent batches have the same keys in different orders, so that wrong locking would cause a
/// deadlock.
pub async fn concurrent_registrations_create_one_job_per_key(opened: Opened) {
    let rig = Rig::new(opened).await;
    let scope: Scope = rig.scope;
    let answers = at_once(&rig, 8, |n, store| async move {
        let mut made = Vec::new();
        for round in 0..4 {
            let mut keys: Vec<usize> = (0..100).map(|k| round * 50 + k).collect();
            match n % 3 {
                0 => {}
                1 => keys.reverse(),
                _ => keys.rotate_left(37),
            }
            let jobs: Vec<NewJob> = keys.iter().map(|key| once(&format!("key {key}"))).collect();
            let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
            let registered = store.register(&scope, jobs, now(1)).await.unwrap();
            for ((key, id), answer) in keys.into_iter().zip(ids).zip(registered) {
                made.push((
                    key,
                    match answer {
                        Registered::Created { .. } => id,
                        Registered::Duplicate(other) => other,
                        Registered::NameTaken(_) => panic!("the job has no name"),
                    },
                ));
            }
        }
        made
    })
    .await;
    let mut all: Vec<(usize, JobId)> = answers.into_iter().flatten().collect();
    all.sort_unstable();
    all.dedup();
    // All concurrent callers got the same job for each deduplication key.
    assert_eq!(all.len(), 250);
    assert_eq!(rig.census().await.jobs, 250);
}

/// Jobs with few different deduplication keys are concurrently registered, triggered, retried and
/// given other keys.
pub async fn concurrent_claims_to_keys_leave_one_pending_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut failed = Vec::new();
    for n in 0..12_i64 {
        let key = format!("key {}", n % 3);
        let job = made(&rig, with_scope(once(&key), HOUR), n * 7200).await;
        // The job is fired late but keeps its scheduled time.
        let held = rig.start(job, n * 7200 + 60).await;
        rig.finish(rig.end(held, Outcome::Failed, OVER)).await;
        let shown = rig.job(job).await;
        let about = evenkeel_core::About {
            dedup: Some(Dedup { key, by_target: false, scope: PENDING }),
            ..shown.about
        };
        let change = JobChange { about: Some(about), ..JobChange::default() };
        done(rig.store.update(&rig.scope, job.id, change, now(n * 7200 + 70)).await.unwrap());
        failed.push(job);
    }
    let scope: Scope = rig.scope;
    let secs = 12 * 7200;
    let begun = at_once(&rig, 24, |n, store| {
        let (job, other) = (failed[n % 12], failed[(n + 5) % 12]);
        async move {
            match n % 4 {
                0 => {
                    let new = (0..3).map(|k| {
                        let key = format!("key {}", (n + k) % 3);
                        keyed(unnamed_job().once_at(secs + 60), &key, PENDING)
                    });
                    let answers = store.register(&scope, new.collect(), now(secs)).await.unwrap();
                    answers.iter().filter(|it| matches!(it, Registered::Created { .. })).count()
                }
                1 => {
                    let asked = store.trigger(&scope, job.id, plain_trigger(0), now(secs)).await;
                    usize::from(matches!(asked.unwrap(), Triggered::Accepted(_)))
                }
                _ => {
                    let orders = [job, other].map(|job| evenkeel_store::JobCommand {
                        id: job.id,
                        if_generation: None,
                        if_fired: None,
                        action: RETRY,
                    });
                    let answers =
                        store.apply_commands(&scope, orders.into(), now(secs)).await.unwrap();
                    answers.iter().filter(|answer| matches!(answer, Applied::Done(_))).count()
                }
            }
        }
    })
    .await;
    // Exactly one job holds each of the three deduplication keys.
    assert_eq!(begun.iter().sum::<usize>(), 3, "{begun:?}");
}
