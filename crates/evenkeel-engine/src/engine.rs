//! Starts a node, and lets it rejoin the cluster after it was fenced (declared dead).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_core::RunIds;
use evenkeel_core::chance::Chance;
use evenkeel_core::lease::LeaseTimingsError;
use evenkeel_executors::Registry;
use evenkeel_store::{Store, StoreError};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::error;

use crate::clock::Clock;
use crate::cluster::node_context::{Backoff, NodeContext};
use crate::cluster::node_session::NodeSession;
use crate::cluster::store_health::log_trouble;
use crate::settings::Settings;
use crate::sync::lock;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the lease settings contradict each other")]
    Leases(#[from] LeaseTimingsError),
    #[error("the node could not join the cluster")]
    Join(#[source] StoreError),
}

#[derive(Clone)]
pub struct EngineParts {
    pub store: Arc<dyn Store>,
    pub registry: Arc<Registry>,
    pub settings: Settings,
    pub clock: Arc<dyn Clock>,
    pub chance: Arc<dyn Chance>,
    pub run_ids: RunIds,
}

/// A running node. Dropping an `Engine` aborts all its loops and running attempts at once, as a
/// crash would.
pub struct Engine {
    current: Arc<Mutex<Option<Arc<NodeContext>>>>,
    drain: watch::Sender<Option<Duration>>,
    task: JoinHandle<()>,
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Engine {
    /// Joins the cluster and starts all loops.
    pub async fn start(parts: EngineParts) -> Result<Self, StartError> {
        let mut parts = parts;
        parts.settings.leases = parts.settings.leases.validate()?;
        let first = NodeSession::begin(&parts).await.map_err(StartError::Join)?;
        let current = Arc::new(Mutex::new(Some(Arc::clone(&first.context))));
        let drain = watch::Sender::new(None);
        let task = tokio::spawn(supervise(parts, first, Arc::clone(&current), drain.subscribe()));
        Ok(Self { current, drain, task })
    }

    /// Returns the shared state of the node's session, or `None` while the node rejoins the
    /// cluster.
    pub fn context(&self) -> Option<Arc<NodeContext>> {
        lock(&self.current).clone()
    }

    pub fn probe(&self) -> HealthProbe {
        HealthProbe { current: Arc::clone(&self.current) }
    }

    /// Stops starting runs and waits up to `grace` for running attempts to finish. After `grace`,
    /// cancels and requeues the attempts that still run, and leaves the cluster.
    pub async fn drain(mut self, grace: Duration) {
        self.drain.send_replace(Some(grace));
        // The engine's task always finishes, because every wait of a drain has a time limit.
        let _ = (&mut self.task).await;
    }
}

/// Reports the health of an engine. A `HealthProbe` works even after its engine was dropped.
#[derive(Clone)]
pub struct HealthProbe {
    current: Arc<Mutex<Option<Arc<NodeContext>>>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Health {
    /// True if the node has joined the cluster, holds its lease and is not draining.
    pub ready: bool,
    pub node: Option<i32>,
    /// Number of running attempts.
    pub bodies: usize,
    /// Maximum number of running attempts.
    pub workers: usize,
}

impl HealthProbe {
    pub fn health(&self) -> Health {
        match &*lock(&self.current) {
            Some(ctx) => Health {
                ready: ctx.may_start(),
                node: Some(ctx.node.0),
                bodies: ctx.worker.slots.busy(),
                workers: ctx.worker.slots.total(),
            },
            None => Health { ready: false, node: None, bodies: 0, workers: 0 },
        }
    }
}

/// Runs the node's sessions until the engine is drained. After the node was declared dead (fenced),
/// it begins a new session.
async fn supervise(
    parts: EngineParts,
    first: NodeSession,
    current: Arc<Mutex<Option<Arc<NodeContext>>>>,
    mut drain: watch::Receiver<Option<Duration>>,
) {
    let set = |context: Option<Arc<NodeContext>>| {
        *lock(&current) = context;
    };
    let mut session = first;
    loop {
        let shared = Arc::clone(&session.context);
        let grace = tokio::select! {
            biased;
            grace = drain.wait_for(Option::is_some) => grace.map_or(None, |grace| *grace),
            () = shared.fenced.notified() => None,
            () = session.loop_ended() => {
                error!("a background loop of this node ended unexpectedly; the node rejoins the cluster");
                None
            }
        };
        if let Some(grace) = grace {
            session.drain(grace).await;
            return set(None);
        }
        // Dropping the session aborts its loops and running attempts.
        set(None);
        drop(session);
        session = tokio::select! {
            biased;
            _ = drain.wait_for(Option::is_some) => return,
            session = next_session(&parts) => session,
        };
        set(Some(Arc::clone(&session.context)));
    }
}

async fn next_session(parts: &EngineParts) -> NodeSession {
    let mut backoff = Backoff::default();
    loop {
        match NodeSession::begin(parts).await {
            Ok(session) => return session,
            Err(error) => {
                log_trouble(&error, "this node could not join the cluster; will retry");
                tokio::time::sleep(backoff.next()).await;
            }
        }
    }
}
