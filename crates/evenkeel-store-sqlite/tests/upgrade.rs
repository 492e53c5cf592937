//! Tests upgrades of a database that holds data, with one case per migration after the first.
//!
//! To add a case for migration N:
//! 1. Call `database_at(&path, N - 1)`, which applies the migrations before N to an empty file.
//! 2. Insert rows with plain SQL into the tables as they were in version N - 1.
//! 3. Open the file with `SqliteStore::open`, which applies migration N and later ones.
//! 4. Read the data back through the methods of the store, and check every value that N changed.
//! 5. Add the function to [`CASES`].

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use evenkeel_core::activity::ActivityCounts;
use evenkeel_core::schedule::Once;
use evenkeel_core::{Definition, JobSearch, NodeNo, Schedule, Slot, TenantNo, Timestamp};
use evenkeel_store::{
    ActivityDelta, JobFilter, JobSort, JobStore as _, PageRequest, Role, RunStatsStore as _, Scope,
    SlotActivity,
};
use evenkeel_store_sqlite::{OpenError, SqliteOptions, SqliteStore};
use rusqlite::Connection;

/// An upgrade test, which gets the path of a file that does not exist yet.
type Case = fn(&Path);

/// The upgrade test of each migration, beginning with migration 2.
const CASES: [Case; 2] = [activity_gets_a_table, jobs_get_into_the_search_index];

/// Migration 2 adds a table and changes no other.
fn activity_gets_a_table(path: &Path) {
    let database = database_at(path, 1);
    let row = "INSERT INTO run_totals (tenant_no, completed, failed) VALUES (1, 7, 2)";
    database.execute_batch(row).unwrap();
    drop(database);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(SqliteOptions::new(path)).await.unwrap();
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
    });
}

/// Migration 3 makes the jobs of the store searchable.
fn jobs_get_into_the_search_index(path: &Path) {
    let database = database_at(path, 2);
    let definition = Definition::noop(Schedule::Once(Once::NOW));
    let tenant = "INSERT INTO tenant (name, job_count) VALUES ('default', 1199)";
    database.execute_batch(tenant).unwrap();
    let jobs = "
        WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1200)
        INSERT INTO job (id, tenant_no, name, about, definition, created_at, updated_at, number, state)
        SELECT randomblob(16), 1, 'job-' || n, json_object('name', 'job-' || n), ?1, n, n, n,
               iif(n = 170, 3, 0) FROM n";
    database.execute(jobs, [serde_json::to_string(&definition).unwrap()]).unwrap();
    let states = "INSERT INTO job_state (job_no, tenant_no, shard) SELECT job_no, 1, 7 FROM job";
    database.execute_batch(states).unwrap();
    drop(database);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(SqliteOptions::new(path)).await.unwrap();
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
    });
}

fn migrations() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn database_at(path: &Path, version: usize) -> Connection {
    let database = Connection::open(path).unwrap();
    for file in &migrations()[..version] {
        database.execute_batch(&std::fs::read_to_string(file).unwrap()).unwrap();
    }
    database.pragma_update(None, "user_version", version).unwrap();
    database
}

#[test]
fn every_migration_after_the_first_has_a_case() {
    assert_eq!(CASES.len(), migrations().len() - 1);
}

#[test]
fn databases_of_earlier_versions_are_upgraded() {
    for case in CASES {
        let folder = tempfile::tempdir().unwrap();
        case(&folder.path().join("store"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_the_newest_version_is_opened_without_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let version = migrations().len();
    let schema = |database: &Connection| -> String {
        let sql = "SELECT group_concat(sql, ';') FROM sqlite_schema";
        database.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let before = schema(&database_at(&path, version));
    drop(SqliteStore::open(SqliteOptions::new(&path)).await.unwrap());
    assert_eq!(schema(&Connection::open(&path).unwrap()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_an_unreleased_version_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let database = Connection::open(&path).unwrap();
    let old =
        "CREATE TABLE schema_migration (version INTEGER PRIMARY KEY); CREATE TABLE run (error)";
    database.execute_batch(old).unwrap();
    drop(database);
    let refused = SqliteStore::open(SqliteOptions::new(&path)).await.err().unwrap();
    assert!(matches!(refused, OpenError::Unreleased), "{refused}");
    assert!(refused.to_string().contains("start with an empty data directory"), "{refused}");
    let sql = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 =
        Connection::open(&path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 2);
}
