//! Numbers of past and expected runs per step.

use crate::activity::ActivityCounts;
use crate::attempt::Outcome;
use crate::slot::Slot;
use crate::time::{Span, Timestamp};
use crate::timeline::TimelinePeriod;

/// The lengths that a step may have. The last is the length of a time slot.
const LENGTHS: [Span; 6] = [
    Span::from_secs(1),
    Span::from_secs(5),
    Span::from_secs(15),
    Span::from_secs(60),
    Span::from_secs(300),
    Slot::LENGTH,
];

/// Number of steps that are not exceeded if longer steps can avoid it.
const STEPS_WANTED: u64 = 240;

/// Numbers of ended attempts by outcome.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcomes {
    pub completed: u64,
    pub failed: u64,
    pub timed_out: u64,
    pub cancelled: u64,
}

impl From<&ActivityCounts> for Outcomes {
    fn from(counts: &ActivityCounts) -> Self {
        let ActivityCounts { completed, failed, timed_out, cancelled, .. } = *counts;
        Self { completed, failed, timed_out, cancelled }
    }
}

impl From<Outcome> for Outcomes {
    fn from(outcome: Outcome) -> Self {
        let mut counts = ActivityCounts::default();
        counts.add_ended(outcome, Span::ZERO);
        Self::from(&counts)
    }
}

#[derive(Copy, Clone, PartialEq, Debug)]
pub struct DensityStep {
    pub start: Timestamp,
    /// `None` if nothing is known, for example in the future.
    pub past: Option<Outcomes>,
    /// Number of expected runs; `None` if nothing is known, for example in the past.
    pub expected: Option<f64>,
}

/// Numbers of runs per step of a period. The first and the last step may reach beyond the period.
#[derive(Clone, PartialEq, Debug)]
pub struct Density {
    step: Span,
    steps: Vec<DensityStep>,
    now: Timestamp,
}

impl Density {
    /// Divides a period into steps that are at least as long as `finest`, up to the length of a
    /// time slot. Nothing is known about the steps yet.
    pub fn new(period: TimelinePeriod, finest: Span, now: Timestamp) -> Self {
        let length = period.to().since(period.from()).as_micros();
        let fits =
            |step: &&Span| **step >= finest && length.div_ceil(step.as_micros()) <= STEPS_WANTED;
        let step = LENGTHS.iter().find(fits).copied().unwrap_or(Slot::LENGTH);
        let micros = step.as_micros().cast_signed();
        let first = period.from().as_micros().div_euclid(micros) * micros;
        let starts = (0..).map(|n| Timestamp::from_micros(first + micros * n));
        let starts = starts.take_while(|start| *start < period.to());
        let steps = starts.map(|start| DensityStep { start, past: None, expected: None });
        Self { step, steps: steps.collect(), now }
    }

    pub fn step(&self) -> Span {
        self.step
    }

    pub fn steps(&self) -> &[DensityStep] {
        &self.steps
    }

    /// The end of the last step.
    pub fn end(&self) -> Timestamp {
        self.steps.last().map_or(Timestamp::MIN, |last| last.start.saturating_add(self.step))
    }

    /// States that all past runs are known from `from` on.
    pub fn know_past_from(&mut self, from: Timestamp) {
        let now = self.now;
        let known = self.steps.iter_mut().filter(|step| step.start >= from && step.start < now);
        known.for_each(|step| step.past = Some(Outcomes::default()));
    }

    /// Adds runs that ended at a time. Ends in steps whose past is unknown are ignored.
    pub fn add_ended(&mut self, at: Timestamp, ended: Outcomes) {
        let past = self.step_of(at).and_then(|step| self.steps[step].past.as_mut());
        if let Some(past) = past {
            past.completed += ended.completed;
            past.failed += ended.failed;
            past.timed_out += ended.timed_out;
            past.cancelled += ended.cancelled;
        }
    }

    /// States that all expected runs are known before `until`.
    pub fn know_future_until(&mut self, until: Timestamp) {
        let (now, step) = (self.now, self.step);
        let end = |start: Timestamp| start.saturating_add(step);
        let known =
            self.steps.iter_mut().filter(|it| end(it.start) > now && end(it.start) <= until);
        known.for_each(|step| step.expected = Some(0.0));
    }

