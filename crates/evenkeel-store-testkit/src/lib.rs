//! The conformance suite of all stores, and a store in memory that passes it.
//!
//! A store's `tests/conformance.rs` is one line, where `open` creates an empty database:
//!
//! ```ignore
//! evenkeel_store_testkit::store_conformance!(open);
//! ```
//!
//! - [`cases`]: the cases, and how they read the contracts of the port where these leave capacity.
//! - [`model`]: the store in memory, which is also what the engine's simulation runs on.
//! - [`rig`] and [`fixtures`]: a store with a tenant and a node, and builders of jobs.
//! - [`commands`]: single commands on jobs.
//! - [`balance`]: checks of the stored load counts.

pub mod balance;
pub mod cases;
pub mod commands;
pub mod fixtures;
pub mod model;
mod paging;
mod queue_play;
pub mod rig;
mod statements;

pub use statements::used_statements;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_store::Store;
use futures::future::{BoxFuture, LocalBoxFuture};

/// Opens an existing database again.
pub type Reopen = Box<dyn Fn() -> BoxFuture<'static, Arc<dyn Store>> + Send + Sync>;

/// An empty database for one case.
pub struct Opened {
    pub store: Arc<dyn Store>,
    /// What must outlive the store: a temporary directory, a schema.
    pub guard: Box<dyn Any + Send>,
    /// Opens the database again, as after a restart. If the store is shared, this also happens while
    /// other handles are open, as on other nodes; if not, only after the last handle was dropped.
    /// Without it, cases about several handles use one.
    pub reopen: Option<Reopen>,
}

struct Case {
    name: &'static str,
    run: fn(Opened) -> LocalBoxFuture<'static, ()>,
}

include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// Only a deadlocked case takes longer.
const CASE_LIMIT: Duration = Duration::from_secs(180);

/// Runs the case `module::name` on a runtime with two threads. [`store_conformance!`] calls it.
///
/// # Panics
///
/// Panics if the case fails or takes too long.
pub fn run_case<Open: Future<Output = Opened>>(open: impl FnOnce() -> Open, name: &str) {
    let case = CASES.iter().find(|case| case.name == name).expect("the case exists");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be made");
    let opened = runtime.block_on(Box::pin(open()));
    let done =
        runtime.block_on(async { tokio::time::timeout(CASE_LIMIT, (case.run)(opened)).await });
    assert!(done.is_ok(), "the case takes longer than {CASE_LIMIT:?}");
}
