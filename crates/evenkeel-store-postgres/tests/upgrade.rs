//! Tests upgrades of a database that holds data, with one case per migration after the first.
//!
//! To add a case for migration N:
//! 1. Write an async function that gets the options of a new schema and a client whose search path
//!    is that schema.
//! 2. Call `database_at(&client, N - 1)`, which applies the migrations before N.
//! 3. Insert rows with plain SQL into the tables as they were in version N - 1.
//! 4. Open the store with `PostgresStore::connect`, which applies migration N and later ones.
//! 5. Read the data back through the methods of the store, and check every value that N changed.
//! 6. Add the function, boxed, to [`CASES`].

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "shared with tests that open an empty store")]
mod common;

use std::path::PathBuf;

use evenkeel_core::activity::ActivityCounts;
use evenkeel_core::schedule::Once;
use evenkeel_core::{Definition, JobSearch, NodeNo, Schedule, Shard, Slot, TenantNo, Timestamp};
use evenkeel_store::{
    ActivityDelta, JobFilter, JobSort, JobStore as _, PageRequest, Role, RunStatsStore as _,
    ScheduleStore as _, Scope, SlotActivity, Store as _,
};
use evenkeel_store_postgres::{OpenError, PostgresOptions, PostgresStore};
use futures::future::BoxFuture;
use tokio_postgres::Client;

type Case = fn(PostgresOptions, Client) -> BoxFuture<'static, ()>;

/// The upgrade test of each migration, beginning with migration 2.
const CASES: [Case; 3] = [
    |options, client| Box::pin(rows_of_state_get_room(options, client)),
    |options, client| Box::pin(activity_gets_a_table(options, client)),
    |options, client| Box::pin(jobs_get_into_the_search_index(options, client)),
];

/// Migration 2 changes how full new pages of `job_state` are, and no value.
async fn rows_of_state_get_room(options: PostgresOptions, client: Client) {
    database_at(&client, 1).await;
    let rows = "
        INSERT INTO tenant (name) VALUES ('default');
        INSERT INTO job (id, tenant_no, name, about, definition, created_at, updated_at, number)
        SELECT gen_random_uuid(), 1, 'job-' || n, '{}', '{}', n, n, n FROM generate_series(1, 500) AS n;
        INSERT INTO job_state (job_no, tenant_no, shard, next_at, slot, head_at, head_sequence,
                               executions, fired, live, succeeded_runs)
        SELECT n, 1, n & 255, 1000 + n, 0, n, 0, 7, 6, 0, 5 FROM generate_series(1, 500) AS n;
        INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, number)
        SELECT n, n, 0, 0, 1, 2, 1, 7 FROM generate_series(1, 500) AS n";
    client.batch_execute(rows).await.unwrap();
    let contents = async || -> String {
        let sql = "SELECT md5(string_agg(s::text, '') || string_agg(r::text, ''))
                     FROM job_state s JOIN attempt r USING (job_no)";
        client.query_one(sql, &[]).await.unwrap().get(0)
    };
    let before = contents().await;
    let store = PostgresStore::connect(options).await.unwrap();
    assert_eq!(contents().await, before);
    let census = store.census().await.unwrap();
    assert_eq!((census.jobs, census.runs), (500, 500));
    let due = store.load_due(Shard(7), Slot(0), None, 10).await.unwrap();
    let found: Vec<_> = due.iter().map(|job| (job.no.0, job.next_at, job.fired)).collect();
    let expected = |no: i64| (no, Some(Timestamp::from_micros(1000 + no)), 6);
    assert_eq!(found, [expected(7), expected(263)]);
    let options = "SELECT 'fillfactor=60' = ANY (reloptions) FROM pg_class
                    WHERE oid = 'job_state'::regclass";
    assert!(client.query_one(options, &[]).await.unwrap().get::<_, bool>(0));
}

/// Migration 3 adds a table and changes no other.
async fn activity_gets_a_table(options: PostgresOptions, client: Client) {
    database_at(&client, 2).await;
    let row = "INSERT INTO run_totals (tenant_no, completed, failed) VALUES (1, 7, 2)";
    client.batch_execute(row).await.unwrap();
    let store = PostgresStore::connect(options).await.unwrap();
    let (tenant, slot) = (TenantNo(1), Slot(5));
    let scope = Scope { tenant, role: Role::Viewer };
    let totals = store.run_totals(&scope).await.unwrap();
    assert_eq!((totals.completed, totals.failed), (7, 2));
    assert_eq!(store.list_activity(&scope, Slot(0), Slot(9), 9).await.unwrap(), []);
    let counts = ActivityCounts { fired: 3, ..ActivityCounts::default() };
    let (report, at) = (ActivityDelta { tenant, slot, counts }, Timestamp::from_micros(1));
    store.add_run_stats(NodeNo(1), vec![], vec![], vec![report], at).await.unwrap();
    let listed = store.list_activity(&scope, Slot(0), Slot(9), 9).await.unwrap();
    assert_eq!(listed, [SlotActivity { slot, counts }]);
}

