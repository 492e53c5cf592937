//! Measures how evenly runs are spread over time. Exports the balance score as a metric, stores it
//! once per hour, and raises an alert when it falls below a threshold.

use std::sync::Arc;

use evenkeel_core::balance::{BalanceSettings, Granularity, Horizon, Loads, Measure, Spread};
use evenkeel_core::{Span, TenantNo, Timestamp};
use evenkeel_store::{
    EventJob, EventKind, LoadProfiles, NewEvent, Role, SavedScore, Scope, Store, StoreError,
};
use serde_json::json;
use tracing::warn;

use crate::cluster::node_context::NodeContext;
use crate::cluster::store_health::log_trouble;

const HOUR: Span = Span::from_secs(3600);
/// Number of load profiles above which the balance score is computed on a blocking thread.
const FEW: usize = 500;

/// Computes the balance score at a fixed interval. Every node exports the balance score, and one
/// node of the cluster stores it.
pub struct BalanceScore {
    store: Arc<dyn Store>,
    settings: BalanceSettings,
    /// The last hour for which a balance score was stored.
    saved_hour: Option<Timestamp>,
}

impl BalanceScore {
    pub fn new(store: Arc<dyn Store>, settings: BalanceSettings) -> Self {
        Self { store, settings, saved_hour: None }
    }

    /// Computes and exports the balance score at `now`. If `saves` is true and the current hour has
    /// no stored score yet, also stores the balance score of each tenant. Returns the number of
    /// stored balance scores.
    pub async fn run_once(&mut self, now: Timestamp, saves: bool) -> Result<usize, StoreError> {
        let profiles = Arc::new(LoadProfiles::read(&*self.store).await?);
        let horizon = Horizon::new(&self.settings, now);
        let compute = move |profiles: &LoadProfiles| {
            let all = profiles.loads(horizon);
            (all.spread(Measure::Runs, Granularity::Slot).score, all.by_hour(Measure::Runs))
        };
        show(off_thread(&profiles, compute).await?);
        let hour = beginning(now);
        if !saves || self.saved_hour == Some(hour) {
            return Ok(0);
        }
        let tenants: Vec<TenantNo> = profiles.tenants().collect();
        for tenant in &tenants {
            let tenant = *tenant;
            let compute =
                move |profiles: &LoadProfiles| score_of(&profiles.loads_of(tenant, horizon), hour);
            let score = off_thread(&profiles, compute).await?;
            let is_low = score.score < self.settings.alert_below;
            // Read the previous balance score before the new score is stored. If the previous score
            // could not be read after the new score was stored, the alert would be lost.
            let before = if is_low { self.score_before(tenant, hour).await? } else { None };
            let was_low = before.is_some_and(|before| before < self.settings.alert_below);
            if self.store.save_score(tenant, score).await? && is_low && !was_low {
                self.alert(tenant, score, before, now);
            }
        }
        self.saved_hour = Some(hour);
        Ok(tenants.len())
    }

    async fn score_before(
        &self,
        tenant: TenantNo,
        hour: Timestamp,
    ) -> Result<Option<f64>, StoreError> {
        let scope = Scope { tenant, role: Role::Viewer };
        let before = self.store.scores(&scope, hour.saturating_sub(HOUR), hour, 1).await?;
        Ok(before.first().map(|before| before.score))
    }

    /// Logs and counts a balance score that fell below the threshold since the previous hour.
    fn alert(&self, tenant: TenantNo, saved: SavedScore, before: Option<f64>, now: Timestamp) {
        let threshold = self.settings.alert_below;
        metrics::counter!("evenkeel_distribution_alerts_total").increment(1);
        warn!(
            tenant.no = tenant.0,
            distribution_score = saved.score,
            alert_below = threshold,
            "distribution degraded, consider rebalancing"
        );
        if self.store.events().has_listeners() {
            let data = json!({
                "distribution_score": saved.score,
                "before": before,
                "alert_below": threshold,
                "peak": saved.peak,
                "mean": saved.mean,
                "jobs": saved.jobs,
            });
            let kind = EventKind::DistributionDegraded;
            let event = NewEvent::new(kind, tenant, EventJob::None, now, &data);
            self.store.events().emit([event]);
        }
    }

    /// Runs until the node stops.
    pub async fn run(mut self, ctx: Arc<NodeContext>) {
        let mut wait = ctx.settings.poll;
        while ctx.pause(wait).await {
            if let Err(error) = self.run_once(ctx.db_now(), ctx.is_housekeeper()).await {
                log_trouble(&error, "computing the balance score failed; will retry");
            }
            wait = ctx.settings.balance_score_every;
        }
    }
}

/// Runs `compute` on a blocking thread if many jobs have a load profile.
async fn off_thread<T: Send + 'static>(
    profiles: &Arc<LoadProfiles>,
    compute: impl FnOnce(&LoadProfiles) -> T + Send + 'static,
) -> Result<T, StoreError> {
    if profiles.count() <= FEW {
        return Ok(compute(profiles));
    }
    let profiles = Arc::clone(profiles);
    let computed = tokio::task::spawn_blocking(move || compute(&profiles)).await;
    computed.map_err(|error| StoreError::Refused(error.into()))
}

/// Returns the balance scores of these loads, to be stored for the hour that begins at `hour`.
pub fn score_of(loads: &Loads, hour: Timestamp) -> SavedScore {
    let spread = |measure| loads.spread(measure, Granularity::Slot);
    let Spread { score, peak, mean, .. } = spread(Measure::Runs);
    SavedScore {
        hour,
        score,
        next_score: spread(Measure::Next).score,
        cost_score: spread(Measure::Cost).score,
        peak,
        mean,
        jobs: loads.jobs(),
    }
}

fn beginning(now: Timestamp) -> Timestamp {
    let hour = HOUR.as_micros().cast_signed();
    Timestamp::from_micros(now.as_micros() - now.as_micros().rem_euclid(hour))
}

/// Exports the balance score, and the number of runs in each hour of the day.
fn show((score, hours): (f64, [f64; 24])) {
    metrics::gauge!("scheduler_distribution_score").set(score);
    for (hour, runs) in hours.into_iter().enumerate() {
        metrics::gauge!("scheduler_slot_job_count", "hour" => hour.to_string()).set(runs);
    }
    let peak = hours.into_iter().fold(0.0, f64::max);
    metrics::gauge!("scheduler_peak_hour_job_count").set(peak);
}

#[cfg(test)]
mod tests;
