//! `GET /api/v1/scheduler/distribution`

use axum::Json;
use evenkeel_commands::{Distribution, Share, Spreads};
use evenkeel_core::balance::{Measure, Policy, Spread};
use evenkeel_core::{Span, Timestamp};
use utoipa::IntoParams;

use super::figures::{rounded, whole};
use crate::call::{Answer, Call};
use crate::params::Params;
use crate::view::view;

const MEASURES: [(&str, Measure); 3] =
    [("runs", Measure::Runs), ("next", Measure::Next), ("cost", Measure::Cost)];

view! {
    /// Expected runs of one hour of the day.
    HourView::new(hour: u8, share: &Share, measure: Measure) {}

    /// Hour of the day in UTC, 0 to 23.
    #[schema(maximum = 23, example = 14)]
    hour: u8 = hour,
    /// Number of expected runs in this hour; with `by=next`, the number of jobs whose next run
    /// falls into it.
    #[schema(example = 8)]
    job_count: u64 = count(share, measure),
    /// Expected running time of the runs counted in `job_count`, in seconds of one worker.
    #[schema(example = 480.0)]
    cost_seconds: f64 = rounded(share.cost_seconds),
}

view! {
    /// Expected runs of one time slot.
    SlotView::new(start: Timestamp, share: &Share, measure: Measure) {}

    /// Start of the time slot.
    start: Timestamp = start,
    /// Number of expected runs in this time slot; with `by=next`, the number of jobs whose next run
    /// falls into it.
    #[schema(example = 2)]
    job_count: u64 = count(share, measure),
    /// Expected running time of the runs counted in `job_count`, in seconds of one worker.
    #[schema(example = 120.0)]
    cost_seconds: f64 = rounded(share.cost_seconds),
}

view! {
    /// Distribution scores from 0 to 1, one for each way to count runs.
    MeasuredScores::new(spreads: Spreads) {}

    /// Distribution score if each job counts once, in the time slot of its next run.
    #[schema(example = 0.91)]
    next: f64 = rounded(spreads.next.score),
    /// Distribution score if every expected run counts once.
    #[schema(example = 0.85)]
    runs: f64 = rounded(spreads.runs.score),
    /// Distribution score if every expected run counts with its expected running time.
    #[schema(example = 0.88)]
    cost: f64 = rounded(spreads.cost.score),
}

view! {
    /// Distribution scores for time slots and for hours; 1 means that runs are spread as evenly as
    /// these jobs allow.
    ScoresView::new(slots: Spreads, hours: Spreads) {}

    /// Distribution scores of the spread over time slots.
    slots: MeasuredScores = MeasuredScores::new(slots),
    /// Distribution scores of the spread over hours.
    hours: MeasuredScores = MeasuredScores::new(hours),
}

view! {
    /// How the runs of the next hour are spread over the seconds of that hour. Only jobs with intervals
    /// under 15 minutes count, because the start second of other jobs is not known.
    SecondsView::new(spread: Spread) {}

    /// Distribution score by second, 0 to 1; 1 means that starts are spread as evenly as these jobs
    /// allow.
    #[schema(minimum = 0, maximum = 1, example = 0.74)]
    distribution_score: f64 = rounded(spread.score),
    /// Highest number of starts in one second.
    #[schema(example = 3.0)]
    peak: f64 = rounded(spread.peak),
    /// Average number of starts per second.
    #[schema(example = 0.83)]
    mean: f64 = rounded(spread.mean),
    /// Lowest `peak` that these jobs could have if they were spread perfectly.
    #[schema(example = 1.0)]
    least_peak: f64 = rounded(spread.least_peak),
}

view! {
    /// Expected running time of runs by time slot, which shows how many workers are busy.
    ProjectedView::new(found: &Distribution) {
        let spread = found.by_slot.cost;
        let secs = found.slot.as_micros() as f64 / 1e6;
    }

    /// Distribution score by expected running time, 0 to 1.
    #[schema(example = 0.88)]
    distribution_score: f64 = rounded(spread.score),
    /// Start of the time slot with the most expected running time.
    peak_slot: Timestamp = found.heaviest_at,
    /// Expected running time in the peak time slot, in seconds of one worker.
    #[schema(example = 960.0)]
    peak_cost_seconds: f64 = rounded(spread.peak),
    /// Average expected running time per time slot, in seconds of one worker.
    #[schema(example = 410.5)]
    mean_cost_seconds: f64 = rounded(spread.mean),
    /// Expected running time of the peak time slot divided by the average; null if no runs are
    /// expected.
    #[schema(example = 2.34)]
    peak_to_mean: Option<f64> = peak_to_mean(&spread),
    /// Lowest `peak_cost_seconds` that these jobs could have if they were spread perfectly, in
    /// seconds of one worker.
    #[schema(example = 420.0)]
    least_peak_cost_seconds: f64 = rounded(spread.least_peak),
    /// Average number of workers that are busy during the peak time slot.
    #[schema(example = 1.07)]
    busy_workers_at_peak: f64 = if secs > 0.0 { rounded(spread.peak / secs) } else { 0.0 },
}

