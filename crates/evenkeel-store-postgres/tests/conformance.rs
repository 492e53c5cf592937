//! The test suite that every store must pass.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use evenkeel_store::Store;
use evenkeel_store_postgres::PostgresStore;
use evenkeel_store_testkit::Opened;
use futures::FutureExt;

async fn open() -> Opened {
    let (store, options) = common::open().await;
    let reopen = move || {
        let options = options.clone();
        async move {
            let store = PostgresStore::connect(options).await.unwrap();
            Arc::new(store) as Arc<dyn Store>
        }
        .boxed()
    };
    Opened { store: Arc::new(store), guard: Box::new(()), reopen: Some(Box::new(reopen)) }
}

evenkeel_store_testkit::store_conformance!(open);
