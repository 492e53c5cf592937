//! What Evenkeel does when a run starts.
//!
//! The engine hands an [`Executor`] an [`Invocation`] and gets a [`Report`] back. An executor knows
//! nothing of the store: what it may do, and for how long, is in the invocation.
//!
//! | kind | does |
//! |---|---|
//! | `noop` | nothing, at once or as told; see [`NoopExecutor`] |
//! | `http`, also `http_callback` | one HTTP call; see [`HttpExecutor`] |
//! | `crawl` | crawls a site; see [`CrawlExecutor`] |
//! | `shell` | one program under a [`supervisor`]; see [`ShellExecutor`] |
//!
//! Effects are at-least-once under crashes, so every executor passes the run's id, the attempt and
//! the fence on to what it calls.

mod cancel;
mod config;
mod crawl;
mod http;
mod lease;
mod log_buffer;
mod none;
mod noop;
mod registry;
mod report;
mod secrets;
mod shell;
pub mod supervisor;
mod tail;
mod template;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_core::executor::ExecutorCatalog;

pub use cancel::{Cancel, CancelHandle, CancelReason, cancellation};
pub use config::ConfigFault;
pub use crawl::{CrawlExecutor, Library};
pub use evenkeel_core::executor::ExecutorDeclaration;
pub use evenkeel_crawler::{CrawlerSettings, KeeperError, PageKeeper};
pub use http::{HttpExecutor, HttpSettings, Identities, SigningKeys, WallClock};
pub use lease::Lease;
pub use log_buffer::LOG_BYTES_DEFAULT;
pub use none::NoExecutor;
pub use noop::{DECLARATION as NOOP, NoopExecutor};
pub use registry::Registry;
pub use report::Report;
pub use secrets::WithSecrets;
pub use shell::{
    CgroupUse, Containment, NoCgroup, NoWall, ShellExecutor, ShellSettings, SupervisorCommand,
    Tenants, WallSettings, is_root, is_user, nobody, try_wall,
};
pub use tail::TAIL_BYTES_MAX;
pub use wire::{CHECKPOINT_BYTES_MAX, CheckpointTooLarge, News, Wire};

/// All executors of the program, one line each. The server decides which of them are enabled.
pub static CATALOG: ExecutorCatalog = ExecutorCatalog::new(&[
    &crawl::DECLARATION,
    &http::DECLARATION,
    &noop::DECLARATION,
    &shell::DECLARATION,
]);

/// Something that can run a job.
#[async_trait]
pub trait Executor: Send + Sync + 'static {
    /// Returns what the executor declares about itself.
    fn declaration(&self) -> &'static ExecutorDeclaration;

    /// Refuses a bad configuration when a job of `tenant` is created or changed. Templates in the
    /// configuration may refer to `payload`.
    fn check(
        &self,
        tenant: evenkeel_core::TenantNo,
        config: &serde_json::Value,
        payload: &serde_json::Value,
    ) -> Result<(), ConfigFault>;

    /// Runs one attempt to its end. It ends early, and the body with it, when the invocation is
    /// cancelled or its lease runs out, and also if the future is dropped.
    async fn run(&self, invocation: Invocation) -> Report;
}

/// One attempt to run, and the right to run it.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// Which attempt of which run: the ids and the scheduled time come from it.
    pub key: evenkeel_core::AttemptKey,
    /// The id of `key`, for the body and the receivers of its calls.
    pub id: evenkeel_core::AttemptId,
    /// The right to write results, for those the body talks to.
    pub fence: evenkeel_core::lease::Fence,
    /// Whose it is.
    pub tenant: evenkeel_core::TenantNo,
    /// When it was claimed.
    pub started_at: evenkeel_core::Timestamp,
    /// What to run.
    pub definition: Arc<evenkeel_core::Definition>,
    /// What an earlier attempt left behind.
    pub checkpoint: Option<Vec<u8>>,
    /// Says when to stop.
    pub cancel: Cancel,
    /// Says until when this node may run it.
    pub lease: Lease,
    /// Takes what the body says while it runs.
    pub wire: Wire,
}

impl Invocation {
    /// When it will be ended if it is not done by then, if ever.
    pub fn deadline(&self) -> Option<evenkeel_core::Timestamp> {
        self.definition.max_allowed_duration.map(|allowed| self.started_at.saturating_add(allowed))
    }
}

/// Resolves when a body has to end although it isn't done, with the reason.
async fn interrupted(cancel: &Cancel, lease: &mut Lease) -> CancelReason {
    tokio::select! {
        reason = cancel.cancelled() => reason,
        () = lease.expired() => CancelReason::LeaseLost,
    }
}
