//! Fixed intervals.

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::time::{Span, Timestamp};

/// A fixed interval: the job runs at its first run time plus whole intervals.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Interval {
    #[serde(deserialize_with = "read_length")]
    every: Span,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    anchor: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tolerance: Option<Span>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    exact: bool,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntervalError {
    #[error("{0} is shorter than 1s, the shortest interval")]
    TooShort(Span),
    /// Longer than 100 years.
    #[error("{0} is longer than 36500d, the longest interval")]
    TooLong(Span),
}

fn read_length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    let interval = Interval::new(Span::deserialize(deserializer)?, None);
    interval.map(Interval::every).map_err(de::Error::custom)
}

impl Interval {
    const SHORTEST: Span = Span::from_secs(1);
    const LONGEST: Span = Span::from_secs(36_500 * 86_400);

    /// If `anchor` is given, the run times are `anchor` plus whole intervals.
    pub fn new(every: Span, anchor: Option<Timestamp>) -> Result<Self, IntervalError> {
        if every < Self::SHORTEST {
            Err(IntervalError::TooShort(every))
        } else if every > Self::LONGEST {
            Err(IntervalError::TooLong(every))
        } else {
            Ok(Self { every, anchor, tolerance: None, exact: false })
        }
    }

    /// Sets the deadline: a run must finish within `tolerance` after its scheduled time.
    #[must_use]
    pub fn with_tolerance(self, tolerance: Option<Span>) -> Self {
        Self { tolerance, ..self }
    }

    /// If `exact` is true, runs start at the beginning of a time slot, and the balancer never moves
    /// the job.
    #[must_use]
    pub fn with_exact(self, exact: bool) -> Self {
        Self { exact, ..self }
    }

    pub fn is_exact(self) -> bool {
        self.exact
    }

    /// Maximum time from the scheduled time of a run to its end; one interval by default.
    pub fn tolerance(self) -> Span {
        self.tolerance.unwrap_or(self.every)
    }

    /// The configured tolerance, if any.
    pub fn stated_tolerance(self) -> Option<Span> {
        self.tolerance
    }

    /// Returns the earliest time after `after` that is a whole number of intervals before `phase`,
    /// or `phase` itself if no such time exists.
    pub(crate) fn first_of_phase(self, phase: Timestamp, after: Timestamp) -> Timestamp {
        let back = phase.since(after).as_micros().saturating_sub(1) / self.every.as_micros();
        phase.saturating_sub(self.every.saturating_mul(back))
    }

    pub fn every(self) -> Span {
        self.every
    }

    pub fn anchor(self) -> Option<Timestamp> {
        self.anchor
    }

    /// Returns the first run time after `now`: the anchor or, if the anchor is not after `now`, a
    /// time at most one interval later.
    pub(super) fn first_after(self, now: Timestamp) -> Option<Timestamp> {
        match self.anchor {
            None => now.checked_add(self.every),
            Some(anchor) if anchor > now => Some(anchor),
            Some(anchor) => {
                let (_, last) = self.times_before(anchor, now);
                let next = last.checked_add(self.every)?;
                if next > now { Some(next) } else { next.checked_add(self.every) }
            }
        }
    }

    pub(super) fn next_after(self, scheduled: Timestamp) -> Option<Timestamp> {
        scheduled.checked_add(self.every)
    }

    pub(super) fn times_before(self, from: Timestamp, until: Timestamp) -> (u64, Timestamp) {
        let whole = until.since(from).as_micros().saturating_sub(1) / self.every.as_micros();
        (whole + 1, from.saturating_add(self.every.saturating_mul(whole)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn every(secs: u64, anchor: Option<i64>) -> Interval {
        Interval::new(Span::from_secs(secs), anchor.map(at)).unwrap()
    }

    #[test]
    fn new_interval_job_first_runs_one_interval_from_now() {
        assert_eq!(every(30, None).first_after(at(100)), Some(at(130)));
    }

    #[test]
    fn anchored_interval_keeps_to_its_anchor() {
        assert_eq!(every(30, Some(7)).first_after(at(100)), Some(at(127)));
        assert_eq!(every(30, Some(10)).first_after(at(100)), Some(at(130)));
        assert_eq!(every(30, Some(500)).first_after(at(100)), Some(at(500)));
    }

    #[test]
    fn interval_below_one_second_is_refused() {
        let half = Span::from_millis(500);
        assert_eq!(Interval::new(half, None), Err(IntervalError::TooShort(half)));
    }

    proptest! {
        #[test]
        fn first_time_is_in_the_future_and_within_one_interval(
            secs in 1_u64..100_000, now in 0_i64..4_000_000_000, anchor in 0_i64..4_000_000_000,
        ) {
            let anchor = (anchor <= now).then_some(anchor);
            let first = every(secs, anchor).first_after(at(now)).unwrap();
            prop_assert!(first > at(now) && first <= at(now).saturating_add(Span::from_secs(secs)));
        }

        #[test]
        fn counting_times_agrees_with_stepping_through_them(
            secs in 1_u64..50, from in 0_i64..1000, length in 1_i64..2000,
        ) {
            let interval = every(secs, None);
            let until = at(from + length);
            let (mut count, mut last) = (1, at(from));
            while let Some(next) = interval.next_after(last).filter(|next| *next < until) {
                (count, last) = (count + 1, next);
            }
            prop_assert_eq!(interval.times_before(at(from), until), (count, last));
        }
    }
}
