//! `GET /api/v1/scheduler/distribution`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::{Distribution, Share, Spreads};
use evenkeel_core::balance::{Measure, Policy, Spread};
use evenkeel_core::{Span, Timestamp};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::figures::{rounded, whole};
use crate::auth::Caller;
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

const MEASURES: [(&str, Measure); 3] =
    [("runs", Measure::Runs), ("next", Measure::Next), ("cost", Measure::Cost)];

/// Load of one hour of the day.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct HourView {
    /// Hour of the day in UTC, 0 to 23.
    #[schema(maximum = 23, example = 14)]
    pub hour: u8,
    /// Expected runs; with `by=next`, jobs whose next run is in it.
    #[schema(example = 8)]
    pub job_count: u64,
    /// Load of those runs, in worker seconds.
    #[schema(example = 480.0)]
    pub cost_seconds: f64,
}

/// Load of one slot.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct SlotView {
    /// Start of the slot.
    #[schema(value_type = String, format = DateTime)]
    pub start: Timestamp,
    /// Expected runs; with `by=next`, jobs whose next run is in it.
    #[schema(example = 2)]
    pub job_count: u64,
    /// Load of those runs, in worker seconds.
    #[schema(example = 120.0)]
    pub cost_seconds: f64,
}

/// Scores by measure.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct MeasuredScores {
    /// By the next run of each job.
    #[schema(example = 0.91)]
    pub next: f64,
    /// By expected runs.
    #[schema(example = 0.85)]
    pub runs: f64,
    /// By the load of runs.
    #[schema(example = 0.88)]
    pub cost: f64,
}

impl From<Spreads> for MeasuredScores {
    fn from(spreads: Spreads) -> Self {
        Self {
            next: rounded(spreads.next.score),
            runs: rounded(spreads.runs.score),
            cost: rounded(spreads.cost.score),
        }
    }
}

/// Scores by period and measure: 1 is as even as these jobs allow.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ScoresView {
    /// Scores over slots.
    pub slots: MeasuredScores,
    /// Scores over hours.
    pub hours: MeasuredScores,
}

/// How the runs of the next hour are spread over its seconds. Counts jobs with intervals under 15
/// minutes only; of others only the slot is known.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct SecondsView {
    /// Share of these runs that start in a second where an even spread could place them.
    #[schema(minimum = 0, maximum = 1, example = 0.74)]
    pub distribution_score: f64,
    /// Most starts in one second.
    #[schema(example = 3.0)]
    pub peak: f64,
    /// Average starts per second.
    #[schema(example = 0.83)]
    pub mean: f64,
    /// Lowest peak that any spread could have.
    #[schema(example = 1.0)]
    pub least_peak: f64,
}

impl From<Spread> for SecondsView {
    fn from(spread: Spread) -> Self {
        Self {
            distribution_score: rounded(spread.score),
            peak: rounded(spread.peak),
            mean: rounded(spread.mean),
            least_peak: rounded(spread.least_peak),
        }
    }
}

/// Load of runs by slot, as busy workers.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ProjectedView {
    /// Score of the load, 0 to 1.
    #[schema(example = 0.88)]
    pub distribution_score: f64,
    /// Start of the slot with the highest load.
    #[schema(value_type = String, format = DateTime)]
    pub peak_slot: Timestamp,
    /// Load of that slot, in worker seconds.
    #[schema(example = 960.0)]
    pub peak_cost_seconds: f64,
    /// Average load of a slot, in worker seconds.
    #[schema(example = 410.5)]
    pub mean_cost_seconds: f64,
    /// Highest load divided by the average; null if there are no runs.
    #[schema(example = 2.34)]
    pub peak_to_mean: Option<f64>,
    /// Lowest peak load that any spread of these jobs could have, in worker seconds.
    #[schema(example = 420.0)]
    pub least_peak_cost_seconds: f64,
    /// Average number of workers busy in the slot with the highest load.
    #[schema(example = 1.07)]
    pub busy_workers_at_peak: f64,
}

/// How the load of the next 24 hours is spread.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct DistributionView {
    /// Time of the evaluation.
    #[schema(value_type = String, format = DateTime)]
    pub as_of: Timestamp,
    /// Measure: `runs`, `next` or `cost`.
    #[schema(pattern = "^(runs|next|cost)$", example = "runs")]
    pub by: &'static str,
    /// Length of the period, in hours.
    #[schema(example = 24)]
    pub window_hours: u64,
    /// Length of a slot, in minutes.
    #[schema(value_type = f64, example = 15)]
    pub slot_minutes: serde_json::Number,
    /// Number of jobs with a next run.
    #[schema(example = 42)]
    pub total_jobs: u64,
    /// Load by hour of the day.
    #[schema(min_items = 24, max_items = 24)]
    pub hourly_distribution: Vec<HourView>,
    /// Score of the slots: share of the load that lies where an even spread could place it. 1 is as
    /// even as these jobs allow.
    #[schema(minimum = 0, maximum = 1, example = 0.85)]
    pub distribution_score: f64,
    /// Hour of the day with the highest load, UTC.
    #[schema(maximum = 23, example = 14)]
    pub peak_hour: u8,
    /// `job_count` of that hour.
    #[schema(example = 8)]
    pub peak_count: u64,
    /// Load of the fullest slot (in seconds with `by=cost`); rebalances call it `peak`.
    #[schema(example = 3.0)]
    pub peak_slot_count: f64,
    /// What a rebalance would achieve.
    #[schema(example = "A rebalance would raise the score from 0.85 to 0.97 by moving 6 jobs.")]
    pub suggestion: String,
    /// The slots from now on, 96 of a quarter hour; merged if there would be more than 4,096.
    #[schema(max_items = 4096)]
    pub slots: Vec<SlotView>,
    /// Length of each entry of `slots`, in minutes; more than `slot_minutes` if slots are merged.
    #[schema(value_type = f64, example = 15)]
    pub listed_minutes: serde_json::Number,
    /// All scores.
    pub scores: ScoresView,
    /// Spread within slots; null if no job has an interval under 15 minutes.
    #[schema(required)]
    pub seconds: Option<SecondsView>,
    /// Load of the fullest slot divided by the average; null if there is no load.
    #[schema(example = 2.5)]
    pub peak_to_mean: Option<f64>,
    /// Lowest peak per slot that any spread of these jobs could have (in seconds with `by=cost`).
    #[schema(example = 1.0)]
    pub least_peak: f64,
    /// Lowest peak per hour that any spread of these jobs could have (in seconds with `by=cost`).
    #[schema(example = 3.0)]
    pub least_peak_hour: f64,
    /// Load in worker seconds.
    pub projected: ProjectedView,
    /// Placement policy for new jobs: `next` or `projected`.
    #[schema(pattern = "^(next|projected)$", example = "projected")]
    pub policy: &'static str,
}

