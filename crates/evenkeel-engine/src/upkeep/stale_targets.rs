//! Triggers runs for targets that had no successful run for a long time. One node of the cluster
//! checks all targets at a fixed interval.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::chance::Chance;
use evenkeel_core::{AttemptKey, JobId, TenantNo, Timestamp};
use evenkeel_store::{
    EventJob, EventKind, NewEvent, Now, Role, Scope, Signal, StaleTarget, Store, StoreError,
    Trigger, Triggered,
};
use tracing::{debug, info};

use crate::cluster::node_context::NodeContext;
use crate::cluster::store_health::log_trouble;
use crate::settings::Staleness;

/// Targets per query.
const STEP: u32 = 500;
/// Maximum number of triggered runs per pass, as a multiple of the limit per tenant.
const TENANTS_SERVED: u32 = 10;
/// Maximum interval between two reads of the database's clock, which may be set forward.
const WAIT_MAX: Duration = Duration::from_secs(600);

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct StalePass {
    /// Number of targets without a recent successful run.
    pub stale: u32,
    /// Number of stale targets for which a run was triggered.
    pub triggered: u32,
    /// Number of stale targets that already have a queued, active or due run.
    pub busy: u32,
    /// Number of stale targets without an active job.
    pub without_job: u32,
    /// True if the limit per pass or per tenant was reached. The next pass resumes at the target
    /// where this pass stopped.
    pub limit_reached: bool,
}

pub struct StaleChecker {
    store: Arc<dyn Store>,
    chance: Arc<dyn Chance>,
    settings: Staleness,
    /// The tenant and target at which the last pass stopped.
    at: Option<(TenantNo, i64)>,
    /// Tenants that reached their limit, with the target at which the next pass resumes.
    limited_tenants: BTreeMap<TenantNo, i64>,
}

impl StaleChecker {
    pub fn new(store: Arc<dyn Store>, chance: Arc<dyn Chance>, settings: Staleness) -> Self {
        Self { store, chance, settings, at: None, limited_tenants: BTreeMap::new() }
    }

    /// Checks all targets at `now`, beginning where the last pass stopped. Triggers a run for each
    /// stale target that has no queued or active run.
    pub async fn run_once(&mut self, now: Timestamp) -> Result<StalePass, StoreError> {
        let mut pass = StalePass::default();
        let Some(after) = self.settings.after else { return Ok(pass) };
        let passed = self.go_through(now, now.saturating_sub(after), &mut pass).await;
        if pass.triggered > 0 {
            // If the signal is lost, schedulers find the triggered runs at their next poll.
            let _ = self.store.announce(Signal::Jobs).await;
        }
        metrics::counter!("evenkeel_stale_targets_triggered_total")
            .increment(pass.triggered.into());
        passed?;
        metrics::gauge!("evenkeel_stale_targets").set(pass.stale);
        log_pass(&pass);
        Ok(pass)
    }

    async fn go_through(
        &mut self,
        now: Timestamp,
        before: Timestamp,
        pass: &mut StalePass,
    ) -> Result<(), StoreError> {
        let in_all = self.settings.batch.saturating_mul(TENANTS_SERVED);
        // The current tenant, the first target of the tenant in this pass, and the number of runs
        // triggered for the tenant.
        let mut tenant: Option<(TenantNo, i64, u32)> = None;
        'step: loop {
            let found = self.store.stale_targets(before, self.at, STEP).await?;
            for target in found.targets {
                let (of, number) = (target.tenant, target.number);
                let (from, asked) = match &mut tenant {
                    Some((served, from, asked)) if *served == of => (*from, asked),
                    other => {
                        let from = self.limited_tenants.remove(&of).unwrap_or(0);
                        (from, &mut other.insert((of, from, 0)).2)
                    }
                };
                if number <= from {
                    self.at = Some((of, from));
                    continue 'step;
                }
                if *asked >= self.settings.batch {
                    pass.limit_reached = true;
                    self.limited_tenants.insert(of, number - 1);
                    self.at = Some((of, i64::MAX));
                    continue 'step;
                }
                if pass.triggered >= in_all {
                    pass.limit_reached = true;
                    return Ok(());
                }
                pass.stale += 1;
                let is_due = target.next_at.is_some_and(|next_at| next_at <= now);
                match target.job {
                    _ if target.is_live || is_due => pass.busy += 1,
                    None => pass.without_job += 1,
                    Some(job) => match self.trigger(&target, job, now).await? {
                        Triggered::Accepted(key) => {
                            pass.triggered += 1;
                            *asked += 1;
                            self.emit_requested(of, job, key);
                        }
                        // Another request has triggered the job, or the job was stopped, since the
                        // target was read.
                        Triggered::Busy | Triggered::Duplicate { .. } => pass.busy += 1,
                        Triggered::NotFound | Triggered::NotAllowed(_) => pass.without_job += 1,
                    },
                }
                self.at = Some((of, number));
            }
            self.at = found.next;
            if self.at.is_none() {
                return Ok(());
            }
        }
    }

    async fn trigger(
        &self,
        target: &StaleTarget,
        job: JobId,
        now: Timestamp,
    ) -> Result<Triggered, StoreError> {
        let scope = Scope { tenant: target.tenant, role: Role::Operator };
        let n = self.chance.bits() as u32;
        let trigger = Trigger { n, priority: Some(self.settings.priority), idle_only: false };
        self.store.trigger(&scope, job, trigger, Now::At(now)).await
    }

    fn emit_requested(&self, tenant: TenantNo, job: JobId, run: AttemptKey) {
        let events = self.store.events();
        if events.has_listeners() {
            let (kind, job, at) = (EventKind::RunRequested, EventJob::Id(job), run.scheduled_at);
            events.emit([NewEvent { kind, tenant, job, run: Some(run), at, data: "{}".into() }]);
        }
    }

    /// The targets are checked at whole multiples of the interval since 1970, so a restart or a
    /// change of the housekeeping node does not change the number of checks.
    pub async fn run(mut self, ctx: Arc<NodeContext>) {
        let every = self.settings.every.as_micros().max(1).cast_signed();
        let turn_of = |now: Timestamp| now.as_micros().div_euclid(every);
        let mut done = turn_of(ctx.db_now());
        loop {
            let ahead = (done + 1).saturating_mul(every) - ctx.db_now().as_micros();
            let wait = Duration::from_micros(ahead.max(0).cast_unsigned());
            if !ctx.pause(wait.min(WAIT_MAX).max(ctx.settings.poll)).await {
                return;
            }
            let now = ctx.db_now();
            if !ctx.is_housekeeper() {
                // Only the housekeeping node exports the number of stale targets.
                metrics::gauge!("evenkeel_stale_targets").set(0);
            }
            if turn_of(now) <= done {
                continue;
            }
            if ctx.is_housekeeper()
                && let Err(error) = self.run_once(now).await
            {
                log_trouble(&error, "checking for stale targets failed; will retry");
                continue;
            }
            done = turn_of(now);
        }
    }
}

fn log_pass(pass: &StalePass) {
    let StalePass { stale, triggered, busy, without_job, limit_reached } = *pass;
    if stale == 0 {
        debug!("no target is stale");
        return;
    }
    info!(
        targets.stale = stale,
        targets.triggered = triggered,
        targets.busy = busy,
        targets.without_job = without_job,
        limit_reached,
        "triggered runs for targets without a recent success"
    );
}

#[cfg(test)]
mod tests;
