//! Reads what happened to the runs of a tenant in past time slots.

use evenkeel_core::Timestamp;
use evenkeel_core::activity::{
    ActivityCounts, ActivityPeriod, ActivityStep, InvalidPeriod, STEPS_MAX, StepActivity, total_of,
};
use evenkeel_store::Scope;

use crate::{CommandError, Fault, Result, Runs};

/// Number of time slots that one store request reads.
const SLOTS_READ: u32 = 1_000;

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ActivityQuery {
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub step: ActivityStep,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Activity {
    pub period: ActivityPeriod,
    /// All steps of the period, oldest first. Steps without activity have zero counts.
    pub steps: Vec<StepActivity>,
    pub totals: ActivityCounts,
}

impl Runs {
    /// Returns the activity of the tenant, by default that of the last 24 hours. Nodes report their
    /// activity every few seconds, so the newest events may be missing.
    pub async fn activity(&self, scope: &Scope, query: ActivityQuery) -> Result<Activity> {
        let now = self.store.now().await?;
        let period = ActivityPeriod::new(query.from, query.until, query.step, now);
        let period = period.map_err(|error| refusal(error, query, now))?;
        let mut steps = period.empty_steps();
        let mut from = Some(period.from());
        while let Some(first) = from {
            let found = self.store.list_activity(scope, first, period.until(), SLOTS_READ).await?;
            found.iter().for_each(|found| period.add(&mut steps, found.slot, &found.counts));
            let is_full = found.len() >= SLOTS_READ as usize;
            from = found.last().filter(|_| is_full).map(|last| last.slot.next());
        }
        let totals = total_of(&steps);
        Ok(Activity { period, steps, totals })
    }
}

fn refusal(error: InvalidPeriod, query: ActivityQuery, now: Timestamp) -> CommandError {
    let (from, until) = (query.from.unwrap_or(Timestamp::MIN), query.until.unwrap_or(now));
    let step = query.step.as_str();
    let fault = match error {
        InvalidPeriod::Empty => {
            let message =
                format!("{from} is not before until, which is {until}; choose an earlier from");
            Fault::new("from", message)
        }
        InvalidPeriod::TooLong { steps, use_step: Some(longer) } => Fault::new(
            "step",
            format!(
                "\"{step}\" divides the period into {steps} steps, more than {STEPS_MAX}; use \
                 step={} or a shorter period",
                longer.as_str()
            ),
        ),
        InvalidPeriod::TooLong { steps, use_step: None } => Fault::new(
            "from",
            format!(
                "{from} is {steps} steps of {step} before until, and the limit is {STEPS_MAX} \
                 steps of 1d; choose a later from (activity is kept for 90 days)"
            ),
        ),
    };
    CommandError::InvalidParameter(vec![fault])
}
