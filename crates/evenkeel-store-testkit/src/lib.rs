//! The conformance tests for all stores, and an in-memory store that passes them.
//!
//! The file `tests/conformance.rs` of a store has one line, in which `open` creates an empty
//! database:
//!
//! ```ignore
//! evenkeel_store_testkit::store_conformance!(open);
//! ```
//!
//! - [`cases`]: the test cases, and how they interpret the doc comments of the store operations.
//! - [`model`]: the in-memory store, on which the engine's simulation also runs.
//! - [`rig`] and [`fixtures`]: a store with one tenant and one node, and builders of jobs.
//! - [`commands`]: helper functions that apply single commands to jobs.
//! - [`balance`]: checks of the stored job counts of load profiles.

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

/// An empty database for one test case.
pub struct Opened {
    pub store: Arc<dyn Store>,
    /// A resource that must outlive the store, for example a temporary directory or a database
    /// schema.
    pub guard: Box<dyn Any + Send>,
    /// Opens the database again, as after a restart. A store that can be shared is also opened
    /// while other handles are open, as on other nodes. A store that cannot be shared is opened
    /// again only after its last handle was dropped. If `reopen` is `None`, cases about several
    /// handles use a single handle.
    pub reopen: Option<Reopen>,
}

struct Case {
    name: &'static str,
    run: fn(Opened) -> LocalBoxFuture<'static, ()>,
}

include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// Time limit of a test case. Only a deadlocked case takes longer.
const CASE_LIMIT: Duration = Duration::from_secs(180);

/// Runs the case `module::name` on a runtime with two threads. [`store_conformance!`] calls this
/// function.
///
/// # Panics
///
/// Panics if the case fails or exceeds the time limit.
pub fn run_case<Open: Future<Output = Opened>>(open: impl FnOnce() -> Open, name: &str) {
    let case = CASES.iter().find(|case| case.name == name).expect("the case exists");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be created");
    let opened = runtime.block_on(Box::pin(open()));
    let done =
        runtime.block_on(async { tokio::time::timeout(CASE_LIMIT, (case.run)(opened)).await });
    assert!(done.is_ok(), "the case takes longer than {CASE_LIMIT:?}");
}
