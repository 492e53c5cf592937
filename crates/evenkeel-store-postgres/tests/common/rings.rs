//! A store in which waiting for each other in a ring is a failure.

use evenkeel_store_postgres::{PostgresOptions, PostgresStore};

use crate::common::{fresh_options, url};

/// An empty store whose sessions wait for each other until their statements run out of time: verbs
/// that do fail, where they would have been tried again.
///
/// What the server counts as deadlocks is no measure: it counts those of all tests, and late.
pub async fn open() -> (PostgresStore, PostgresOptions) {
    let url = url();
    let sign = if url.contains('?') { '&' } else { '?' };
    let options = fresh_options(format!("{url}{sign}options=-c%20deadlock_timeout%3D1h")).await;
    let store = PostgresStore::connect(options.clone()).await.unwrap();
    (store, options)
}
