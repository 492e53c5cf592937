//! Jobs whose load is not counted, or is counted wrongly.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use evenkeel_core::Span;
use evenkeel_store::{Action, JobChange, Moved};
use evenkeel_store_sqlite::{SqliteOptions, SqliteStore};
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::balance::{
    all_placements, all_profiles, assert_counted, batch_of, begin_one, move_to,
};
use evenkeel_store_testkit::commands::{Commands, done};
use evenkeel_store_testkit::fixtures::{at, new_job, now};
use evenkeel_store_testkit::rig::{Known, Rig};

/// Makes the jobs look as if their load had never been counted.
fn forget_load(path: &Path) {
    let raw = rusqlite::Connection::open(path).unwrap();
    raw.execute_batch(
        "DELETE FROM load_profile;
         UPDATE job_state SET load_profile = NULL, cost_us = 0, cost_stated = 0, average_us = 7000000",
    )
    .unwrap();
}

async fn open(path: &Path) -> Rig {
    let store = Arc::new(SqliteStore::open(SqliteOptions::new(path)).await.unwrap());
    Rig::new(Opened { store, guard: Box::new(()), reopen: None }).await
}

async fn count_all(rig: &Rig) -> u32 {
    let mut found = 0;
    loop {
        match rig.store.count_uncounted(2).await.unwrap() {
            0 => return found,
            some => found += some,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uncounted_jobs_are_counted_a_few_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let rig = open(&path).await;
    let every_hour = |n: i64| new_job(&format!("{n}")).every(3600).first_at(900 * n).build();
    let mut jobs: Vec<_> = (0..5).map(every_hour).collect();
    let mut stated = new_job("stated").build();
    stated.definition.cost = Some(Span::from_secs(3));
    jobs.extend([stated, new_job("paused").build()]);
    let jobs = rig.add_all(jobs).await;
    done(rig.store.act(&rig.scope, jobs[6].id, Action::Pause, now(1)).await.unwrap());
    forget_load(&path);
    assert_eq!(all_profiles(&*rig.store).await, []);
    let placements = all_placements(&*rig.store, &rig.scope).await;
    assert!(placements.iter().all(|placement| placement.profile.is_none()));
    assert_eq!(placements.len(), 6);
    assert_eq!(rig.store.count_uncounted(3).await.unwrap(), 3);
    assert_eq!(all_profiles(&*rig.store).await.iter().map(|one| one.jobs).sum::<u64>(), 3);
    assert_eq!(count_all(&rig).await, 4);
    assert_counted(&*rig.store, &[rig.scope]).await;
    assert_eq!(all_profiles(&*rig.store).await.iter().map(|one| one.jobs).sum::<u64>(), 6);
    let placements = all_placements(&*rig.store, &rig.scope).await;
    assert_eq!(placements[0].cost, Span::from_secs(7), "the average duration of its runs");
    assert_eq!(count_all(&rig).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_uncounted_jobs_are_counted_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let rig = open(&path).await;
    let job = |name| new_job(name).every(3600).first_at(3600).build();
    let names = ["paused", "changed", "deleted", "moved", "fired", "unchanged"];
    let jobs = rig.add_all(names.map(job).to_vec()).await;
    let once = rig.add(new_job("once").once_at(3600).build()).await;
    forget_load(&path);
    let act = async |job: Known, action| {
        done(rig.store.act(&rig.scope, job.id, action, now(1)).await.unwrap());
    };
    act(jobs[0], Action::Pause).await;
    let changed = Some(new_job("").every(900).build().definition);
    let changed = JobChange { definition: changed, ..JobChange::default() };
    act(jobs[1], Action::Change(Box::new(changed))).await;
    act(jobs[2], Action::Delete).await;
    let rebalance = begin_one(&rig, 1, 1).await;
    let moves = vec![move_to(&rig.job(jobs[3]).await, at(5400))];
    let moved = rig.store.move_jobs(&rig.scope, batch_of(rebalance, 0, moves), now(1)).await;
    assert_eq!(moved.unwrap(), Moved::Done(vec![true]));
    rig.run_successfully(jobs[4], 3600).await;
    rig.run_successfully(once, 3600).await;
    // The moved, the fired and the unchanged job; a command counts the job that it changes.
    assert_eq!(count_all(&rig).await, 3);
    assert_counted(&*rig.store, &[rig.scope]).await;
    assert_eq!(all_profiles(&*rig.store).await.iter().map(|one| one.jobs).sum::<u64>(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn recounting_repairs_the_load_of_jobs_without_a_next_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let rig = open(&path).await;
    let new = |name, secs| new_job(name).every(secs).build();
    let jobs = vec![new("hourly", 3600), new("stays", 3600), new("daily", 86_400)];
    let jobs = rig.add_all(jobs).await;
    let raw = rusqlite::Connection::open(&path).unwrap();
    let spoil = "UPDATE job_state SET next_at = NULL, slot = NULL WHERE job_no IN (?1, ?2)";
    assert_eq!(raw.execute(spoil, [jobs[0].no.0, jobs[2].no.0]).unwrap(), 2);
    assert_eq!(rig.store.recount_load(None, 10).await.unwrap().changed, 2);
    assert_counted(&*rig.store, &[rig.scope]).await;
    let left: Vec<u64> = all_profiles(&*rig.store).await.iter().map(|one| one.jobs).collect();
    assert_eq!(left, [1]);
    assert_eq!(rig.store.recount_load(None, 10).await.unwrap().changed, 0);
}
