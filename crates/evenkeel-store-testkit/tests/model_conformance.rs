//! The in-memory model passes the conformance tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use evenkeel_core::Timestamp;
use evenkeel_store::Store;
use evenkeel_store_testkit::fixtures::START;
use evenkeel_store_testkit::model::ModelStore;
use evenkeel_store_testkit::{Opened, Reopen};

async fn open() -> Opened {
    // A clock that advances with every read.
    let ticks = AtomicI64::new(START.as_micros());
    let clock = move || Timestamp::from_micros(ticks.fetch_add(1, Ordering::Relaxed));
    let model = ModelStore::new(Arc::new(clock));
    let store: Arc<dyn Store> = Arc::new(model.clone());
    let reopen: Reopen = Box::new(move || {
        let store: Arc<dyn Store> = Arc::new(model.clone());
        Box::pin(async move { store })
    });
    Opened { store, guard: Box::new(()), reopen: Some(reopen) }
}

evenkeel_store_testkit::store_conformance!(open);