/// Migration 4 makes the jobs of the store searchable.
async fn jobs_get_into_the_search_index(options: PostgresOptions, client: Client) {
    database_at(&client, 3).await;
    let definition = Definition::noop(Schedule::Once(Once::NOW));
    let definition = serde_json::to_string(&definition).unwrap();
    let tenant = "INSERT INTO tenant (name, job_count) VALUES ('default', 1199)";
    client.batch_execute(tenant).await.unwrap();
    let jobs = "
        INSERT INTO job (id, tenant_no, name, about, definition, created_at, updated_at, number, state)
        SELECT gen_random_uuid(), 1, 'job-' || n, json_build_object('name', 'job-' || n)::text, $1,
               n, n, n, CASE n WHEN 170 THEN 3 ELSE 0 END
          FROM generate_series(1, 1200) AS n";
    client.execute(jobs, &[&definition]).await.unwrap();
    let states = "INSERT INTO job_state (job_no, tenant_no, shard) SELECT job_no, 1, 7 FROM job";
    client.batch_execute(states).await.unwrap();
    let store = PostgresStore::connect(options).await.unwrap();
    let mut steps = 0;
    while store.index_jobs(500).await.unwrap() {
        steps += 1;
    }
    // Three steps index all jobs, and one finds that no job is left.
    assert_eq!(steps, 4);
    let search = Some(JobSearch::parse("OB-17").unwrap());
    let filter = JobFilter { search, ..JobFilter::default() };
    let scope = Scope { tenant: TenantNo(1), role: Role::Viewer };
    let (sort, page) = (JobSort::default(), PageRequest::first(100));
    let found = store.list_jobs(&scope, &filter, sort, page).await.unwrap();
    // job-17 and job-171 to job-179; job-170 is deleted.
    assert_eq!((found.total, found.total_is_estimate), (10, false));
}

fn migrations() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Returns the options of a new, empty schema and a client whose search path is that schema.
async fn new_schema() -> (PostgresOptions, Client) {
    let options = common::fresh_options(common::url()).await;
    let client = common::observer(&options.url).await;
    let schema = options.schema.as_deref().unwrap();
    let create = format!("CREATE SCHEMA {schema}; SET search_path = {schema}");
    client.batch_execute(&create).await.unwrap();
    (options, client)
}

async fn database_at(client: &Client, version: usize) {
    let create = "CREATE TABLE schema_version (
                      version int4 PRIMARY KEY,
                      applied_at timestamptz NOT NULL DEFAULT clock_timestamp())";
    client.batch_execute(create).await.unwrap();
    for (version, file) in (1..).zip(&migrations()[..version]) {
        client.batch_execute(&std::fs::read_to_string(file).unwrap()).await.unwrap();
        let record = "INSERT INTO schema_version (version) VALUES ($1)";
        client.execute(record, &[&version]).await.unwrap();
    }
}

#[test]
fn every_migration_after_the_first_has_a_case() {
    assert_eq!(CASES.len(), migrations().len() - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_of_earlier_versions_are_upgraded() {
    for case in CASES {
        let (options, client) = new_schema().await;
        case(options, client).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_the_newest_version_is_opened_without_changes() {
    let (options, client) = new_schema().await;
    database_at(&client, migrations().len()).await;
    let objects = async || -> i64 {
        let sql =
            "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace";
        client.query_one(sql, &[]).await.unwrap().get(0)
    };
    let before = objects().await;
    drop(PostgresStore::connect(options).await.unwrap());
    assert_eq!(objects().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_an_unreleased_version_is_refused_and_not_changed() {
    let (options, client) = new_schema().await;
    let old = "CREATE TABLE schema_migration (version int4 PRIMARY KEY);
               INSERT INTO schema_migration VALUES (23); CREATE TABLE run (error text)";
    client.batch_execute(old).await.unwrap();
    let refused = PostgresStore::connect(options).await.unwrap_err();
    assert!(matches!(refused, OpenError::Unreleased), "{refused}");
    assert!(refused.to_string().contains("start with an empty database"), "{refused}");
    let sql = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()";
    assert_eq!(client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0), 2);
}
