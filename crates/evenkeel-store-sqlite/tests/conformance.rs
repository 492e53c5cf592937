//! The test suite that every store must pass.

use std::path::PathBuf;
use std::sync::Arc;

use evenkeel_store::Store;
use evenkeel_store_sqlite::{SqliteOptions, SqliteStore};
use evenkeel_store_testkit::Opened;

async fn open_file(path: PathBuf) -> Arc<dyn Store> {
    // These tests do not test the disk, so commits need not survive a power failure.
    let options = SqliteOptions { synchronous_full: false, ..SqliteOptions::new(path) };
    Arc::new(SqliteStore::open(options).await.expect("the database opens"))
}

async fn open() -> Opened {
    let directory = tempfile::tempdir().expect("there is room for a temporary directory");
    let path = directory.path().join("store.sqlite");
    Opened {
        store: open_file(path.clone()).await,
        guard: Box::new(directory),
        reopen: Some(Box::new(move || Box::pin(open_file(path.clone())))),
    }
}

evenkeel_store_testkit::store_conformance!(open);
