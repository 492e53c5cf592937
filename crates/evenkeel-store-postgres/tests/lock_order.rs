//! Tests store methods that lock the same rows concurrently, step by step.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "shared with tests of stores that know deadlocks")]
mod common;
#[path = "common/rings.rs"]
mod rings;

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::limit::{LimitKey, Limits};
use evenkeel_core::order::Priority;
use evenkeel_store::{Action, Claim, JobChange, Scope};
use evenkeel_store_postgres::PostgresOptions;
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::commands::Commands;
use evenkeel_store_testkit::fixtures::{Begin, at, fire_of, now, unnamed_job};
use evenkeel_store_testkit::rig::{Rig, claim_of};
use tokio_postgres::Client;

/// Waits until `count` sessions of the store are waiting for locks.
async fn wait_for_waiters(observer: &Client, options: &PostgresOptions, count: i64) {
    let sql = "SELECT count(*) FROM pg_stat_activity
                WHERE application_name = $1 AND wait_event_type = 'Lock'";
    let look = async {
        let waits = async || -> i64 {
            observer.query_one(sql, &[&options.application_name]).await.unwrap().get(0)
        };
        while waits().await < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(8), look).await.expect("too few wait");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_yields_to_a_claim_of_an_attempt_that_was_queued_after_its_first_lock() {
    let (store, options) = rings::open(common::url()).await;
    let opened = Opened { store: Arc::new(store), guard: Box::new(()), reopen: None };
    let rig = Rig::new(opened).await;
    let job = rig.add(unnamed_job().every(3600).first_at(60).build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Queued);
    rig.fire(vec![fire], 60).await;
    let (holder, observer) =
        (common::observer(&options.url).await, common::observer(&options.url).await);
    for client in [&holder, &observer] {
        let schema = options.schema.as_deref().unwrap();
        client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    }
    // The command finds no pending attempt, and then waits for a transaction that has locked the
    // state of the job, as firing does.
    let put_aside = "CREATE TEMP TABLE aside AS SELECT * FROM ready; DELETE FROM ready";
    observer.batch_execute(put_aside).await.unwrap();
    holder.batch_execute("BEGIN; SELECT FROM job_state FOR NO KEY UPDATE").await.unwrap();
    let commanding = rig.store.act(&rig.scope, job.id, Action::Delete, now(61));
    // The attempt is queued and claimed before the command gets the lock of the job's state.
    let claiming = async {
        wait_for_waiters(&observer, &options, 1).await;
        observer.batch_execute("INSERT INTO ready SELECT * FROM aside").await.unwrap();
        let release = async {
            wait_for_waiters(&observer, &options, 2).await;
            holder.batch_execute("COMMIT").await.unwrap();
        };
        tokio::join!(rig.claim(10, 61), release).0
    };
    let (commanded, claimed) = tokio::join!(commanding, claiming);
    commanded.unwrap();
    assert_eq!(claimed.len(), 1);
    // The attempt is running, so the command marks it as cancelled.
    let asked = rig.store.cancellations(rig.node).await.unwrap();
    assert_eq!(asked.iter().map(|asked| asked.key).collect::<Vec<_>>(), [claimed[0].key]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_reaches_an_attempt_that_a_claim_locks_without_taking_it() {
    let (store, options) = rings::open(common::url()).await;
    let opened = Opened { store: Arc::new(store), guard: Box::new(()), reopen: None };
    let rig = Rig::new(opened).await;
    let job = rig.add(unnamed_job().every(3600).first_at(60).build()).await;
    rig.queue(job, 60).await;
    let (holder, observer) =
        (common::observer(&options.url).await, common::observer(&options.url).await);
    for client in [&holder, &observer] {
        let schema = options.schema.as_deref().unwrap();
        client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    }
    // Locks all rows of the queue, like a claim that locks more rows than it takes.
    holder.batch_execute("BEGIN; SELECT FROM ready FOR UPDATE").await.unwrap();
    let mut definition = rig.job(job).await.definition;
    definition.priority = Priority::try_from(77).unwrap();
    let change = JobChange { definition: Some(definition), ..JobChange::default() };
    let changing = rig.store.act(&rig.scope, job.id, Action::Change(Box::new(change)), now(61));
    let letting_go = async {
        wait_for_waiters(&observer, &options, 1).await;
        holder.batch_execute("COMMIT").await.unwrap();
    };
    let (changed, ()) = tokio::join!(changing, letting_go);
    changed.unwrap();
    let row = observer.query_one("SELECT priority FROM ready", &[]).await.unwrap();
    assert_eq!(row.get::<_, i16>(0), 77);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_without_the_limit_lock_leaves_the_queue_to_the_holder() {
    let (store, options) = rings::open(common::url()).await;
    let opened = Opened { store: Arc::new(store), guard: Box::new(()), reopen: None };
    let rig = Rig::new(opened).await;
    let queue = async |scope: &Scope, count: usize, priority: u8| {
        for _ in 0..count {
            let job = unnamed_job().every(3600).first_at(60).priority(priority).build();
            let job = rig.add_for(scope, job).await;
            rig.queue(job, 60).await;
        }
    };
    queue(&rig.scope, 40, 50).await;
    let holder = common::observer(&options.url).await;
    let schema = options.schema.as_deref().unwrap();
    holder.batch_execute(&format!("SET search_path = {schema}; BEGIN")).await.unwrap();
    let limit = LimitKey::of_tenant(rig.scope.tenant);
    let lock = format!(
        "SELECT pg_advisory_xact_lock(hashtextextended(
             'evenkeel permit ' || current_schema() || ' {limit}', 0))"
    );
    holder.batch_execute(&lock).await.unwrap();
    let limits = Limits { tenants: [(rig.scope.tenant, 30)].into(), ..Limits::default() };
    let claim = Claim { limits, ..claim_of(rig.node, 5) };
    // Locking a row leaves the id of the transaction in the row.
    let touched = "SELECT count(*) FROM ready WHERE xmax::text <> '0'";
    let touched = async || -> i64 { holder.query_one(touched, &[]).await.unwrap().get(0) };
    let claimed = rig.store.claim(&claim, now(61)).await.unwrap();
    assert_eq!((claimed.attempts.len(), claimed.again, touched().await), (0, true, 5));
    // The first claim could not lock the limit, so the next claim first reads the queue without
    // locking rows.
    queue(&rig.scope, 5, 90).await;
    let claimed = rig.store.claim(&claim, now(61)).await.unwrap();
    assert_eq!((claimed.attempts.len(), claimed.again, touched().await), (0, true, 5));
    // Attempts of another tenant start although the lock of the first tenant's limit is held.
    let other = rig.tenant("other").await;
    queue(&other, 2, 10).await;
    let claimed = rig.store.claim(&claim, now(61)).await.unwrap();
    assert_eq!(claimed.attempts.len(), 2);
    assert!(claimed.attempts.iter().all(|attempt| attempt.tenant == other.tenant));
    holder.batch_execute("COMMIT").await.unwrap();
    assert_eq!(rig.store.claim(&claim, now(61)).await.unwrap().attempts.len(), 5);
}
