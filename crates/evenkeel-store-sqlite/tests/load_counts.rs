//! Tests that recounting repairs wrong load counts of jobs.

use std::sync::Arc;

use evenkeel_store_sqlite::{SqliteOptions, SqliteStore};
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::balance::{all_profiles, assert_counted};
use evenkeel_store_testkit::fixtures::new_job;
use evenkeel_store_testkit::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn recounting_repairs_the_load_of_jobs_without_a_next_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Arc::new(SqliteStore::open(SqliteOptions::new(&path)).await.unwrap());
    let rig = Rig::new(Opened { store, guard: Box::new(()), reopen: None }).await;
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
