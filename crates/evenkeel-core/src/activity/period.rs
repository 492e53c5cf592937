//! The period of a query for activity, and the merge of time slots into longer steps.

use crate::activity::ActivityCounts;
use crate::named_enum;
use crate::slot::Slot;
use crate::time::{Span, Timestamp};

/// Maximum number of steps in one answer.
pub const STEPS_MAX: u32 = 2_000;

/// Length of the period if the query does not say where it begins.
const DEFAULT_LENGTH: Span = Span::from_secs(24 * 3600);

named_enum! {
    /// The length of the steps into which time slots are merged. Hours and days are those of UTC.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
    pub enum ActivityStep {
        #[default]
        Slot => "15m",
        Hour => "1h",
        Day => "1d",
    }
}

impl ActivityStep {
    /// Number of time slots in a step.
    const fn slots(self) -> i32 {
        match self {
            Self::Slot => 1,
            Self::Hour => 4,
            Self::Day => 96,
        }
    }

    pub const fn length(self) -> Span {
        Slot::LENGTH.saturating_mul(self.slots().unsigned_abs() as u64)
    }

    /// Returns the first time slot of the step that contains `time`.
    const fn begin_of(self, time: Timestamp) -> Slot {
        let slots = self.slots();
        Slot(Slot::of(time).0.div_euclid(slots) * slots)
    }

    /// Returns the first time slot of the first step that begins at `time` or later.
    fn begin_from(self, time: Timestamp) -> Slot {
        let begin = self.begin_of(time);
        if begin.start() == time { begin } else { Slot(begin.0 + self.slots()) }
    }
}

/// Why a query for activity is refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum InvalidPeriod {
    /// The period does not begin before its end.
    Empty,
    TooLong {
        /// Number of steps that the period has.
        steps: u64,
        /// The shortest step with which the period is not too long, if there is one.
        use_step: Option<ActivityStep>,
    },
}

/// A period of whole steps.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ActivityPeriod {
    from: Slot,
    until: Slot,
    step: ActivityStep,
}

/// The activity of one step.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StepActivity {
    pub start: Timestamp,
    pub counts: ActivityCounts,
}

impl ActivityPeriod {
    /// Returns the whole steps that contain the time from `from` to `until`. `until` is `now` by
    /// default, and `from` lies 24 hours before the end of the last step by default.
    pub fn new(
        from: Option<Timestamp>,
        until: Option<Timestamp>,
        step: ActivityStep,
        now: Timestamp,
    ) -> Result<Self, InvalidPeriod> {
        let end = until.unwrap_or(now);
        if from.is_some_and(|from| from >= end) {
            return Err(InvalidPeriod::Empty);
        }
        let period = |step: ActivityStep| {
            let until = step.begin_from(end);
            let begin = from.unwrap_or_else(|| until.start().saturating_sub(DEFAULT_LENGTH));
            Self { from: step.begin_of(begin), until, step }
        };
        let wanted = period(step);
        if wanted.step_count() == 0 {
            return Err(InvalidPeriod::Empty);
        }
        if wanted.step_count() <= u64::from(STEPS_MAX) {
            return Ok(wanted);
        }
        let fits = |step: &ActivityStep| period(*step).step_count() <= u64::from(STEPS_MAX);
        let use_step = ActivityStep::ALL.into_iter().find(fits);
        Err(InvalidPeriod::TooLong { steps: wanted.step_count(), use_step })
    }

    pub const fn from(&self) -> Slot {
        self.from
    }

    /// The first time slot after the period.
    pub const fn until(&self) -> Slot {
        self.until
    }

    pub const fn step(&self) -> ActivityStep {
        self.step
    }

    fn step_count(&self) -> u64 {
        let slots = i64::from(self.until.0) - i64::from(self.from.0);
        slots.unsigned_abs() / u64::from(self.step.slots().unsigned_abs())
    }

    /// Returns all steps of the period without activity, oldest first.
    pub fn empty_steps(&self) -> Vec<StepActivity> {
        let begin = |n: u64| self.from.start().saturating_add(self.step.length().saturating_mul(n));
        let counts = ActivityCounts::default();
        (0..self.step_count()).map(|n| StepActivity { start: begin(n), counts }).collect()
    }

    /// Adds the activity of a time slot to its step. `steps` are the steps of this period. A time
    /// slot outside of the period is ignored.
    pub fn add(&self, steps: &mut [StepActivity], slot: Slot, counts: &ActivityCounts) {
        let place =
            (i64::from(slot.0) - i64::from(self.from.0)).div_euclid(self.step.slots().into());
        let step = usize::try_from(place).ok().and_then(|place| steps.get_mut(place));
        if let Some(step) = step {
            step.counts.merge(counts);
        }
    }
}

/// Returns the activity of several steps together.
pub fn total_of(steps: &[StepActivity]) -> ActivityCounts {
    let mut total = ActivityCounts::default();
    steps.iter().for_each(|step| total.merge(&step.counts));
    total
}

#[cfg(test)]
mod tests;
