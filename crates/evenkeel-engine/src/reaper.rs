//! Takes over the work of nodes that are gone.

use std::sync::Arc;

use evenkeel_core::chain::end_of_failed;
use evenkeel_core::lease::{LeaseVerdict, StealWatch};
use evenkeel_core::on_failure::{DeathReason, Hook, hook_of_dead};
use evenkeel_core::run::{Event, RunState, step};
use evenkeel_core::{Definition, NodeNo, RunKey, TenantNo, Timestamp};
use evenkeel_store::{
    Finish, FinishResult, Member, NewEvent, NodeState, Owned, Requeue, Signal, StoreError,
};
use tracing::{error, info, warn};

use crate::attempt::{refused, requeue_of};
use crate::incarnation::Incarnation;
use crate::pauser;
use crate::trouble::log_trouble;

/// Attempts taken over in one step.
const STEP: u32 = 500;

/// Challenges silent nodes, declares them dead, and gives their attempts to others.
pub struct Reaper {
    life: Arc<Incarnation>,
    watch: StealWatch,
}

impl Reaper {
    /// A reaper of this incarnation.
    pub fn new(life: Arc<Incarnation>) -> Self {
        Self { life, watch: StealWatch::default() }
    }

    /// Looks at all other nodes once.
    pub async fn run_once(&mut self) -> Result<(), StoreError> {
        let (now, members) = self.life.store.members().await?;
        self.life.db_clock.observe(now);
        let nodes: Vec<NodeNo> = members.iter().map(|member| member.node).collect();
        self.watch.retain(&nodes);
        let me = self.life.node;
        let mut trouble = Ok(());
        for member in members.iter().filter(|member| member.node != me) {
            let done = match member.state {
                NodeState::Live | NodeState::Draining => self.judge(member, now).await,
                NodeState::Dead => self.take_over(member).await,
                NodeState::Gone => Ok(()),
            };
            // One node's trouble is not the others'; an outage is everybody's.
            match done {
                Err(error) if error.is_outage() => return Err(error),
                Err(error) => trouble = Err(error),
                Ok(()) => {}
            }
        }
        trouble
    }

    async fn judge(&mut self, member: &Member, now: Timestamp) -> Result<(), StoreError> {
        let leases = self.life.settings.leases;
        let own_now = self.life.clock.monotonic();
        let store = &self.life.store;
        match self.watch.judge(leases, member.lease(), now, own_now) {
            LeaseVerdict::Leave => Ok(()),
            LeaseVerdict::BeginSteal => {
                let silent_after = leases.silent_after;
                if store.begin_steal(member.node, silent_after, Incarnation::NOW).await? {
                    warn!(
                        node.no = member.node.0,
                        node.name = member.name,
                        "node {} is silent; its work is taken over unless it answers",
                        member.name
                    );
                }
                Ok(())
            }
            LeaseVerdict::Steal => {
                let Some(challenged_at) = member.steal_start_at else { return Ok(()) };
                let stolen =
                    store.steal(member.node, challenged_at, leases.grace, Incarnation::NOW).await?;
                if stolen {
                    metrics::counter!("evenkeel_nodes_lost_total").increment(1);
                    error!(
                        node.no = member.node.0,
                        node.name = member.name,
                        "node {} is lost",
                        member.name
                    );
                    let _ = store.announce(Signal::Nodes).await;
                    self.take_over(member).await?;
                }
                Ok(())
            }
        }
    }

