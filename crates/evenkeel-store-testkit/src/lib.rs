//! One suite for every store, and a store in memory to try things on.
//!
//! [`store_conformance!`] owns the list of cases, so no store can leave one out. A store's
//! `tests/conformance.rs` is one line, where `open` makes an empty database of its own:
//!
//! ```ignore
//! evenkeel_store_testkit::store_conformance!(common::open);
//! ```
//!
//! What the port's contract leaves open is settled in the docs of [`cases`].

pub mod balance;
pub mod cases;
pub mod fixtures;
mod list;
mod list_access;
mod list_balance;
mod list_changes;
mod list_control;
mod list_dead;
mod list_dedup;
mod list_events;
mod list_limits;
mod list_lists;
mod list_promises;
mod list_queue;
mod list_settle;
mod list_targets;
pub mod model;
pub mod orders;
mod paging;
mod queue_play;
pub mod rig;
mod statements;

pub use statements::used_statements;

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_store::Store;
use futures::future::BoxFuture;

/// Opens a database that is already there once more.
pub type Reopen = Box<dyn Fn() -> BoxFuture<'static, Arc<dyn Store>> + Send + Sync>;

/// An empty database for one case.
pub struct Opened {
    /// A handle to it.
    pub store: Arc<dyn Store>,
    /// Whatever must outlive it: a temporary directory, a schema.
    pub guard: Box<dyn Any + Send>,
    /// Opens it again, as after a restart. If the store is shared this also happens while other
    /// handles are open, as on other nodes; if not, only after the last one was dropped. Without
    /// it, cases about several handles use one.
    pub reopen: Option<Reopen>,
}

/// The longest a case may take. Only a deadlock needs more.
const CASE_LIMIT: Duration = Duration::from_secs(180);

/// Runs one case on a runtime with several threads. Called by [`store_conformance!`].
///
/// # Panics
/// When the case fails or hangs.
pub fn run_case<Open, Case>(open: impl FnOnce() -> Open, case: impl FnOnce(Opened) -> Case)
where
    Open: Future<Output = Opened>,
    Case: Future<Output = ()>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be made");
    runtime.block_on(async {
        let opened = Box::pin(open()).await;
        let done = tokio::time::timeout(CASE_LIMIT, Box::pin(case(opened))).await;
        assert!(done.is_ok(), "the case hangs");
    });
}
