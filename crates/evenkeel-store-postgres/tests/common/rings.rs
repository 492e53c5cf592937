//! Opens a store in which a deadlock fails the test.

use evenkeel_store_postgres::{PostgresOptions, PostgresStore};

use crate::common::fresh_options;

/// Opens an empty store on the server at `url`, whose sessions do not detect deadlocks. Store methods that deadlock run
/// into the statement timeout and fail, where they would otherwise be repeated.
///
/// The server's deadlock counter does not help, because it counts the deadlocks of all tests and is
/// updated late.
pub async fn open(url: String) -> (PostgresStore, PostgresOptions) {
    let sign = if url.contains('?') { '&' } else { '?' };
    let options = fresh_options(format!("{url}{sign}options=-c%20deadlock_timeout%3D1h")).await;
    let store = PostgresStore::connect(options.clone()).await.unwrap();
    (store, options)
}
