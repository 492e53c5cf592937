//! Triggers jobs of targets that have had no success for a long time. Runs at an interval, on one
//! node of the cluster.

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
/// Limit of triggered runs per pass, as a multiple of the limit per tenant.
const TENANTS_SERVED: u32 = 10;
/// The clock is read at least this often, because it may be set.
const WAIT_MAX: Duration = Duration::from_secs(600);

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct StalePass {
    /// Targets without a recent success.
    pub stale: u32,
    /// Stale targets for which a run was triggered.
    pub triggered: u32,
    /// Stale targets with a run that is queued, active or due.
    pub busy: u32,
    /// Stale targets without an active job.
    pub without_job: u32,
    /// True if a limit per pass or per tenant was reached; the next pass resumes there.
    pub limit_reached: bool,
}

pub struct StaleChecker {
    store: Arc<dyn Store>,
    chance: Arc<dyn Chance>,
    settings: Staleness,
    /// Where the last pass stopped.
    at: Option<(TenantNo, i64)>,
    /// Tenants that reached their limit, with the target where the next pass resumes.
    limited_tenants: BTreeMap<TenantNo, i64>,
}

impl StaleChecker {
    pub fn new(store: Arc<dyn Store>, chance: Arc<dyn Chance>, settings: Staleness) -> Self {
        Self { store, chance, settings, at: None, limited_tenants: BTreeMap::new() }
    }

    /// Checks all targets at `now` from where the last pass stopped. Triggers a run for each stale
    /// target that has no queued or active run.
    pub async fn run_once(&mut self, now: Timestamp) -> Result<StalePass, StoreError> {
        let mut pass = StalePass::default();
        let Some(after) = self.settings.after else { return Ok(pass) };
        let passed = self.go_through(now, now.saturating_sub(after), &mut pass).await;
        if pass.triggered > 0 {
            // Without the signal, schedulers find the runs by polling.
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
        // The current tenant, its first target in this pass, and the runs triggered for it.
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
                        // Another request was faster, or the job was stopped meanwhile.
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

    /// Triggers a run with the configured (low) priority.
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

    /// Passes happen at whole multiples of the interval since 1970, so neither a restart nor
    /// another housekeeping node makes them more or fewer.
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
                // The housekeeping node exports the number.
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
