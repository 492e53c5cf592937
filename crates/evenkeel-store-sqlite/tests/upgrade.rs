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

use evenkeel_store_sqlite::{OpenError, SqliteOptions, SqliteStore};
use rusqlite::Connection;

/// An upgrade test, which gets the path of a file that does not exist yet.
type Case = fn(&Path);

/// The upgrade test of each migration, beginning with migration 2.
const CASES: [Case; 0] = [];

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