view! {
    /// How the runs of the next 24 hours are spread over time.
    DistributionView::new(found: Distribution, by: &'static str, measure: Measure) {
        let hours = (0..).zip(&found.hours);
        let hourly: Vec<HourView> =
            hours.map(|(hour, share)| HourView::new(hour, share, measure)).collect();
        let slots = found.slots.iter();
        let slots: Vec<SlotView> =
            slots.map(|(start, share)| SlotView::new(*start, share, measure)).collect();
        let peak_hour = fullest(&found.hours, measure);
        let peak_count = hourly.get(usize::from(peak_hour)).map_or(0, |hour| hour.job_count);
        let spread = found.by_slot.by(measure);
        let projected = ProjectedView::new(&found);
        let window = found.listed.saturating_mul(slots.len() as u64);
    }

    /// Time for which the figures were computed.
    as_of: Timestamp = found.as_of,
    /// What is counted: `runs` (expected runs), `next` (next run of each job) or `cost` (expected
    /// running time).
    #[schema(pattern = "^(runs|next|cost)$", example = "runs")]
    by: &'static str = by,
    /// Length of the examined period, in hours.
    #[schema(example = 24)]
    window_hours: u64 = window.as_micros().div_ceil(HOUR.as_micros()),
    /// Length of a time slot, in minutes.
    #[schema(value_type = f64, example = 15)]
    slot_minutes: serde_json::Number = minutes(found.slot),
    /// Number of jobs that have a next run.
    #[schema(example = 42)]
    total_jobs: u64 = found.jobs,
    /// Expected runs by hour of the day.
    #[schema(min_items = 24, max_items = 24)]
    hourly_distribution: Vec<HourView> = hourly,
    /// Distribution score over time slots: the share of runs that do not exceed the ideal number of
    /// runs for their time slot. A score of 1 means that runs are spread as evenly as these jobs
    /// allow.
    #[schema(minimum = 0, maximum = 1, example = 0.85)]
    distribution_score: f64 = rounded(spread.score),
    /// Hour of the day with the most runs, in UTC, 0 to 23.
    #[schema(maximum = 23, example = 14)]
    peak_hour: u8 = peak_hour,
    /// `job_count` of the hour `peak_hour`.
    #[schema(example = 8)]
    peak_count: u64 = peak_count,
    /// Number of runs in the fullest time slot, or their running time in seconds with `by=cost`.
    /// Rebalances call this number `peak`.
    #[schema(example = 3.0)]
    peak_slot_count: f64 = rounded(spread.peak),
    /// Plain text that tells what a rebalance would achieve.
    #[schema(example = "A rebalance would raise the score from 0.85 to 0.97 by moving 6 jobs.")]
    suggestion: String = found.suggestion,
    /// The time slots of the next 24 hours: 96 if a time slot is a quarter hour. Neighbouring time
    /// slots are merged if there are more than 4,096.
    #[schema(max_items = 4096)]
    slots: Vec<SlotView> = slots,
    /// Length of each entry of `slots`, in minutes; longer than `slot_minutes` if time slots are
    /// merged.
    #[schema(value_type = f64, example = 15)]
    listed_minutes: serde_json::Number = minutes(found.listed),
    /// Distribution scores over time slots and over hours, for each way to count runs.
    scores: ScoresView = ScoresView::new(found.by_slot, found.by_hour),
    /// Spread of starts over the seconds of the next hour; null if no job has an interval under 15
    /// minutes.
    #[schema(required)]
    seconds: Option<SecondsView> = found.by_second.map(SecondsView::new),
    /// Number of runs in the fullest time slot divided by the average; null if no runs are
    /// expected.
    #[schema(example = 2.5)]
    peak_to_mean: Option<f64> = peak_to_mean(&spread),
    /// Lowest number of runs in the fullest time slot that a perfect spread of these jobs could
    /// reach (in seconds with `by=cost`).
    #[schema(example = 1.0)]
    least_peak: f64 = rounded(spread.least_peak),
    /// Lowest number of runs in the fullest hour that a perfect spread of these jobs could reach
    /// (in seconds with `by=cost`).
    #[schema(example = 3.0)]
    least_peak_hour: f64 = rounded(found.by_hour.by(measure).least_peak),
    /// Expected running time of the runs, in seconds of one worker.
    projected: ProjectedView = projected,
    /// Policy that chooses the start times of new jobs: `next` or `projected`.
    #[schema(pattern = "^(next|projected)$", example = "projected")]
    policy: &'static str = match found.policy {
        Policy::Next => "next",
        Policy::Projected => "projected",
    },
}

const HOUR: Span = Span::from_secs(3600);

/// Returns the number of runs of an hour or a time slot; with the measure `next`, the number of
/// jobs.
fn count(share: &Share, measure: Measure) -> u64 {
    whole(if measure == Measure::Next { share.next } else { share.runs })
}

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
    get, path = "/api/v1/scheduler/distribution", tag = "balance",
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
