//! The period of a timeline.

use crate::slot::Slot;
use crate::time::{Span, Timestamp};

/// Maximum length of a period.
pub const LENGTH_MAX: Span = Span::from_secs(7 * 24 * 3600);

/// Time before and after now in the period that is shown by default.
const AROUND: Span = Span::from_secs(3600);

/// Why a period is refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum InvalidPeriod {
    /// `to` is not after `from`.
    Empty {
        from: Timestamp,
        to: Timestamp,
    },
    TooLong {
        from: Timestamp,
        to: Timestamp,
    },
}

/// The time from `from` up to, but not including, `to`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TimelinePeriod {
    from: Timestamp,
    to: Timestamp,
}

impl TimelinePeriod {
    /// Returns the requested period. By default, a period is two hours long, and begins one hour
    /// before `now`.
    pub fn new(
        from: Option<Timestamp>,
        to: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Self, InvalidPeriod> {
        let length = AROUND.saturating_mul(2);
        let from = from.unwrap_or_else(|| match to {
            Some(to) => to.saturating_sub(length),
            None => now.saturating_sub(AROUND),
        });
        let to = to.unwrap_or_else(|| from.saturating_add(length));
        if to <= from {
            return Err(InvalidPeriod::Empty { from, to });
        }
        if to.since(from) > LENGTH_MAX {
            return Err(InvalidPeriod::TooLong { from, to });
        }
        Ok(Self { from, to })
    }

    pub const fn from(&self) -> Timestamp {
        self.from
    }

    pub const fn to(&self) -> Timestamp {
        self.to
    }

    pub fn contains(&self, time: Timestamp) -> bool {
        (self.from..self.to).contains(&time)
    }

    /// Returns which share of the time from `start` until `end` lies in the period and after `now`.
    pub fn future_share(&self, start: Timestamp, end: Timestamp, now: Timestamp) -> f64 {
        let length = end.since(start).as_micros();
        let common = end.min(self.to).since(start.max(self.from).max(now)).as_micros();
        if length == 0 { 0.0 } else { common as f64 / length as f64 }
    }

    /// Returns the time slots that lie in the period as a whole and are over at `now`: the first
    /// of them, and the first one after them.
    pub fn past_slots(&self, now: Timestamp) -> (Slot, Slot) {
        let first = Slot::of(self.from);
        let first = if first.start() < self.from { first.next() } else { first };
        (first, Slot::of(self.to.min(now)).max(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Slot(2_000_000).start();
    const HOUR: Span = Span::from_secs(3600);

    fn period(from: Option<Timestamp>, to: Option<Timestamp>) -> (Timestamp, Timestamp) {
        let period = TimelinePeriod::new(from, to, NOW).unwrap();
        (period.from(), period.to())
    }

    #[test]
    fn period_has_two_hours_by_default() {
        let (early, late) = (NOW.saturating_sub(HOUR), NOW.saturating_add(HOUR));
        assert_eq!(period(None, None), (early, late));
        assert_eq!(period(Some(NOW), None), (NOW, late.saturating_add(HOUR)));
        assert_eq!(period(None, Some(NOW)), (early.saturating_sub(HOUR), NOW));
    }

    #[test]
    fn empty_and_long_periods_are_refused() {
        let refused = |from, to| TimelinePeriod::new(Some(from), Some(to), NOW).unwrap_err();
        assert_eq!(refused(NOW, NOW), InvalidPeriod::Empty { from: NOW, to: NOW });
        let week = NOW.saturating_add(LENGTH_MAX);
        assert_eq!(period(Some(NOW), Some(week)), (NOW, week));
        let late = week.saturating_add(Span::from_micros(1));
        assert_eq!(refused(NOW, late), InvalidPeriod::TooLong { from: NOW, to: late });
    }

    #[test]
    fn future_share_is_the_part_in_the_period_after_now() {
        let period = TimelinePeriod::new(Some(NOW), Some(NOW.saturating_add(HOUR)), NOW).unwrap();
        let minutes = |minutes: u64| NOW.saturating_add(Span::from_secs(60 * minutes));
        let share = |start, end, now| period.future_share(start, end, minutes(now));
        assert_eq!(share(minutes(0), minutes(20), 0), 1.0);
        assert_eq!(share(minutes(0), minutes(20), 15), 0.25);
        assert_eq!(share(minutes(45), minutes(105), 0), 0.25);
        assert_eq!(share(NOW.saturating_sub(HOUR), NOW, 0), 0.0);
        assert_eq!(share(minutes(20), minutes(40), 50), 0.0);
        assert_eq!(share(NOW, NOW, 0), 0.0);
    }

    #[test]
    fn past_slots_are_whole_and_over() {
        let second = Span::from_secs(1);
        let slots = |from, to, now| {
            let (first, end) =
                TimelinePeriod::new(Some(from), Some(to), now).unwrap().past_slots(now);
            (first.0 - 2_000_000, end.0 - 2_000_000)
        };
        let (late, future) = (NOW.saturating_add(second), NOW.saturating_add(HOUR));
        assert_eq!(slots(NOW.saturating_sub(HOUR), future, late), (-4, 0));
        assert_eq!(slots(NOW.saturating_sub(second), future, future), (0, 4));
        assert_eq!(slots(late, future.saturating_sub(second), future), (1, 3));
        assert_eq!(slots(late, future, NOW), (1, 1));
    }
}
