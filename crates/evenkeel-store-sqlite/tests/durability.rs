//! Tests for behaviour that only the SQLite store has: the file, its version, and commits in
//! groups.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use evenkeel_core::schedule::{Interval, Schedule};
use evenkeel_core::{About, Definition, JobId, Span, TenantNo, Timestamp};
use evenkeel_store::{
    JobFilter, JobSort, JobStore, NewJob, Now, PageRequest, Registered, Role, Scope, Store,
    StoreError, Unwritable,
};
use evenkeel_store_sqlite::{OpenError, SqliteOptions, SqliteStore};
use tempfile::TempDir;

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(SqliteOptions::new(path)).await.unwrap()
}

fn job(n: u64) -> NewJob {
    let mut random = [0; 10];
    random[..8].copy_from_slice(&n.to_be_bytes());
    let every = Interval::new(Span::from_secs(60), None).unwrap();
    NewJob {
        id: JobId::new(NOW, random),
        about: About { name: Some(format!("job-{n}")), ..About::default() },
        definition: Definition::noop(Schedule::Interval(every)),
        next_at: Some(NOW),
    }
}

const fn scope(tenant: TenantNo) -> Scope {
    Scope { tenant, role: Role::Admin }
}

async fn count(store: &SqliteStore, scope: &Scope) -> u64 {
    let page = store
        .list_jobs(scope, &JobFilter::default(), JobSort::default(), PageRequest::first(1))
        .await;
    page.unwrap().total
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_does_not_affect_others_of_its_commit() {
    let directory = directory();
    let store = Arc::new(open(&directory.path().join("store")).await);
    let scope = scope(store.tenant("acme").await.unwrap());
    let unknown_tenant = Scope { tenant: TenantNo(999), role: Role::Admin };
    let requests = (0..200_u64).map(|n| {
        let store = Arc::clone(&store);
        let requester = if n % 10 == 0 { unknown_tenant } else { scope };
        tokio::spawn(async move { store.register(&requester, vec![job(n)], Now::At(NOW)).await })
    });
    for (n, request) in requests.collect::<Vec<_>>().into_iter().enumerate() {
        match request.await.unwrap() {
            Ok(registered) => {
                assert_ne!(n % 10, 0);
                assert!(matches!(registered[..], [Registered::Created { .. }]));
            }
            Err(error) => {
                assert_eq!(n % 10, 0, "{error:?}");
                assert!(matches!(error, StoreError::Refused(_)), "{error:?}");
            }
        }
    }
    assert_eq!(count(&store, &scope).await, 180);
    assert_eq!(store.census().await.unwrap().jobs, 180);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_reported_and_changes_nothing() {
    let directory = directory();
    let path = directory.path().join("store");
    let options = SqliteOptions { pages_max: Some(600), ..SqliteOptions::new(&path) };
    let store = Arc::new(SqliteStore::open(options).await.unwrap());
    let scope = scope(store.tenant("acme").await.unwrap());
    // The test registers more jobs than fit into the file, several per commit. A request that
    // shares a commit with a failed request must not be stored.
    let requests = (0..4000_u64).map(|n| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.register(&scope, vec![job(n)], Now::At(NOW)).await })
    });
    let (mut kept, mut refused) = (0, 0);
    for request in requests.collect::<Vec<_>>() {
        match request.await.unwrap() {
            Ok(_) => kept += 1,
            Err(error) => {
                refused += 1;
                assert_eq!(error.unwritable(), Some(Unwritable::DiskFull), "{error:?}");
            }
        }
    }
    assert!(kept > 0 && refused > 0, "{kept} {refused}");
    assert_eq!(count(&store, &scope).await, kept);
    drop(store);
    // When the store is opened without the size limit, its data is unchanged.
    let store = open(&path).await;
    assert_eq!(count(&store, &scope).await, kept);
    store.register(&scope, vec![job(9999)], Now::At(NOW)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_store_leaves_all_data_in_the_database_file() {
    let (directory, after) = (directory(), directory());
    let store = open(&directory.path().join("store")).await;
    let scope = scope(store.tenant("acme").await.unwrap());
    store.register(&scope, (0..100).map(job).collect(), Now::At(NOW)).await.unwrap();
    store.close().await.unwrap();
    let refused = store.register(&scope, vec![job(101)], Now::At(NOW)).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    // The store is not dropped, as when the process is killed, and only the database file is
    // copied.
    std::fs::copy(directory.path().join("store"), after.path().join("store")).unwrap();
    let copy = open(&after.path().join("store")).await;
    assert_eq!(count(&copy, &scope).await, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_committed_job_survives_a_crash() {
    let (directory, after) = (directory(), directory());
    let store = open(&directory.path().join("store")).await;
    let scope = scope(store.tenant("acme").await.unwrap());
    for n in 0..20 {
        store.register(&scope, vec![job(n)], Now::At(NOW)).await.unwrap();
    }
    // The files are left as after a crash, with a log that is not yet copied into the database
    // file.
    for file in ["store", "store-wal"] {
        std::fs::copy(directory.path().join(file), after.path().join(file)).unwrap();
    }
    let survivor = open(&after.path().join("store")).await;
    assert_eq!(survivor.tenant("acme").await.unwrap(), scope.tenant);
    assert_eq!(count(&survivor, &scope).await, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_and_writers_never_find_the_database_busy() {
    let directory = directory();
    let options = SqliteOptions {
        synchronous_full: false,
        // The log is copied after nearly every commit.
        wal_autocheckpoint_pages: 20,
        ..SqliteOptions::new(directory.path().join("store"))
    };
    let store = Arc::new(SqliteStore::open(options).await.unwrap());
    let scope = scope(store.tenant("acme").await.unwrap());
    let mut tasks = Vec::new();
    for writer in 0..4_u64 {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move {
            for n in 0..100 {
                let jobs = vec![job(writer * 1_000 + n)];
                store.register(&scope, jobs, Now::At(NOW)).await.unwrap();
            }
        }));
    }
    for _ in 0..4 {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move {
            for _ in 0..100 {
                let all = PageRequest::first(1_000);
                let page = store
                    .list_jobs(&scope, &JobFilter::default(), JobSort::default(), all)
                    .await
                    .unwrap();
                // A read sees one state of the database, never half of a change.
                assert_eq!(page.items.len() as u64, page.total.min(1_000));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(count(&store, &scope).await, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_command_runs_after_its_caller_stops_waiting() {
    let directory = directory();
    let store = open(&directory.path().join("store")).await;
    let scope = scope(store.tenant("acme").await.unwrap());
    {
        let deleted = store.register(&scope, vec![job(1)], Now::At(NOW));
        tokio::pin!(deleted);
        // The store queues the request, and then the test drops its future.
        tokio::select! {
            biased;
            _ = &mut deleted => {}
            () = std::future::ready(()) => {}
        }
    }
    // Requests run in order, so the dropped request has run when this second request returns.
    store.register(&scope, vec![job(2)], Now::At(NOW)).await.unwrap();
    assert_eq!(count(&store, &scope).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_again_keeps_the_data() {
    let directory = directory();
    let path = directory.path().join("store");
    let tenant = open(&path).await.tenant("acme").await.unwrap();
    for _ in 0..2 {
        assert_eq!(open(&path).await.tenant("acme").await.unwrap(), tenant);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_a_newer_version_is_refused() {
    let directory = directory();
    let path = directory.path().join("store");
    drop(open(&path).await);
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.pragma_update(None, "user_version", 99).unwrap();
    drop(raw);
    let refused = SqliteStore::open(SqliteOptions::new(&path)).await.err().unwrap();
    assert!(matches!(refused, OpenError::Newer { found: 99, .. }), "{refused}");
    assert!(refused.to_string().contains("version 99"), "{refused}");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let directory = directory();
    let store = open(&directory.path().join("store")).await;
    store.tenant("acme").await.unwrap();
    for file in ["store", "store-wal", "store-shm"] {
        let mode = std::fs::metadata(directory.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn durability_names_the_settings_in_force() {
    let directory = directory();
    let store = open(&directory.path().join("store")).await;
    assert_eq!(store.durability(), "journal_mode=WAL synchronous=FULL");
}