impl DistributionView {
    fn new(found: Distribution, by: &'static str, measure: Measure) -> Self {
        let count = |share: &Share| {
            whole(match measure {
                Measure::Next => share.next,
                Measure::Runs | Measure::Cost => share.runs,
            })
        };
        let hourly: Vec<HourView> = (0..)
            .zip(&found.hours)
            .map(|(hour, share)| HourView {
                hour,
                job_count: count(share),
                cost_seconds: rounded(share.cost_seconds),
            })
            .collect();
        let slots: Vec<SlotView> = found
            .slots
            .iter()
            .map(|(start, share)| SlotView {
                start: *start,
                job_count: count(share),
                cost_seconds: rounded(share.cost_seconds),
            })
            .collect();
        let peak_hour = fullest(&found.hours, measure);
        let spread = found.by_slot.by(measure);
        let window = found.listed.saturating_mul(slots.len() as u64);
        Self {
            as_of: found.as_of,
            by,
            window_hours: window.as_micros().div_ceil(HOUR.as_micros()),
            slot_minutes: minutes(found.slot),
            total_jobs: found.jobs,
            distribution_score: rounded(spread.score),
            peak_hour,
            peak_count: hourly.get(usize::from(peak_hour)).map_or(0, |hour| hour.job_count),
            peak_slot_count: rounded(spread.peak),
            hourly_distribution: hourly,
            seconds: found.by_second.map(SecondsView::from),
            scores: ScoresView { slots: found.by_slot.into(), hours: found.by_hour.into() },
            peak_to_mean: peak_to_mean(&spread),
            least_peak: rounded(spread.least_peak),
            least_peak_hour: rounded(found.by_hour.by(measure).least_peak),
            projected: projected(&found),
            listed_minutes: minutes(found.listed),
            suggestion: found.suggestion,
            slots,
            policy: match found.policy {
                Policy::Next => "next",
                Policy::Projected => "projected",
            },
        }
    }
}

const HOUR: Span = Span::from_secs(3600);

/// Returns the first hour of the day with the highest load.
fn fullest(hours: &[Share; 24], measure: Measure) -> u8 {
    let mut best = (0, f64::MIN);
    for (hour, share) in (0_u8..).zip(hours) {
        if share.of(measure) > best.1 {
            best = (hour, share.of(measure));
        }
    }
    best.0
}

/// Returns the minutes, as an integer where possible.
pub(super) fn minutes(slot: Span) -> serde_json::Number {
    let secs = slot.as_micros() / 1_000_000;
    let exact = || serde_json::Number::from_f64(secs as f64 / 60.0);
    if secs.is_multiple_of(60) { (secs / 60).into() } else { exact().unwrap_or_else(|| 0.into()) }
}

fn peak_to_mean(spread: &Spread) -> Option<f64> {
    (spread.mean > 0.0).then(|| rounded(spread.peak / spread.mean))
}

fn projected(found: &Distribution) -> ProjectedView {
    let spread = found.by_slot.cost;
    let secs = found.slot.as_micros() as f64 / 1e6;
    ProjectedView {
        distribution_score: rounded(spread.score),
        peak_slot: found.heaviest_at,
        peak_cost_seconds: rounded(spread.peak),
        mean_cost_seconds: rounded(spread.mean),
        peak_to_mean: peak_to_mean(&spread),
        least_peak_cost_seconds: rounded(spread.least_peak),
        busy_workers_at_peak: if secs > 0.0 { rounded(spread.peak / secs) } else { 0.0 },
    }
}

#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DistributionQuery {
    /// Measure: `runs` (expected runs: an hourly job counts in each hour), `next` (the next run of
    /// each job) or `cost` (load of the runs).
    #[param(pattern = "^(runs|next|cost)$", default = "runs")]
    by: Option<String>,
}

/// Returns how the load of the next 24 hours is spread, and what a rebalance would achieve.
#[utoipa::path(
    get,
    path = "/api/v1/scheduler/distribution",
    operation_id = "get_distribution",
    tag = "balance",
    params(DistributionQuery),
    responses((status = 200, description = "The load of the tenant's jobs", body = DistributionView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn distribution(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<DistributionView>, Problem> {
    let names = MEASURES.map(|(name, measure)| (name, (name, measure)));
    let by = params.choice("by", &names);
    params.finish()?;
    let (by, measure) = by.unwrap_or(MEASURES[0]);
    let found = app.balancing.distribution(&caller.scope).await?;
    Ok(Json(DistributionView::new(found, by, measure)))
}