    /// Adds runs that are expected between two times, of which the part that lies in the past is
    /// left out. Expected runs in steps whose future is unknown are ignored.
    pub fn add_expected(&mut self, from: Timestamp, until: Timestamp, runs: f64) {
        let length = until.since(from).as_micros();
        if length == 0 {
            return;
        }
        let (now, step) = (self.now, self.step);
        let begin = self.steps.partition_point(|it| it.start.saturating_add(step) <= from);
        for it in self.steps[begin..].iter_mut().take_while(|it| it.start < until) {
            let end = it.start.saturating_add(step).min(until);
            let common = end.since(it.start.max(from).max(now)).as_micros();
            if let Some(expected) = &mut it.expected {
                *expected += runs * common as f64 / length as f64;
            }
        }
    }

    /// Returns the step that contains a time.
    fn step_of(&self, at: Timestamp) -> Option<usize> {
        let after = self.steps.partition_point(|step| step.start <= at);
        after.checked_sub(1).filter(|_| at < self.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Slot(2_000_000).start();

    fn after(secs: u64) -> Timestamp {
        NOON.saturating_add(Span::from_secs(secs))
    }

    fn density(length: u64, finest: u64, now: u64) -> Density {
        let period = TimelinePeriod::new(Some(NOON), Some(after(length)), NOON).unwrap();
        Density::new(period, Span::from_secs(finest), after(now))
    }

    #[test]
    fn steps_are_as_fine_as_the_data_and_the_number_of_steps_allow() {
        for (length, finest, step, count) in [
            (7_200, 900, 900, 8),
            (7_200, 1, 60, 120),
            (60, 1, 1, 60),
            (600, 7, 15, 40),
            (7 * 86_400, 1, 900, 672),
            (7_200, 3_600, 900, 8),
        ] {
            let density = density(length, finest, 0);
            let found = (density.step(), density.steps().len());
            assert_eq!(found, (Span::from_secs(step), count), "{length} s, finest {finest} s");
            assert_eq!(density.end(), after(length));
        }
    }

    #[test]
    fn first_step_begins_before_a_period_that_begins_within_a_step() {
        let period = TimelinePeriod::new(Some(after(60)), Some(after(961)), NOON).unwrap();
        let density = Density::new(period, Slot::LENGTH, NOON);
        let starts: Vec<_> = density.steps().iter().map(|step| step.start).collect();
        assert_eq!(starts, [NOON, after(900)]);
    }

    #[test]
    fn only_known_steps_count_runs() {
        let mut density = density(4 * 900, 900, 1_000);
        density.know_past_from(after(1));
        density.know_future_until(after(3 * 900));
        for at in [0, 900, 1_799, 1_800, 9_999] {
            density.add_ended(after(at), Outcomes::from(Outcome::Failed));
        }
        let past: Vec<_> =
            density.steps().iter().map(|step| step.past.map(|past| past.failed)).collect();
        assert_eq!(past, [None, Some(2), None, None]);
        density.add_expected(after(0), after(4 * 900), 4.0);
        let expected: Vec<_> = density.steps().iter().map(|step| step.expected).collect();
        assert_eq!((expected[0], expected[2], expected[3]), (None, Some(1.0), None));
        // 800 of the 900 seconds of this step are in the future.
        assert!((expected[1].unwrap() - 8.0 / 9.0).abs() < 1e-9);
    }

    #[test]
    fn expected_runs_of_an_instant_or_outside_the_period_add_nothing() {
        let mut density = density(1_800, 900, 0);
        density.know_future_until(after(1_800));
        density.add_expected(after(10), after(10), 5.0);
        density.add_expected(after(1_800), after(3_600), 5.0);
        assert!(density.steps().iter().all(|step| step.expected == Some(0.0)));
        density.add_expected(after(900), after(901), 5.0);
        assert_eq!(density.steps()[1].expected, Some(5.0));
    }
}
