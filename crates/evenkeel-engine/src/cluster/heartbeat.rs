//! Renews the node's lease by pinging the store. Cancels all running attempts if the lease is about
//! to expire.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use evenkeel_core::Timestamp;
use evenkeel_executors::CancelReason;
use evenkeel_store::{Ping, Pinged, Signal, StoreError};
use tracing::{error, info};

use crate::cluster::node_context::{Backoff, NodeContext, instant_now, signalled};
use crate::cluster::store_health::log_trouble;

/// If the heartbeat loop notices the end of the lease more than 1 s late, the process was
/// suspended.
const FROZEN: Duration = Duration::from_secs(1);

pub struct Heartbeat {
    ctx: Arc<NodeContext>,
    /// True if the lease expired, all running attempts were cancelled, and no ping has succeeded
    /// since.
    lost: bool,
    /// Database time of the last successful ping.
    pinged_at: Option<Timestamp>,
}

impl Heartbeat {
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, lost: false, pinged_at: None }
    }

    /// Pings once. Returns false if the node was fenced.
    pub async fn run_once(&mut self) -> Result<bool, StoreError> {
        let ctx = Arc::clone(&self.ctx);
        let long_after = ctx.settings.long_run_after;
        let announcing =
            ctx.low_watermark.announce(|| ctx.worker.oldest_open(long_after), ctx.db_now());
        // While this node may own older attempts that it does not know of, its ping must not raise
        // the low watermark (the oldest scheduled time of its open attempts).
        let hold = ctx.may_own_unknown_attempts();
        let ping = Ping {
            node: ctx.node,
            oldest_open: announcing.oldest_open.filter(|_| !hold),
            long_attempts: ctx.worker.long_attempts(long_after),
        };
        let sent = instant_now();
        let pinged = ctx.store.ping(&ping, NodeContext::NOW).await?;
        drop(announcing);
        match pinged {
            Pinged::Alive { now, members } => {
                ctx.lease.renew(sent, ctx.settings.leases.bodies_must_end_after().into());
                ctx.db_clock.observe(now);
                self.note_own_silence(now);
                ctx.members.send_if_modified(|known| {
                    let changed = *known != members;
                    *known = members;
                    changed
                });
                if std::mem::take(&mut self.lost) {
                    info!(node.no = ctx.node.0, "store is reachable again; this node resumes work");
                    // In the store this node still owns the cancelled attempts, so the reconciler
                    // must requeue them.
                    ctx.request_reconcile();
                }
                Ok(true)
            }
            Pinged::Fenced => {
                error!(
                    node.no = ctx.node.0,
                    "other nodes declared this node dead because its pings stopped; this node cancels its attempts and rejoins the cluster"
                );
                ctx.worker.cancel_all(CancelReason::LeaseLost);
                ctx.fenced.notify_one();
                Ok(false)
            }
        }
    }

    /// If this node did not ping for a long time, other nodes have taken over its shards. The store
    /// reports each change of a job to one node only, so a node without pings may miss changes.
    fn note_own_silence(&mut self, now: Timestamp) {
        let silent_after = self.ctx.settings.leases.silent_after;
        let before = self.pinged_at.replace(now);
        if before.is_some_and(|before| now.since(before) > silent_after) {
            self.ctx.shard_absences.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub async fn run(mut self) {
        let ctx = Arc::clone(&self.ctx);
        let mut signals = ctx.store.signals().subscribe();
        let mut backoff = Backoff::default();
        loop {
            let last_hold = ctx.lease.until();
            let pinged = tokio::select! {
                biased;
                pinged = self.run_once() => Some(pinged),
                () = lease_end(last_hold), if !self.lost => None,
            };
            let wait = match pinged {
                Some(Ok(true)) => {
                    backoff.reset();
                    Duration::from(ctx.settings.leases.ping)
                }
                Some(Ok(false)) => return,
                Some(Err(error)) => {
                    log_trouble(&error, "renewing the lease of this node failed; will retry");
                    backoff.next()
                }
                None => Duration::ZERO,
            };
            if !self.lost && !ctx.lease.holds(instant_now()) {
                self.lost = true;
                let bodies = ctx.worker.busy_count();
                let overdue = ctx.lease.until().map(|until| instant_now() - until);
                let was_frozen = overdue.is_some_and(|overdue| overdue > FROZEN);
                ctx.worker.was_frozen.store(was_frozen, Ordering::Release);
                error!(
                    bodies.count = bodies,
                    "store was unreachable for too long; cancelling all attempts of this node before other nodes start them again"
                );
                ctx.worker.cancel_all(CancelReason::LeaseLost);
            }
            // If the last ping succeeded, a change of the cluster members may cause an early ping.
            let store_answers = wait == Duration::from(ctx.settings.leases.ping);
            tokio::select! {
                biased;
                () = lease_end(ctx.lease.until()), if !self.lost => {}
                () = signalled(&mut signals, Signal::Nodes), if store_answers => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

async fn lease_end(until: Option<tokio::time::Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
