//! A node at work, life after life.

use std::sync::{Arc, Mutex, PoisonError};
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

/// An engine that did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its settings do not fit together.
    #[error("the lease settings do not fit together")]
    Leases(#[from] LeaseTimingsError),
    /// The store refused it.
    #[error("the node could not join")]
    Join(#[source] StoreError),
}

/// What an engine is made of.
#[derive(Clone)]
pub struct EngineParts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// What can be run.
    pub registry: Arc<Registry>,
    /// How it is set up.
    pub settings: Settings,
    /// Its clocks.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub chance: Arc<dyn Chance>,
    pub run_ids: RunIds,
}

/// A node at work. Dropping it ends everything at once, as a crash would.
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
        let current = Arc::new(Mutex::new(Some(Arc::clone(&first.shared))));
        let drain = watch::Sender::new(None);
        let task = tokio::spawn(live(parts, first, Arc::clone(&current), drain.subscribe()));
        Ok(Self { current, drain, task })
    }

    /// The present life of the node; `None` between two.
    pub fn context(&self) -> Option<Arc<NodeContext>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A view of the engine for those who only look.
    pub fn probe(&self) -> HealthProbe {
        HealthProbe { current: Arc::clone(&self.current) }
    }

    /// Starts nothing more, lets bodies end for `grace`, gives back the rest, and leaves.
    pub async fn drain(mut self, grace: Duration) {
        self.drain.send_replace(Some(grace));
        // The task ends by itself: the grace and every wait in it are bounded.
        let _ = (&mut self.task).await;
    }
}

/// Looks at an engine from outside.
#[derive(Clone)]
pub struct HealthProbe {
    current: Arc<Mutex<Option<Arc<NodeContext>>>>,
}

/// How an engine is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Health {
    /// It takes part, its lease holds, and it is not draining.
    pub ready: bool,
    /// Its number among the nodes.
    pub node: Option<i32>,
    /// Bodies that run.
    pub bodies: usize,
    /// Bodies that could run.
    pub workers: usize,
}

impl HealthProbe {
    /// How the engine is now.
    pub fn health(&self) -> Health {
        match &*self.current.lock().unwrap_or_else(PoisonError::into_inner) {
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

/// Lives until told to drain; a node that was fenced starts a new life.
async fn live(
    parts: EngineParts,
    first: NodeSession,
    current: Arc<Mutex<Option<Arc<NodeContext>>>>,
    mut drain: watch::Receiver<Option<Duration>>,
) {
    let set = |ctx: Option<Arc<NodeContext>>| {
        *current.lock().unwrap_or_else(PoisonError::into_inner) = ctx;
    };
    let mut ctx = first;
    loop {
        let shared = Arc::clone(&ctx.shared);
        let grace = tokio::select! {
            biased;
            grace = drain.wait_for(Option::is_some) => grace.map_or(None, |grace| *grace),
            () = shared.fenced.notified() => None,
            () = ctx.loop_ended() => {
                error!("a loop of this node ended that should not have; the node starts anew");
                None
            }
        };
        if let Some(grace) = grace {
            ctx.drain(grace).await;
            return set(None);
        }
        // Dropping the old life ends its loops and its bodies.
        set(None);
        drop(ctx);
        ctx = tokio::select! {
            biased;
            _ = drain.wait_for(Option::is_some) => return,
            ctx = next_session(&parts) => ctx,
        };
        set(Some(Arc::clone(&ctx.shared)));
    }
}

async fn next_session(parts: &EngineParts) -> NodeSession {
    let mut backoff = Backoff::default();
    loop {
        match NodeSession::begin(parts).await {
            Ok(ctx) => return ctx,
            Err(error) => {
                log_trouble(&error, "the node could not join; will retry");
                tokio::time::sleep(backoff.next()).await;
            }
        }
    }
}
