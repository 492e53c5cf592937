//! Says that this node lives, and notices when it may not any more.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use evenkeel_core::Timestamp;
use evenkeel_executors::CancelReason;
use evenkeel_store::{Ping, Pinged, Signal, StoreError};
use tracing::{error, info};

use crate::cluster::node_context::{Backoff, NodeContext, instant_now, signalled};
use crate::cluster::store_health::log_trouble;

/// A process that notices the end of its lease so late did not run meanwhile.
const FROZEN: Duration = Duration::from_secs(1);

/// Pings the store, and ends all bodies when the lease can no longer be counted on.
pub struct Heartbeat {
    ctx: Arc<NodeContext>,
    /// The lease ran out and the bodies were ended; a ping has not come through since.
    lost: bool,
    /// What the store's clock said at the last ping that came through.
    pinged_at: Option<Timestamp>,
}

impl Heartbeat {
    /// The heartbeat of this incarnation.
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, lost: false, pinged_at: None }
    }

    /// Pings once. Says whether the node is still alive.
    pub async fn run_once(&mut self) -> Result<bool, StoreError> {
        let ctx = Arc::clone(&self.ctx);
        let long_after = ctx.settings.long_run_after;
        let announcing =
            ctx.low_watermark.announce(|| ctx.worker.oldest_open(long_after), ctx.db_now());
        // In doubt, something older may be open that this node does not know of.
        let hold = ctx.may_own_unknown_attempts();
        let ping = Ping {
            node: ctx.node,
            oldest_open: announcing.oldest_open.filter(|_| !hold),
            long_runs: ctx.worker.long_runs(long_after),
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
                    info!(node.no = ctx.node.0, "the store answers again; work goes on");
                    // What the bodies were doing is still ours in the store, and nobody does it.
                    ctx.request_reconcile();
                }
                Ok(true)
            }
            Pinged::Fenced => {
                error!(
                    node.no = ctx.node.0,
                    "this node was silent for too long and has lost its work; it starts anew"
                );
                self.end_bodies();
                ctx.fenced.notify_one();
                Ok(false)
            }
        }
    }

    /// Silent for long enough, others looked after this node's shards and took note of changes
    /// there that it will not be told again.
    fn note_own_silence(&mut self, now: Timestamp) {
        let silent_after = self.ctx.settings.leases.silent_after;
        let before = self.pinged_at.replace(now);
        if before.is_some_and(|before| now.since(before) > silent_after) {
            self.ctx.shard_absences.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn end_bodies(&self) {
        self.ctx.worker.cancel_all(CancelReason::LeaseLost);
    }

    /// Runs until the node is fenced.
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
                    log_trouble(&error, "the ping failed; will retry");
                    backoff.next()
                }
                None => Duration::ZERO,
            };
            if !self.lost && !ctx.lease.holds(instant_now()) {
                self.lost = true;
                let bodies = ctx.worker.busy_count();
                // Its timer was set to the end of the lease: if that is long ago, nothing ran here.
                let overdue = ctx.lease.until().map(|until| instant_now() - until);
                let was_frozen = overdue.is_some_and(|overdue| overdue > FROZEN);
                ctx.worker.was_frozen.store(was_frozen, Ordering::Release);
                error!(
                    bodies.count = bodies,
                    "the store has not answered for too long: ending {bodies} bodies before \
                     anybody else can start them"
                );
                self.end_bodies();
            }
            tokio::select! {
                biased;
                () = lease_end(ctx.lease.until()), if !self.lost => {}
                () = signalled(&mut signals, Signal::Nodes), if store_answers(wait, &ctx) => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

/// A change among the nodes is worth an early ping, but only while the store answers.
fn store_answers(wait: Duration, ctx: &NodeContext) -> bool {
    wait == Duration::from(ctx.settings.leases.ping)
}

async fn lease_end(until: Option<tokio::time::Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
