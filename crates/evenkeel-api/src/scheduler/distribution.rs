//! `GET /api/v1/scheduler/distribution`

use axum::Json;
use evenkeel_commands::{Distribution, Share, Spreads};
use evenkeel_core::balance::{Measure, Policy, Spread};
use evenkeel_core::{Span, Timestamp};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::figures::{rounded, whole};
use crate::call::{Answer, Call};
use crate::params::Params;

const MEASURES: [(&str, Measure); 3] =
    [("runs", Measure::Runs), ("next", Measure::Next), ("cost", Measure::Cost)];

/// Expected runs of one hour of the day.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct HourView {
    /// Hour of the day in UTC, 0 to 23.
    #[schema(maximum = 23, example = 14)]
    pub hour: u8,
    /// Number of expected runs in this hour; with `by=next`, the number of jobs whose next run
    /// falls into it.
    #[schema(example = 8)]
    pub job_count: u64,
    /// Expected running time of the runs counted in `job_count`, in seconds of one worker.
    #[schema(example = 480.0)]
    pub cost_seconds: f64,
}

/// Expected runs of one time slot.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct SlotView {
    /// Start of the time slot.
    pub start: Timestamp,
    /// Number of expected runs in this time slot; with `by=next`, the number of jobs whose next run
    /// falls into it.
    #[schema(example = 2)]
    pub job_count: u64,
    /// Expected running time of the runs counted in `job_count`, in seconds of one worker.
    #[schema(example = 120.0)]
    pub cost_seconds: f64,
}

/// Distribution scores from 0 to 1, one for each way to count runs.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct MeasuredScores {
    /// Distribution score if each job counts once, in the time slot of its next run.
    #[schema(example = 0.91)]
    pub next: f64,
    /// Distribution score if every expected run counts once.
    #[schema(example = 0.85)]
    pub runs: f64,
    /// Distribution score if every expected run counts with its expected running time.
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

/// Distribution scores for time slots and for hours; 1 means that runs are spread as evenly as
/// these jobs allow.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ScoresView {
    /// Distribution scores of the spread over time slots.
    pub slots: MeasuredScores,
    /// Distribution scores of the spread over hours.
    pub hours: MeasuredScores,
}

/// How the runs of the next hour are spread over the seconds of that hour. Only jobs with intervals
/// under 15 minutes count, because the start second of other jobs is not known.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct SecondsView {
    /// Distribution score by second, 0 to 1; 1 means that starts are spread as evenly as these jobs
    /// allow.
    #[schema(minimum = 0, maximum = 1, example = 0.74)]
    pub distribution_score: f64,
    /// Highest number of starts in one second.
    #[schema(example = 3.0)]
    pub peak: f64,
    /// Average number of starts per second.
    #[schema(example = 0.83)]
    pub mean: f64,
    /// Lowest `peak` that these jobs could have if they were spread perfectly.
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

/// Expected running time of runs by time slot, which shows how many workers are busy.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ProjectedView {
    /// Distribution score by expected running time, 0 to 1.
    #[schema(example = 0.88)]
    pub distribution_score: f64,
    /// Start of the time slot with the most expected running time.
    pub peak_slot: Timestamp,
    /// Expected running time in the peak time slot, in seconds of one worker.
    #[schema(example = 960.0)]
    pub peak_cost_seconds: f64,
    /// Average expected running time per time slot, in seconds of one worker.
    #[schema(example = 410.5)]
    pub mean_cost_seconds: f64,
    /// Expected running time of the peak time slot divided by the average; null if no runs are
    /// expected.
    #[schema(example = 2.34)]
    pub peak_to_mean: Option<f64>,
    /// Lowest `peak_cost_seconds` that these jobs could have if they were spread perfectly, in
    /// seconds of one worker.
    #[schema(example = 420.0)]
    pub least_peak_cost_seconds: f64,
    /// Average number of workers that are busy during the peak time slot.
    #[schema(example = 1.07)]
    pub busy_workers_at_peak: f64,
}

