//! Executors run the attempts of jobs: HTTP calls, crawls and programs.
//!
//! The engine gives an [`Executor`] an [`Invocation`] (one attempt) and gets back a [`Report`] with
//! the result. Executors do not use the store, because the invocation holds all data that an
//! attempt needs.
//!
//! | executor | folder | does |
//! |---|---|---|
//! | [`HttpExecutor`] | `http` | makes one HTTP call |
//! | [`CrawlExecutor`] | `crawl` | crawls a web site |
//! | [`ShellExecutor`] | `shell`, [`supervisor`] | runs one program under a supervisor process |
//! | [`NoopExecutor`] | `noop` | does nothing, or sleeps and fails as configured |
//! | [`NoExecutor`] | `none` | fails jobs that have nothing to run |
//!
//! Each executor declares its name, aliases, configuration fields and what viewers may see of them
//! in an [`ExecutorDeclaration`] next to its code; [`CATALOG`] lists the declarations. The
//! [`Registry`] holds the executors that a node has enabled.
//!
//! Shared modules: [`LiveReport`] carries progress, log and checkpoints from a running attempt to
//! the engine; [`Cancel`] and [`Lease`] stop an attempt early; `template` fills in `{{payload.x}}`;
//! [`WithSecrets`] fills in secrets and masks them in the output.
//!
//! An attempt may run twice after a crash. Executors pass the run's id, the attempt number and the
//! fence to the program or server that they call, so that it can recognise a repeated attempt.

mod cancel;
mod crawl;
mod http;
mod lease;
mod live_report;
mod log_buffer;
mod none;
mod noop;
mod permit;
mod registry;
mod report;
mod secrets;
mod shell;
pub mod supervisor;
mod tail;
mod template;

use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_core::executor::ExecutorCatalog;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptId, AttemptKey, Definition, JobNo, RunIds, TenantNo, Timestamp};
use serde_json::Value;

pub use cancel::{Cancel, CancelHandle, CancelReason, cancellation};
pub use crawl::{CrawlExecutor, PageArchives};
pub use evenkeel_core::executor::{ConfigFault, ExecutorDeclaration};
pub use evenkeel_crawler::{ArchiveError, CrawlerSettings, PageArchive};
pub use http::{HttpExecutor, HttpSettings, Identities, SigningKeys, WallClock};
pub use lease::Lease;
pub use live_report::{CHECKPOINT_BYTES_MAX, CheckpointTooLarge, LiveReport, LiveUpdate};
pub use log_buffer::LOG_BYTES_DEFAULT;
pub use none::NoExecutor;
pub use noop::{DECLARATION as NOOP, NoopExecutor, Rehearsal, rehearse};
pub use registry::Registry;
pub use report::Report;
pub use secrets::WithSecrets;
pub use shell::{
    CgroupUse, Containment, NoCgroup, NoSandbox, SandboxSettings, ShellExecutor, ShellSettings,
    SupervisorCommand, is_root, is_user, nobody, try_sandbox,
};
pub use tail::TAIL_BYTES_MAX;

/// The declarations of all executors that jobs can name. The server's configuration decides which
/// executors are enabled.
pub static CATALOG: ExecutorCatalog = ExecutorCatalog::new(&[
    &crawl::DECLARATION,
    &http::DECLARATION,
    &noop::DECLARATION,
    &shell::DECLARATION,
]);

/// Runs the attempts of all jobs with one `executor_type`.
#[async_trait]
pub trait Executor: Send + Sync + 'static {
    fn declaration(&self) -> &'static ExecutorDeclaration;

    /// Refuses an invalid configuration when a job of `tenant` is created or changed. Templates in
    /// `config` may refer to values in `payload`.
    fn check(&self, tenant: TenantNo, config: &Value, payload: &Value) -> Result<(), ConfigFault>;

    /// Runs one attempt and returns its result. The executor stops the attempt early if it is
    /// cancelled, if its lease runs out, or if the future is dropped.
    async fn run(&self, invocation: Invocation) -> Report;
}

/// One attempt to run, with all data that the executor may use.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The attempt: its job, scheduled time and number.
    pub key: AttemptKey,
    /// The public id of the attempt, which the program or the receiver of the HTTP call gets.
    pub id: AttemptId,
    /// The fence of the attempt. The receiver of a call can refuse messages with a lower fence.
    pub fence: Fence,
    pub tenant: TenantNo,
    /// The time at which the node claimed the attempt.
    pub started_at: Timestamp,
    pub definition: Arc<Definition>,
    /// The checkpoint that an earlier attempt of the same run has saved.
    pub checkpoint: Option<Vec<u8>>,
    pub cancel: Cancel,
    pub lease: Lease,
    pub live: LiveReport,
}

impl Invocation {
    /// Returns an example attempt that belongs to no cluster, for tests.
    pub fn example(definition: Definition) -> Self {
        let started_at = Timestamp::from_micros(1);
        let key = AttemptKey::regular(JobNo(7), started_at);
        Self {
            key,
            id: RunIds::new(b"example").attempt_id(key),
            fence: Fence(5),
            tenant: TenantNo(1),
            started_at,
            definition: Arc::new(definition),
            checkpoint: None,
            cancel: Cancel::none(),
            lease: Lease::endless(),
            live: LiveReport::default(),
        }
    }

    /// Returns the time at which the engine will cancel the attempt, if the job has
    /// `max_allowed_duration`.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.definition.max_allowed_duration.map(|allowed| self.started_at.saturating_add(allowed))
    }
}

/// Completes with the reason when the attempt is cancelled or its lease runs out.
async fn interrupted(cancel: &Cancel, lease: &mut Lease) -> CancelReason {
    tokio::select! {
        reason = cancel.cancelled() => reason,
        () = lease.expired() => CancelReason::LeaseLost,
    }
}
