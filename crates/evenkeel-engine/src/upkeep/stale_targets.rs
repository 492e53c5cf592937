//! Runs jobs for targets that have had no success for long, at times, on one node of all.

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

/// Targets that are looked at in one go.
const STEP: u32 = 500;
/// Runs that are asked for in one pass are at most so many times those of one tenant.
const TENANTS_SERVED: u32 = 10;
/// The clock is looked at this often, at least: it may be set.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// What a pass did.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct StalePass {
    /// So many targets had no success for too long.
    pub stale: u32,
    /// For so many of them a run was asked for.
    pub triggered: u32,
    /// For so many a run waits, goes on or is due anyway.
    pub busy: u32,
    /// So many have no active job that could run.
    pub without_job: u32,
    /// It left some out because it had asked for as many runs as it may, in all or of a tenant; the
    /// next one goes on from there.
    pub is_cut: bool,
}

/// Looks for stale targets, again and again.
pub struct StaleChecker {
    store: Arc<dyn Store>,
    chance: Arc<dyn Chance>,
    settings: Staleness,
    /// Where the last pass was cut.
    at: Option<(TenantNo, i64)>,
    /// Tenants that have more than a pass asks for, and where the next one goes on with theirs.
    cut: BTreeMap<TenantNo, i64>,
}

impl StaleChecker {
    /// Of the targets of a store.
    pub fn new(store: Arc<dyn Store>, chance: Arc<dyn Chance>, settings: Staleness) -> Self {
        Self { store, chance, settings, at: None, cut: BTreeMap::new() }
    }

    /// Looks at all targets at `now`, from where the last pass was cut, and asks for a run for each
    /// that has had no success for long and of which nothing waits or runs.
    pub async fn run_once(&mut self, now: Timestamp) -> Result<StalePass, StoreError> {
        let mut pass = StalePass::default();
        let Some(after) = self.settings.after else { return Ok(pass) };
        let passed = self.go_through(now, now.saturating_sub(after), &mut pass).await;
        if pass.triggered > 0 {
            // They are found by polling if nobody hears it.
            let _ = self.store.announce(Signal::Jobs).await;
        }
        metrics::counter!("evenkeel_stale_targets_triggered_total")
            .increment(pass.triggered.into());
        passed?;
        metrics::gauge!("evenkeel_stale_targets").set(pass.stale);
        tell(&pass);
        Ok(pass)
    }

    async fn go_through(
        &mut self,
        now: Timestamp,
        before: Timestamp,
        pass: &mut StalePass,
    ) -> Result<(), StoreError> {
        let in_all = self.settings.batch.saturating_mul(TENANTS_SERVED);
        // Who is served, from where on, and how many runs were asked for.
        let mut tenant: Option<(TenantNo, i64, u32)> = None;
        'step: loop {
            let found = self.store.stale_targets(before, self.at, STEP).await?;
            for target in found.targets {
                let (of, number) = (target.tenant, target.number);
                let (from, asked) = match &mut tenant {
                    Some((served, from, asked)) if *served == of => (*from, asked),
                    other => {
                        let from = self.cut.remove(&of).unwrap_or(0);
                        (from, &mut other.insert((of, from, 0)).2)
                    }
                };
                if number <= from {
                    self.at = Some((of, from));
                    continue 'step;
                }
                if *asked >= self.settings.batch {
                    pass.is_cut = true;
                    self.cut.insert(of, number - 1);
                    self.at = Some((of, i64::MAX));
                    continue 'step;
                }
                if pass.triggered >= in_all {
                    pass.is_cut = true;
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
                            self.tell_requested(of, job, key);
                        }
                        // Somebody was quicker, or the job was stopped meanwhile.
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

    /// Asks for a run that lets others go first.
    async fn trigger(
        &self,
        target: &StaleTarget,
        job: JobId,
        now: Timestamp,
    ) -> Result<Triggered, StoreError> {
        let scope = Scope { tenant: target.tenant, role: Role::Operator };
        let n = self.chance.bits() as u32;
        let ask = Trigger { n, priority: Some(self.settings.priority), idle_only: false };
        self.store.trigger(&scope, job, ask, Now::At(now)).await
    }

    /// Tells those who listen, as of any run that somebody asks for.
    fn tell_requested(&self, tenant: TenantNo, job: JobId, run: AttemptKey) {
        let events = self.store.events();
        if events.has_listeners() {
            let (kind, job, at) = (EventKind::RunRequested, EventJob::Id(job), run.scheduled_at);
            events.emit([NewEvent { kind, tenant, job, run: Some(run), at, data: "{}".into() }]);
        }
    }

    /// Runs until the node stops. Passes are at whole multiples of the interval since 1970: neither a
    /// restart nor another node that keeps house makes them more or fewer.
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
                // Whoever does says how many there are.
                metrics::gauge!("evenkeel_stale_targets").set(0);
            }
            if turn_of(now) <= done {
                continue;
            }
            if ctx.is_housekeeper()
                && let Err(error) = self.run_once(now).await
            {
                log_trouble(&error, "the check for stale targets failed; will retry");
                continue;
            }
            done = turn_of(now);
        }
    }
}

fn tell(pass: &StalePass) {
    let StalePass { stale, triggered, busy, without_job, is_cut } = *pass;
    if stale == 0 {
        debug!("no target is stale");
        return;
    }
    info!(
        targets.stale = stale,
        targets.triggered = triggered,
        targets.busy = busy,
        targets.without_job = without_job,
        is_cut,
        "{stale} targets had no success for long; asked for {triggered} runs"
    );
}

#[cfg(test)]
mod tests;