/// How the runs of the next 24 hours are spread over time.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct DistributionView {
    /// Time for which the figures were computed.
    pub as_of: Timestamp,
    /// What is counted: `runs` (expected runs), `next` (next run of each job) or `cost` (expected
    /// running time).
    #[schema(pattern = "^(runs|next|cost)$", example = "runs")]
    pub by: &'static str,
    /// Length of the examined period, in hours.
    #[schema(example = 24)]
    pub window_hours: u64,
    /// Length of a time slot, in minutes.
    #[schema(value_type = f64, example = 15)]
    pub slot_minutes: serde_json::Number,
    /// Number of jobs that have a next run.
    #[schema(example = 42)]
    pub total_jobs: u64,
    /// Expected runs by hour of the day.
    #[schema(min_items = 24, max_items = 24)]
    pub hourly_distribution: Vec<HourView>,
    /// Distribution score over time slots: the share of runs that do not exceed the ideal number of
    /// runs for their time slot. A score of 1 means that runs are spread as evenly as these jobs
    /// allow.
    #[schema(minimum = 0, maximum = 1, example = 0.85)]
    pub distribution_score: f64,
    /// Hour of the day with the most runs, in UTC, 0 to 23.
    #[schema(maximum = 23, example = 14)]
    pub peak_hour: u8,
    /// `job_count` of the hour `peak_hour`.
    #[schema(example = 8)]
    pub peak_count: u64,
    /// Number of runs in the fullest time slot, or their running time in seconds with `by=cost`.
    /// Rebalances call this number `peak`.
    #[schema(example = 3.0)]
    pub peak_slot_count: f64,
    /// Plain text that tells what a rebalance would achieve.
    #[schema(example = "A rebalance would raise the score from 0.85 to 0.97 by moving 6 jobs.")]
    pub suggestion: String,
    /// The time slots of the next 24 hours: 96 if a time slot is a quarter hour. Neighbouring time
    /// slots are merged if there are more than 4,096.
    #[schema(max_items = 4096)]
    pub slots: Vec<SlotView>,
    /// Length of each entry of `slots`, in minutes; longer than `slot_minutes` if time slots are
    /// merged.
    #[schema(value_type = f64, example = 15)]
    pub listed_minutes: serde_json::Number,
    /// Distribution scores for each period and each way to count runs.
    pub scores: ScoresView,
    /// Spread of starts over the seconds of the next hour; null if no job has an interval under 15
    /// minutes.
    #[schema(required)]
    pub seconds: Option<SecondsView>,
    /// Number of runs in the fullest time slot divided by the average; null if no runs are
    /// expected.
    #[schema(example = 2.5)]
    pub peak_to_mean: Option<f64>,
    /// Lowest number of runs in the fullest time slot that a perfect spread of these jobs could
    /// reach (in seconds with `by=cost`).
    #[schema(example = 1.0)]
    pub least_peak: f64,
    /// Lowest number of runs in the fullest hour that a perfect spread of these jobs could reach
    /// (in seconds with `by=cost`).
    #[schema(example = 3.0)]
    pub least_peak_hour: f64,
    /// Expected running time of the runs, in seconds of one worker.
    pub projected: ProjectedView,
    /// Policy that chooses the start times of new jobs: `next` or `projected`.
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

/// Returns the first hour of the day with the most runs.
fn fullest(hours: &[Share; 24], measure: Measure) -> u8 {
    let mut best = (0, f64::MIN);
    for (hour, share) in (0_u8..).zip(hours) {
        if share.of(measure) > best.1 {
            best = (hour, share.of(measure));
        }
    }
    best.0
}

/// Returns a duration in minutes, as an integer where possible.
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
    /// What to count: `runs` (expected runs, so an hourly job counts in each hour), `next` (the
    /// next run of each job) or `cost` (expected running time).
    #[param(pattern = "^(runs|next|cost)$", default = "runs")]
    by: Option<String>,
}

/// Returns how the runs of the next 24 hours are spread over time, and what a rebalance would
/// achieve.
#[utoipa::path(
    get,
    path = "/api/v1/scheduler/distribution",
    tag = "balance",
    params(DistributionQuery),
    responses((status = 200, description = "How the runs of the tenant's jobs are spread over time", body = DistributionView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_distribution(call: Call, mut params: Params) -> Answer<DistributionView> {
    let names = MEASURES.map(|(name, measure)| (name, (name, measure)));
    let by = params.choice("by", &names);
    params.finish()?;
    let (by, measure) = by.unwrap_or(MEASURES[0]);
    let found = call.balancing.distribution(call.scope()).await?;
    Ok(Json(DistributionView::new(found, by, measure)))
}
