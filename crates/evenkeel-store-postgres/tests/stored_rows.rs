//! Tests stored values that no store method returns, by reading the tables directly.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use evenkeel_core::Progress;
use evenkeel_core::dedup::{Dedup, DedupScope};
use evenkeel_store::{FinishResult, ProgressNote, Prune, RunStatsDelta};
use evenkeel_store_postgres::{PostgresOptions, PostgresStore};
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::commands::{Commands, done};
use evenkeel_store_testkit::fixtures::{at, new_job, now};
use evenkeel_store_testkit::rig::Rig;

async fn rig(store: PostgresStore) -> Rig {
    Rig::new(Opened { store: Arc::new(store), guard: Box::new(()), reopen: None }).await
}

async fn rows(options: &PostgresOptions, table: &str) -> i64 {
    let schema = options.schema.as_deref().unwrap();
    let observer = common::observer(&options.url).await;
    let sql = format!("SELECT count(*) FROM {schema}.{table}");
    observer.query_one(&sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_and_checkpoints_of_a_deleted_job_are_pruned_before_its_history() {
    let (store, options) = common::open().await;
    let rig = rig(store).await;
    let count = async |table| rows(&options, table).await;
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
    // The worker was lost, so the node that ends the attempt does not know about the attempt's
    // notes.
    assert_eq!(rig.finish(rig.retry(held, at(90))).await, FinishResult::Done);
    let everything = Prune { after: None, limit: 100, keep_per_job: 100, keep_since: at(0) };
    assert_eq!(rig.store.prune(everything).await.unwrap().deleted, 0);
    assert_eq!((count("note").await, count("checkpoint").await), (0, 1), "a retry waits");
    let deleted = rig.store.delete(&rig.scope, job.id, now(70)).await.unwrap();
    assert_eq!(done(deleted).running, []);
    assert_eq!(rig.store.prune(everything).await.unwrap().deleted, 0);
    assert_eq!((count("note").await, count("checkpoint").await), (0, 0));
    assert_eq!(count("attempt").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_job_that_is_being_given_a_time_stays() {
    let (store, options) = common::open().await;
    let rig = rig(store).await;
    let mut job = new_job("crawl").once_at(60).build();
    job.about.dedup = Some(Dedup { key: "a".into(), by_target: false, scope: DedupScope::Pending });
    let job = rig.add(job).await;
    rig.run_successfully(job, 60).await;
    let prune = async || rig.store.prune_dedup(at(1_000), None, 10).await.unwrap().deleted;
    let schema = options.schema.as_deref().unwrap();
    let changer = common::observer(&options.url).await;
    let change = async |next_at: &str| {
        let set = format!("UPDATE {schema}.job_state SET next_at = {next_at}");
        changer.batch_execute(&set).await.unwrap();
    };
    changer.batch_execute("BEGIN").await.unwrap();
    change("5000000").await;
    // Pruning does not see the uncommitted change, but it finds the row locked.
    assert_eq!(prune().await, 0);
    changer.batch_execute("COMMIT").await.unwrap();
    assert_eq!((prune().await, rows(&options, "dedup_key").await), (0, 1));
    change("NULL").await;
    assert_eq!((prune().await, rows(&options, "dedup_key").await), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_index_holds_a_column_that_firing_writes_except_the_slot() {
    let (_store, options) = common::open().await;
    let observer = common::observer(&options.url).await;
    // Selects the columns of all indexes and of the conditions of partial indexes.
    let sql = "SELECT DISTINCT a.attname::text
                 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
                WHERE i.indrelid = $1::text::regclass
                  AND (a.attnum = ANY (i.indkey)
                       OR EXISTS (SELECT FROM pg_depend d
                                   WHERE d.objid = i.indexrelid AND d.refobjid = i.indrelid
                                     AND d.refobjsubid = a.attnum))
                ORDER BY 1";
    let table = format!("{}.job_state", options.schema.as_deref().unwrap());
    let rows = observer.query(sql, &[&table]).await.unwrap();
    let columns: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(columns, ["active", "job_no", "shard", "slot", "tenant_no"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_counts_follow_each_command() {
    use evenkeel_store::Action;
    let (store, options) = common::open().await;
    let rig = rig(store).await;
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
        // The command is rejected, so nothing changes.
        (0, Action::Pause),
        (1, resume),
    ] {
        rig.store.act(&rig.scope, jobs[job].id, action, now(10)).await.unwrap();
    }
    let counts = "tenant WHERE job_count = 3 AND paused = 1 AND cancelled = 1";
    assert_eq!(rows(&options, counts).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn running_counts_of_a_node_are_deleted_when_it_retires() {
    let (store, options) = common::open().await;
    let rig = rig(store).await;
    let count = async || rows(&options, "run_stats_running").await;
    let stays = rig.join("node-2", 1).await;
    let tally = RunStatsDelta { running: 3, ..RunStatsDelta::none(rig.scope.tenant) };
    for node in [rig.node, stays] {
        rig.store.add_run_stats(node, vec![tally], vec![], vec![], at(1)).await.unwrap();
    }
    assert_eq!(count().await, 2);
    assert!(rig.store.retire(rig.node).await.unwrap());
    assert_eq!(count().await, 1);
}
