//! Rows that no verb shows, seen in the tables themselves.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use evenkeel_core::aging::Aging;
use evenkeel_core::dedup::{Dedup, DedupScope};
use evenkeel_core::order::Priority;
use evenkeel_core::{JobNo, Progress, Shard, Span, Timestamp};
use evenkeel_store::{FinishResult, ProgressNote, Prune, Registered, RunStatsDelta};
use evenkeel_store_postgres::{PostgresOptions, PostgresStore};
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::fixtures::{at, new_job, now};
use evenkeel_store_testkit::orders::{Orders, done};
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
    assert_eq!((count("note").await, count("checkpoint").await), (0, 1), "a retry waits");
    let deleted = rig.store.delete(&rig.scope, job.id, now(70)).await.unwrap();
    assert_eq!(done(deleted).running, []);
    assert_eq!(rig.store.prune(everything).await.unwrap().forgotten, 0);
    assert_eq!((count("note").await, count("checkpoint").await), (0, 0));
    assert_eq!(count("run").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_job_that_is_just_given_a_time_stays() {
    let (store, options) = common::open().await;
    let rig = rig(store).await;
    let mut job = new_job("crawl").once_at(60).build();
    job.about.dedup = Some(Dedup { key: "a".into(), by_target: false, scope: DedupScope::Pending });
    let job = rig.add(job).await;
    rig.run_well(job, 60).await;
    let forget = async || rig.store.prune_dedup(at(1_000), None, 10).await.unwrap().forgotten;
    let schema = options.schema.as_deref().unwrap();
    let changer = common::onlooker(&options.url).await;
    let change = async |next_at: &str| {
        let set = format!("UPDATE {schema}.job_state SET next_at = {next_at}");
        changer.batch_execute(&set).await.unwrap();
    };
    changer.batch_execute("BEGIN").await.unwrap();
    change("5000000").await;
    // What is not committed is not seen, but who does it is.
    assert_eq!(forget().await, 0);
    changer.batch_execute("COMMIT").await.unwrap();
    assert_eq!((forget().await, rows(&options, "dedup").await), (0, 1));
    change("NULL").await;
    assert_eq!((forget().await, rows(&options, "dedup").await), (1, 0));
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
        sql!("migrate_create_table"),
        "INSERT INTO schema_migration (version) VALUES (1)",
        "INSERT INTO tenant (name) VALUES ('before'), ('main')",
        "INSERT INTO job (id, tenant_no, about, definition, created_at, updated_at)
         VALUES (gen_random_uuid(), 2, '{}', 'as it was', 7, 8),
                (gen_random_uuid(), 2, '{}', 'has failed', 7, 8),
                (gen_random_uuid(), 2, '{}', 'is gone', 7, 8)",
        r#"INSERT INTO job (id, tenant_no, about, definition, created_at, updated_at)
         VALUES (gen_random_uuid(), 2,
                 '{"metadata":{"a\"b":5,"t":"x","yes":true,"no":null,"l":[1]}}',
                 '{"executor":{"kind":"http"},"lane":"critical"}', 7, 8)"#,
        "INSERT INTO job_state (job_no, tenant_no, shard, next_at, slot, failures, deleted)
         VALUES (1, 2, 1, 60, 0, 0, false), (2, 2, 2, 60, 0, 3, false), (3, 2, 3, 60, 0, 3, true),
                (4, 2, 4, 60, 0, 0, false)",
        "INSERT INTO job (id, tenant_no, about, definition, created_at, updated_at)
         VALUES (gen_random_uuid(), 1, '{}', 'of another', 7, 8)",
        "INSERT INTO job_state (job_no, tenant_no, shard, next_at, slot, failures, deleted)
         VALUES (5, 1, 5, 60, 0, 0, false)",
        "INSERT INTO ready (pool, lane, priority, should_start_by, ready_at, scheduled_at, job_no,
                            sequence, attempt, tenant_no)
         VALUES ('default', 1, 30, 99, 5000000000, 60, 1, 0, 0, 2)",
    ] {
        onlooker.batch_execute(sql).await.unwrap();
    }
    let rig = rig(PostgresStore::connect(options.clone()).await.unwrap()).await;
    assert_eq!(rig.scope.tenant.0, 2, "what was there is there");
    assert_eq!((rows(&options, "note").await, rows(&options, "letter").await), (0, 0));
    let loaded = rig.store.load_jobs(&[JobNo(1)]).await.unwrap();
    assert_eq!((loaded[0].since, loaded[0].fired), (Timestamp::from_micros(7), 0));
    assert_eq!(loaded[0].definition, "as it was");
    assert_eq!(rows(&options, "job WHERE executor = 'http' AND lane = 0").await, 1);
    let labels = r#"job_label WHERE job_no = 4
                    AND (key, value) IN (('a"b', '5'), ('t', 'x'), ('yes', 'true'))"#;
    assert_eq!((rows(&options, labels).await, rows(&options, "job_label").await), (3, 3));
    let shards: Vec<Shard> = Shard::all().collect();
    let watched = rig.store.to_judge(&shards, 10, now(0)).await.unwrap().jobs;
    assert_eq!(watched.iter().map(|job| job.no).collect::<Vec<_>>(), [JobNo(2)]);
    // What is on the list is marked so: a good end has it judged again, or it can leave.
    rig.store.mark_at_risk(&[JobNo(2)]).await.unwrap();
    assert_eq!(rows(&options, "job_state WHERE watched").await, 1);
    assert_eq!(rows(&options, &format!("job_state WHERE stopped_at = {}", i64::MAX)).await, 1);
    // Numbers are counted for each tenant, and go on.
    let numbered = "job WHERE (job_no, number) IN ((1, 1), (2, 2), (3, 3), (4, 4), (5, 1))";
    assert_eq!(rows(&options, numbered).await, 5);
    let added = rig.register(vec![new_job("later").build()]).await;
    assert!(matches!(added[..], [Registered::Created { number: 5, .. }]), "{added:?}");
    // What waits rises as if it had come now.
    let priority = Priority::try_from(30).unwrap();
    let rise = Aging::default().rise(priority, Timestamp::from_micros(5_000_000_000)).0;
    assert_eq!(rows(&options, &format!("ready WHERE rise = {rise}")).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_index_holds_a_column_that_firing_writes_but_the_slot() {
    let (_store, options) = common::open().await;
    let onlooker = common::onlooker(&options.url).await;
    // What an index holds, or looks at to see whether it holds a row.
    let sql = "SELECT DISTINCT a.attname::text
                 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
                WHERE i.indrelid = $1::text::regclass
                  AND (a.attnum = ANY (i.indkey)
                       OR EXISTS (SELECT FROM pg_depend d
                                   WHERE d.objid = i.indexrelid AND d.refobjid = i.indrelid
                                     AND d.refobjsubid = a.attnum))
                ORDER BY 1";
    let table = format!("{}.job_state", options.schema.as_deref().unwrap());
    let rows = onlooker.query(sql, &[&table]).await.unwrap();
    let columns: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(columns, ["active", "job_no", "rhythm", "shard", "slot", "tenant_no"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_counts_follow_each_order() {
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
        // Refused, so that nothing changes.
        (0, Action::Pause),
        (1, resume),
    ] {
        rig.store.act(&rig.scope, jobs[job].id, action, now(10)).await.unwrap();
    }
    let counts = "tenant WHERE job_count = 3 AND paused = 1 AND cancelled = 1";
    assert_eq!(rows(&options, counts).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_said_that_runs_is_forgotten_when_it_retires() {
    let (store, options) = common::open().await;
    let rig = rig(store).await;
    let count = async || rows(&options, "tally_running").await;
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