    /// Gives all attempts of a dead node to others, then lets it go.
    async fn take_over(&self, dead: &Member) -> Result<(), StoreError> {
        let store = &self.life.store;
        let mut taken = 0;
        loop {
            let owned = store.owned(dead.node, STEP).await?;
            if owned.is_empty() {
                break;
            }
            let (requeues, finishes) = self.decide(dead, owned);
            let lock_age = self.life.db_now().since(dead.last_ping_at);
            let taken_over: Vec<(RunKey, TenantNo)> =
                requeues.iter().map(|requeue| (requeue.key, requeue.tenant)).collect();
            let given_up = finishes.clone();
            let back = store.requeue(dead.node, requeues, Incarnation::NOW).await?;
            let ended = store.finish(dead.node, finishes, self.life.settings.alpha).await?;
            for ((key, tenant), _) in taken_over.iter().zip(&back).filter(|(_, back)| **back) {
                self.life.notices.taken_over(*key, lock_age);
                self.life.worker.tallies.stolen(*tenant);
            }
            self.life.worker.tallies.ended(&given_up, &ended);
            for (finish, _) in
                given_up.iter().zip(&ended).filter(|(_, end)| **end == FinishResult::Done)
            {
                self.life.worker.tallies.stolen(finish.tenant);
            }
            self.tell_given_up(&given_up, &ended);
            let done = back.into_iter().filter(|back| *back).count()
                + ended.into_iter().filter(|end| *end == FinishResult::Done).count();
            if done == 0 {
                // Another node is at it; the next pass sees how far it got.
                break;
            }
            taken += done;
        }
        if store.retire(dead.node).await? {
            info!(
                node.no = dead.node.0,
                runs.count = taken,
                "took over {taken} runs of lost node {}",
                dead.name
            );
        }
        if taken > 0 {
            metrics::counter!("evenkeel_runs_taken_over_total").increment(taken as u64);
            let _ = store.announce(Signal::Ready).await;
        }
        Ok(())
    }

    fn tell_given_up(&self, ends: &[Finish], results: &[FinishResult]) {
        for (end, result) in ends.iter().zip(results) {
            if *result == FinishResult::Done {
                let end = std::slice::from_ref(end);
                self.life.meters.ended(end);
                self.life.notices.ended(end);
                self.life.events.tell(end.iter().flat_map(NewEvent::of_end));
            }
        }
        if pauser::counts(ends) {
            self.life.failing.notify_one();
        }
    }

    /// What becomes of each attempt is decided by its job's policy.
    fn decide(&self, dead: &Member, owned: Vec<Owned>) -> (Vec<Requeue>, Vec<Finish>) {
        let (mut requeues, mut finishes) = (Vec::new(), Vec::new());
        for attempt in owned {
            let definition =
                self.life.definitions.read(attempt.key.job_no, &attempt.definition).ok();
            let state = RunState::Running {
                owner: dead.node,
                fence: attempt.fence,
                crashes: attempt.crashes,
            };
            let next = definition.as_ref().and_then(|definition| {
                let (then, max_crashes) = (definition.on_lost_worker, definition.max_crashes);
                step(state, Event::Stolen { from: dead.node, then, max_crashes }).ok()
            });
            match (next, definition) {
                (Some(RunState::Ready { .. }), Some(definition)) => {
                    let (now, aging) = (self.life.db_now(), &self.life.settings.aging);
                    requeues.push(requeue_of(&attempt, &definition, true, now, aging));
                }
                (_, definition) => {
                    finishes.push(self.give_up(dead, &attempt, definition.as_deref()));
                }
            }
        }
        (requeues, finishes)
    }

    fn give_up(&self, dead: &Member, attempt: &Owned, definition: Option<&Definition>) -> Finish {
        let lost = attempt.crashes + 1;
        let why = format!("its worker {} was lost; {lost} lost in all", dead.name);
        let refused = refused(attempt, &why);
        let finished_at = self.life.db_now().max(attempt.started_at);
        let end = |definition: &Definition| {
            let pause = definition.retry.pause_after(attempt.key.attempt);
            end_of_failed(definition, finished_at, pause)
        };
        let hook = definition.map_or(Hook::None, |definition| {
            hook_of_dead(&definition.on_failure, DeathReason::WorkerLost)
        });
        Finish { finished_at, then: definition.map_or(refused.then, end), hook, ..refused }
    }

    /// Runs until the node stops.
    pub async fn run(mut self) {
        let life = Arc::clone(&self.life);
        // Twice per ping, so that a silence is noticed soon after it is one.
        let every = std::time::Duration::from(life.settings.leases.ping) / 2;
        loop {
            if let Err(error) = self.run_once().await {
                if error.is_outage() {
                    self.watch.store_trouble();
                }
                log_trouble(&error, "looking for lost nodes failed; will retry");
            }
            if !life.pause(every).await {
                return;
            }
        }
    }
}
