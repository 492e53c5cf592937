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

/// Clock for checking tokens and measuring requests.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Renders all metrics as Prometheus text.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// The shared state, cheap to clone: every layer takes a copy.
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

/// The parts of the shared state.
pub struct AppParts {
    pub store: Arc<dyn Store>,
    pub jobs: Jobs,
    /// Places new jobs by load.
    pub balance: Arc<Balance>,
    /// Distribution and rebalancing.
    pub balancing: Balancing,
    pub runs: Runs,
    /// Callbacks of HTTP receivers.
    pub callbacks: Callbacks,
    pub run_ids: RunIds,
    pub pages: Pages,
    /// Events for listening clients.
    pub feed: Feed,
    /// Open server-sent event streams.
    pub streams: Streams,
    /// Authentication and the audit log.
    pub access: Arc<Access>,
    pub secrets: Arc<Secrets>,
    pub clock: Clock,
    pub metrics: RenderMetrics,
    /// Readiness of the rest of the process.
    pub ready: Arc<dyn Readiness>,
    /// Settings of the HTTP interface.
    pub settings: Settings,
}

/// Settings of the HTTP interface.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Serve metrics without a token.
    pub open_metrics: bool,
    /// Serve the OpenAPI document without a token.
    pub open_openapi: bool,
    /// Maximum duration of a request.
    pub request_timeout: Duration,
    /// Maximum time without new bytes of a body.
    pub body_idle: Duration,
    /// Maximum time to receive a body, except a stream of lines.
    pub body_total: Duration,
    /// Memory for all requests in flight, as received and as parsed, in bytes.
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
