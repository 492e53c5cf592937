//! Declares nodes without recent pings dead and takes over their attempts.

use std::sync::Arc;

use evenkeel_core::attempt::Loss;
use evenkeel_core::lease::{LeaseVerdict, StealWatch};
use evenkeel_core::{NodeNo, Timestamp};
use evenkeel_store::{Member, NodeState, Signal, StoreError};
use tracing::{error, info, warn};

use crate::cluster::lost_attempts::FormerOwner;
use crate::cluster::node_context::NodeContext;
use crate::cluster::store_health::log_trouble;

const STEP: u32 = 500;

pub struct Reaper {
    ctx: Arc<NodeContext>,
    watch: StealWatch,
}

impl Reaper {
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, watch: StealWatch::default() }
    }

    /// Checks all other nodes once.
    pub async fn run_once(&mut self) -> Result<(), StoreError> {
        let (now, members) = self.ctx.store.members().await?;
        self.ctx.db_clock.observe(now);
        let nodes: Vec<NodeNo> = members.iter().map(|member| member.node).collect();
        self.watch.retain(&nodes);
        let me = self.ctx.node;
        let mut trouble = Ok(());
        for member in members.iter().filter(|member| member.node != me) {
            let done = match member.state {
                NodeState::Live | NodeState::Draining => self.judge(member, now).await,
                NodeState::Dead => self.take_over(member).await,
                NodeState::Gone => Ok(()),
            };
            // An error while one node is checked must not stop the check of the other nodes. Only
            // an outage of the store ends the pass over all nodes.
            match done {
                Err(error) if error.is_outage() => return Err(error),
                Err(error) => trouble = Err(error),
                Ok(()) => {}
            }
        }
        trouble
    }

    async fn judge(&mut self, member: &Member, now: Timestamp) -> Result<(), StoreError> {
        let leases = self.ctx.settings.leases;
        let own_now = self.ctx.clock.monotonic();
        let store = &self.ctx.store;
        match self.watch.judge(leases, member.lease(), now, own_now) {
            LeaseVerdict::Leave => Ok(()),
            LeaseVerdict::BeginSteal => {
                let silent_after = leases.silent_after;
                if store.begin_steal(member.node, silent_after, NodeContext::NOW).await? {
                    warn!(
                        node.no = member.node.0,
                        node.name = member.name,
                        "another node has stopped pinging; its attempts will be taken over unless it pings again"
                    );
                }
                Ok(())
            }
            LeaseVerdict::Steal => {
                let Some(challenged_at) = member.steal_start_at else { return Ok(()) };
                let stolen =
                    store.steal(member.node, challenged_at, leases.grace, NodeContext::NOW).await?;
                if stolen {
                    metrics::counter!("evenkeel_nodes_lost_total").increment(1);
                    error!(
                        node.no = member.node.0,
                        node.name = member.name,
                        "another node is lost; taking over its attempts"
                    );
                    let _ = store.announce(Signal::Nodes).await;
                    self.take_over(member).await?;
                }
                Ok(())
            }
        }
    }

    /// Takes all attempts from a dead node, then marks the node as retired.
    async fn take_over(&self, dead: &Member) -> Result<(), StoreError> {
        let store = &self.ctx.store;
        let (node, heard_until) = (dead.node, dead.last_ping_at);
        let from = FormerOwner { node, name: &dead.name, heard_until };
        let mut taken = 0;
        loop {
            let owned = store.list_owned(dead.node, STEP).await?;
            if owned.is_empty() {
                break;
            }
            let died = |owned| from.requeue(&self.ctx, owned, Loss::NodeDied, None);
            let batch = owned.iter().map(died).collect();
            let lock_age = self.ctx.db_now().since(dead.last_ping_at);
            let given = from.give_back(&self.ctx, batch).await?;
            for requeue in &given.queued {
                self.ctx.run_log.taken_over(requeue.key, lock_age);
                self.ctx.worker.stats.taken_over(requeue.tenant);
            }
            for end in &given.failed {
                self.ctx.worker.stats.taken_over(end.tenant);
            }
            let done = given.count();
            if done == 0 {
                // Another node takes over the attempts of the same dead node at the same time. The
                // next pass of the reaper continues.
                break;
            }
            taken += done;
        }
        if store.retire(dead.node).await? {
            info!(
                node.no = dead.node.0,
                node.name = dead.name,
                runs.count = taken,
                "took over the attempts of a lost node"
            );
        }
        if taken > 0 {
            metrics::counter!("evenkeel_runs_taken_over_total").increment(taken as u64);
            let _ = store.announce(Signal::Ready).await;
        }
        Ok(())
    }

    pub async fn run(mut self) {
        let ctx = Arc::clone(&self.ctx);
        // Two passes per ping interval detect a missing ping early.
        let every = std::time::Duration::from(ctx.settings.leases.ping) / 2;
        loop {
            if let Err(error) = self.run_once().await {
                if error.is_outage() {
                    self.watch.store_trouble();
                }
                log_trouble(&error, "checking for lost nodes failed; will retry");
            }
            if !ctx.pause(every).await {
                return;
            }
        }
    }
}
