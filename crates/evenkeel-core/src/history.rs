//! Statistics of a job's past attempts.

use crate::attempt::Outcome;
use crate::time::{Span, Timestamp};

/// The statistics of past attempts on which scheduling depends. "Good" in a field name means
/// succeeded.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct History {
    pub last_start_at: Option<Timestamp>,
    pub last_end_at: Option<Timestamp>,
    pub last_good_start_at: Option<Timestamp>,
    pub last_good_end_at: Option<Timestamp>,
    /// Number of failed attempts since the last success.
    pub consecutive_failures: u32,
    /// Moving average of the duration of successful attempts.
    pub average_good_duration: Option<Span>,
    /// Moving variance of the duration of successful attempts, in square microseconds.
    pub duration_variance: f64,
}

/// Weight of the newest duration in the moving average. With a weight of 0.37, the last three runs
/// make up three quarters of the average.
pub const DEFAULT_ALPHA: f64 = 0.37;

impl History {
    /// Returns the updated statistics after an attempt that ran from `start` to `end` and has this
    /// `outcome`.
    ///
    /// Stores compute a job's statistics inside the SQL statement that finishes an attempt, because
    /// two runs of a job may finish at the same time. The conformance tests compare the statistics
    /// of the stores with the result of `after`. A cancelled attempt neither succeeded nor failed,
    /// so only its start and end times are recorded. If `alpha` is 0, durations are not averaged.
    #[must_use]
    pub fn after(self, outcome: Outcome, start: Timestamp, end: Timestamp, alpha: f64) -> Self {
        let ended = Self { last_start_at: Some(start), last_end_at: Some(end), ..self };
        match outcome {
            Outcome::Completed | Outcome::PartlyFailed => {
                let took = end.since(start).as_micros() as f64;
                let old = self.average_good_duration.map(|span| span.as_micros() as f64);
                let off = old.map_or(0.0, |old| took - old);
                let average = match old {
                    Some(old) => Some(old + alpha * off),
                    None => (alpha > 0.0).then_some(took),
                };
                Self {
                    last_good_start_at: Some(start),
                    last_good_end_at: Some(end),
                    consecutive_failures: 0,
                    average_good_duration: average
                        .map(|average| Span::from_micros(average.round() as u64)),
                    duration_variance: (1.0 - alpha) * (self.duration_variance + alpha * off * off),
                    ..ended
                }
            }
            Outcome::Failed | Outcome::TimedOut => {
                Self { consecutive_failures: self.consecutive_failures.saturating_add(1), ..ended }
            }
            Outcome::Cancelled | Outcome::Superseded => ended,
        }
    }

    /// Returns the standard deviation of the duration of successful attempts.
    pub fn duration_deviation(&self) -> Option<Span> {
        self.average_good_duration
            .map(|_| Span::from_micros(self.duration_variance.max(0.0).sqrt().round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    #[test]
    fn average_moves_by_alpha_towards_the_newest_duration() {
        let history = History::default()
            .after(Outcome::Completed, at(0), at(100), DEFAULT_ALPHA)
            .after(Outcome::Completed, at(200), at(400), DEFAULT_ALPHA);
        assert_eq!(history.average_good_duration, Some(Span::from_secs(137)));
    }

    #[test]
    fn success_resets_the_consecutive_failures() {
        let failed = History::default().after(Outcome::TimedOut, at(0), at(1), DEFAULT_ALPHA);
        assert_eq!(failed.consecutive_failures, 1);
        assert_eq!(failed.last_good_start_at, None);
        let good = failed.after(Outcome::Completed, at(2), at(3), DEFAULT_ALPHA);
        assert_eq!(good.consecutive_failures, 0);
    }

    #[test]
    fn cancelled_run_is_neither_success_nor_failure() {
        let before = History::default().after(Outcome::Failed, at(0), at(1), DEFAULT_ALPHA);
        let after = before.after(Outcome::Cancelled, at(5), at(6), DEFAULT_ALPHA);
        assert_eq!(
            after,
            History { last_start_at: Some(at(5)), last_end_at: Some(at(6)), ..before }
        );
    }

    proptest! {
        #[test]
        fn average_stays_between_the_shortest_and_the_longest(
            lengths in prop::collection::vec(0_i64..100_000, 1..30),
        ) {
            let mut history = History::default();
            for length in &lengths {
                history = history.after(Outcome::Completed, at(0), at(*length), DEFAULT_ALPHA);
            }
            let average = history.average_good_duration.unwrap();
            prop_assert!(average >= at(*lengths.iter().min().unwrap()).since(at(0)));
            prop_assert!(average <= at(*lengths.iter().max().unwrap()).since(at(0)));
        }
    }
}
