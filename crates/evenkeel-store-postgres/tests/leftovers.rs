//! Rows that no verb shows, seen in the tables themselves.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use evenkeel_core::Progress;
use evenkeel_store::{Deleted, FinishResult, Note, Prune};
use evenkeel_store_postgres::{PostgresOptions, PostgresStore};
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::fixtures::{at, new_job, now};
use evenkeel_store_testkit::rig::Rig;

async fn rig(store: PostgresStore) -> Rig {
    Rig::new(Opened { store: Arc::new(store), guard: Box::new(()), reopen: None }).await
}

async fn rows(options: &PostgresOptions, table: &str) -> i64 {
    let schema = options.schema.as_deref().unwrap();
    let onlooker = common::onlooker(&options.url).await;
    let sql = format!("SELECT count(*) FROM {schema}.{table}");
    onlooker.query_one(&sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_deleted_job_left_is_forgotten_though_its_history_stays() {
    let (store, options) = common::open().await;
    let rig = rig(store).await;
    let count = async |table| rows(&options, table).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let note = Note {
        key: held.key,
        fence: held.fence,
        progress: Some(Progress::default()),
        log: Some("line".into()),
        checkpoint: Some(vec![1]),
    };
    assert_eq!(rig.store.note(rig.node, vec![note], now(61)).await.unwrap(), [true]);
    // Its worker was lost, and whoever ends it does not know what it said.
    assert_eq!(rig.finish(rig.retry(held, at(90))).await, FinishResult::Done);
    let everything = Prune { after: None, limit: 100, keep_per_job: 100, keep_since: at(0) };
    assert_eq!(rig.store.prune(everything).await.unwrap().forgotten, 0);
    assert_eq!((count("note").await, count("checkpoint").await), (0, 1), "a retry waits");
    let deleted = rig.store.delete(&rig.scope, job.id, now(70)).await.unwrap();
    assert_eq!(deleted, Deleted::Done(Vec::new()));
    assert_eq!(rig.store.prune(everything).await.unwrap().forgotten, 0);
    assert_eq!((count("note").await, count("checkpoint").await), (0, 0));
    assert_eq!(count("run").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_the_first_version_are_brought_up_to_date() {
    let options = common::fresh_options(common::url()).await;
    let schema = options.schema.as_deref().unwrap();
    let onlooker = common::onlooker(&options.url).await;
    let begin = format!("CREATE SCHEMA {schema}; SET search_path = {schema}");
    onlooker.batch_execute(&begin).await.unwrap();
    for sql in [
        include_str!("../migrations/0001_init.sql"),
        include_str!("../queries/migrate_create_table.sql"),
        "INSERT INTO schema_migration (version) VALUES (1)",
        "INSERT INTO tenant (name) VALUES ('before'), ('main')",
    ] {
        onlooker.batch_execute(sql).await.unwrap();
    }
    let rig = rig(PostgresStore::connect(options.clone()).await.unwrap()).await;
    assert_eq!(rig.scope.tenant.0, 2, "what was there is there");
    assert_eq!((rows(&options, "note").await, rows(&options, "letter").await), (0, 0));
}
