//! Rows that no verb shows, seen in the file itself.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use evenkeel_core::aging::Aging;
use evenkeel_core::order::Priority;
use evenkeel_core::{JobNo, Progress, Shard, Span, Timestamp};
use evenkeel_store::{FinishResult, ProgressNote, Prune, Registered, RunStatsDelta};
use evenkeel_store_sqlite::{SqliteOptions, SqliteStore};
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::fixtures::{at, new_job, now};
use evenkeel_store_testkit::orders::{Orders, done};
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
async fn what_a_deleted_job_left_is_forgotten_though_its_history_stays() {
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
    // Its worker was lost, and whoever ends it does not know what it said.
    assert_eq!(rig.finish(rig.retry(held, at(90))).await, FinishResult::Done);
    let everything = Prune { after: None, limit: 100, keep_per_job: 100, keep_since: at(0) };
    assert_eq!(rig.store.prune(everything).await.unwrap().forgotten, 0);
    assert_eq!((rows(&path, "note"), rows(&path, "checkpoint")), (0, 1), "a retry waits");
    let deleted = rig.store.delete(&rig.scope, job.id, now(70)).await.unwrap();
    assert_eq!(done(deleted).running, []);
    assert_eq!(rig.store.prune(everything).await.unwrap().forgotten, 0);
    assert_eq!((rows(&path, "note"), rows(&path, "checkpoint")), (0, 0));
    assert_eq!(rows(&path, "run"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_the_first_version_is_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch(include_str!("../migrations/0001_init.sql")).unwrap();
    raw.execute_batch(
        r#"CREATE TABLE schema_migration (
             version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT;
         INSERT INTO schema_migration VALUES (1, 0);
         INSERT INTO tenant (name) VALUES ('before'), ('main');
         INSERT INTO job (id, tenant_no, about, definition, created_at, updated_at)
         VALUES (x'01', 2, '{}', '{}', 5, 5), (x'02', 2, '{}', 'not readable', 5, 5),
                (x'03', 2, '{"metadata":{"a\"b":5,"t":"x","yes":true,"no":null,"l":[1]}}',
                 '{"executor":{"kind":"http"},"lane":"critical"}', 5, 5);
         INSERT INTO job_state (job_no, tenant_no, shard, failures)
         VALUES (1, 2, 1, 0), (2, 2, 2, 3), (3, 2, 3, 0);
         INSERT INTO job (id, tenant_no, about, definition, created_at, updated_at)
         VALUES (x'04', 1, '{}', 'of another', 5, 5);
         INSERT INTO job_state (job_no, tenant_no, shard, failures) VALUES (4, 1, 4, 0);
         INSERT INTO ready (pool, lane, priority, should_start_by, ready_at, scheduled_at, job_no,
                            sequence, attempt, tenant_no)
         VALUES ('default', 1, 30, 99, 5000000000, 60, 1, 0, 0, 2)"#,
    )
    .unwrap();
    drop(raw);
    let rig = rig(&path).await;
    assert_eq!(rig.scope.tenant.0, 2, "what was there is there");
    assert_eq!((rows(&path, "note"), rows(&path, "letter")), (0, 0));
    let [job] = &rig.store.load_jobs(&[JobNo(1)]).await.unwrap()[..] else { panic!("it is there") };
    assert_eq!((job.fired, job.since.as_micros()), (0, 5));
    assert_eq!(rows(&path, "job WHERE executor = 'http' AND lane = 0"), 1);
    let labels = r#"job_label WHERE job_no = 3
                    AND (key, value) IN (VALUES ('a"b', '5'), ('t', 'x'), ('yes', 'true'))"#;
    assert_eq!((rows(&path, labels), rows(&path, "job_label")), (3, 3));
    // The one that had failed is looked at.
    let shards: Vec<Shard> = Shard::all().collect();
    let watched = rig.store.to_judge(&shards, 10, now(0)).await.unwrap().jobs;
    assert_eq!(watched.iter().map(|job| job.no).collect::<Vec<_>>(), [JobNo(2)]);
    // Numbers are counted for each tenant, and go on.
    let numbered = "job WHERE (job_no, number) IN (VALUES (1, 1), (2, 2), (3, 3), (4, 1))";
    assert_eq!(rows(&path, numbered), 4);
    let added = rig.register(vec![new_job("later").build()]).await;
    assert!(matches!(added[..], [Registered::Created { number: 4, .. }]), "{added:?}");
    // What waits rises as if it had come now.
    let priority = Priority::try_from(30).unwrap();
    let rise = Aging::default().rise(priority, Timestamp::from_micros(5_000_000_000)).0;
    assert_eq!(rows(&path, &format!("ready WHERE rise = {rise}")), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_counts_follow_each_order() {
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
        // Refused, so that nothing changes.
        (0, Action::Pause),
        (1, resume),
    ] {
        rig.store.act(&rig.scope, jobs[job].id, action, now(10)).await.unwrap();
    }
    let counts = "tenant WHERE job_count = 3 AND paused = 1 AND cancelled = 1";
    assert_eq!(rows(&path, counts), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_said_that_runs_is_forgotten_when_it_retires() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let rig = rig(&path).await;
    let count = async || rows(&path, "tally_running");
    let stays = rig.join("node-2", 1).await;
    let tally = RunStatsDelta {
        tenant: rig.scope.tenant,
        completed: 0,
        failed: 0,
        timed_out: 0,
        cancelled: 0,
        retries: 0,
        stolen: 0,
        good_duration: Span::ZERO,
        running: 3,
    };
    for node in [rig.node, stays] {
        rig.store.add_run_stats(node, vec![tally], vec![], at(1)).await.unwrap();
    }
    assert_eq!(count().await, 2);
    assert!(rig.store.retire(rig.node).await.unwrap());
    assert_eq!(count().await, 1);
}
