//! State shared by all handlers.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_access::Access;
use evenkeel_commands::{Balance, Balancing, Callbacks, Feed, Jobs, Pages, Runs};
use evenkeel_core::{RunIds, Timestamp};
use evenkeel_secrets::Secrets;
use evenkeel_store::Store;

use crate::cursor::{CursorKey, encode};
use crate::health::Readiness;
use crate::memory::Memory;
use crate::streams::Streams;

/// Clock for the expiry of tokens and the duration of requests.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Renders all metrics as Prometheus text.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// State shared by all handlers; cheap to clone, so every layer holds a copy.
#[derive(Clone)]
pub(crate) struct App(Arc<(AppParts, Memory)>);

impl App {
    pub(crate) fn new(parts: AppParts) -> Self {
        let memory = Memory::new(parts.settings.request_memory);
        Self(Arc::new((parts, memory)))
    }

    /// Encodes the cursor of the next page as text.
    pub(crate) fn cursor<C: CursorKey>(&self, next: Option<C>) -> Option<String> {
        next.map(|key| encode(key, &self.run_ids))
    }

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

/// The parts from which the shared state is built.
pub struct AppParts {
    pub store: Arc<dyn Store>,
    pub jobs: Jobs,
    /// Chooses start times for new jobs, so that runs are spread evenly over time.
    pub balance: Arc<Balance>,
    /// Reports how runs are spread over time, and rebalances jobs.
    pub balancing: Balancing,
    pub runs: Runs,
    /// Handles callbacks of services that execute a run over HTTP.
    pub callbacks: Callbacks,
    pub run_ids: RunIds,
    pub pages: Pages,
    /// Events that event streams send to clients.
    pub feed: Feed,
    /// Open server-sent event streams.
    pub streams: Streams,
    /// Authentication and the audit log.
    pub access: Arc<Access>,
    pub secrets: Arc<Secrets>,
    pub clock: Clock,
    pub metrics: RenderMetrics,
    /// Readiness checks of parts of the process outside the API, such as the engine.
    pub ready: Arc<dyn Readiness>,
    /// Settings of the HTTP interface.
    pub settings: Settings,
}

/// Settings of the HTTP interface.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// True if metrics are served without a token.
    pub open_metrics: bool,
    /// True if the OpenAPI document is served without a token.
    pub open_openapi: bool,
    /// Maximum duration of a request.
    pub request_timeout: Duration,
    /// Maximum time to wait for the next bytes of a request body.
    pub body_idle: Duration,
    /// Maximum time to receive a request body; a stream of job lines is exempt.
    pub body_total: Duration,
    /// Memory for the bodies and the parsed JSON of all requests in progress, in bytes.
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
