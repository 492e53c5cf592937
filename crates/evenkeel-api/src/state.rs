//! What the handlers share.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_access::Access;
use evenkeel_commands::{Balance, Balancing, Callbacks, Feed, Jobs, Pages, Runs};
use evenkeel_core::{RunIds, Timestamp};
use evenkeel_secrets::Secrets;
use evenkeel_store::Store;

use crate::health::Readiness;
use crate::memory::Memory;
use crate::page::{CursorKey, encode};
use crate::streams::Streams;

/// Says what time it is, to judge tokens and measure requests by.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Writes all metrics as Prometheus text.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// All that the handlers need, for each of them: every layer that a request passes takes one along.
#[derive(Clone)]
pub(crate) struct App(Arc<(AppParts, Memory)>);

impl App {
    pub(crate) fn new(parts: AppParts) -> Self {
        let memory = Memory::new(parts.settings.request_memory);
        Self(Arc::new((parts, memory)))
    }

    /// Returns the text of a page cursor.
    pub(crate) fn cursor<C: CursorKey>(&self, next: Option<C>) -> Option<String> {
        next.map(|key| encode(key, &self.run_ids))
    }

    /// The memory that all requests may take together.
    pub(crate) fn memory(&self) -> &Memory {
        &self.0.1
    }
}

impl Deref for App {
    type Target = AppParts;

    fn deref(&self) -> &AppParts {
        &self.0.0
    }
}

/// All that the handlers need.
pub struct AppParts {
    /// To ask whether it answers.
    pub store: Arc<dyn Store>,
    /// Commands on jobs.
    pub jobs: Jobs,
    /// Where load lies; places the jobs that commands create.
    pub balance: Arc<Balance>,
    /// How load is spread, and moving it.
    pub balancing: Balancing,
    /// Questions about runs.
    pub runs: Runs,
    /// Words from those who were called.
    pub callbacks: Callbacks,
    pub run_ids: RunIds,
    /// Questions about crawled pages.
    pub pages: Pages,
    /// What happens, for those who listen.
    pub feed: Feed,
    /// Answers that go on.
    pub streams: Streams,
    /// Who may come in, and who did what.
    pub access: Arc<Access>,
    /// Named secrets.
    pub secrets: Arc<Secrets>,
    /// The time.
    pub clock: Clock,
    /// The metrics.
    pub metrics: RenderMetrics,
    /// How the rest of the process is.
    pub ready: Arc<dyn Readiness>,
    /// What the operator chose.
    pub settings: Settings,
}

/// What the operator chose.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// May metrics be read without a token?
    pub open_metrics: bool,
    /// May the OpenAPI document be read without a token?
    pub open_openapi: bool,
    /// A request that takes longer is given up.
    pub request_timeout: Duration,
    /// A body of which nothing more comes for this long is given up.
    pub body_idle: Duration,
    /// A body that is not there after this time is given up, a stream of lines excepted.
    pub body_total: Duration,
    /// Bytes that all requests in flight may take together, as received and as parsed.
    pub request_memory: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            open_metrics: false,
            open_openapi: false,
            request_timeout: Duration::from_secs(30),
            body_idle: Duration::from_secs(10),
            body_total: Duration::from_secs(25),
            request_memory: 256 * 1024 * 1024,
        }
    }
}
