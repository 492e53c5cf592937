//! Tests stored values that no store method returns, by reading the tables directly.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use evenkeel_core::Progress;
use evenkeel_store::{FinishResult, ProgressNote, Prune, RunStatsDelta};
use evenkeel_store_sqlite::{SqliteOptions, SqliteStore};
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::commands::{Commands, done};
use evenkeel_store_testkit::fixtures::{at, new_job, now};
use evenkeel_store_testkit::rig::Rig;

async fn rig(path: &Path) -> Rig {
    let store = Arc::new(SqliteStore::open(SqliteOptions::new(path)).await.unwrap());
    Rig::new(Opened { store, guard: Box::new(()), reopen: None }).await
}

fn rows(path: &Path, table: &str) -> i64 {
    let raw = rusqlite::Connection::open(path).unwrap();
    raw.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_job_prunes_its_checkpoints_and_keeps_its_attempts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let rig = rig(&path).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let note = ProgressNote {
        key: held.key,
        fence: held.fence,
        progress: Some(Progress::default()),
        log: Some("line".into()),
        checkpoint: Some(vec![1]),
    };
    assert_eq!(rig.store.save_progress(rig.node, vec![note], now(61)).await.unwrap(), [true]);
    // The worker of the attempt was lost, so the node that ends the attempt does not know about the
    // checkpoint.
    assert_eq!(rig.finish(rig.retry(held, at(90))).await, FinishResult::Done);
    let everything = Prune { after: None, limit: 100, keep_per_job: 100, keep_since: at(0) };
    assert_eq!(rig.store.prune(everything).await.unwrap().deleted, 0);
    assert_eq!((rows(&path, "note"), rows(&path, "checkpoint")), (0, 1), "a retry waits");
    let deleted = rig.store.delete(&rig.scope, job.id, now(70)).await.unwrap();
    assert_eq!(done(deleted).running, []);
    assert_eq!(rig.store.prune(everything).await.unwrap().deleted, 0);
    assert_eq!((rows(&path, "note"), rows(&path, "checkpoint")), (0, 0));
    assert_eq!(rows(&path, "attempt"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_of_a_tenant_follow_each_command() {
    use evenkeel_store::Action;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let rig = rig(&path).await;
    let names = ["paused", "cancelled", "deleted", "resumed", "paused, then deleted"];
    let jobs = rig.add_all(names.map(|name| new_job(name).build()).to_vec()).await;
    let resume = Action::Resume { next_at: Some(at(90)) };
    for (job, action) in [
        (0, Action::Pause),
        (1, Action::Cancel),
        (2, Action::Delete),
        (3, Action::Pause),
        (3, resume.clone()),
        (4, Action::Pause),
        (4, Action::Delete),
        // Refused: nothing changes.
        (0, Action::Pause),
        (1, resume),
    ] {
        rig.store.act(&rig.scope, jobs[job].id, action, now(10)).await.unwrap();
    }
    let counts = "tenant WHERE job_count = 3 AND paused = 1 AND cancelled = 1";
    assert_eq!(rows(&path, counts), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retired_node_no_longer_counts_running_attempts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let rig = rig(&path).await;
    let count = async || rows(&path, "run_stats_running");
    let other = rig.join("node-2", 1).await;
    let stats = RunStatsDelta { running: 3, ..RunStatsDelta::none(rig.scope.tenant) };
    for node in [rig.node, other] {
        rig.store.add_run_stats(node, vec![stats], vec![], vec![], at(1)).await.unwrap();
    }
    assert_eq!(count().await, 2);
    assert!(rig.store.retire(rig.node).await.unwrap());
    assert_eq!(count().await, 1);
}
