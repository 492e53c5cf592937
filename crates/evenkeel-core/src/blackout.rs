//! Blackouts: local hours in which no run of a job starts and active runs are stopped.

use serde::{Deserialize, Serialize};

use crate::time::{Span, Timestamp};
use crate::zone::Zone;

/// Local hours of the day, such as 22:00 to 06:00. A blackout may cross midnight.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Blackout {
    pub start: jiff::civil::Time,
    /// Exclusive.
    pub end: jiff::civil::Time,
}

/// Local hours of the day that are not a blackout, such as preferred hours.
pub type LocalHours = Blackout;

#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BlackoutError {
    #[error("starts and ends at {0}; choose an end other than the start")]
    Empty(jiff::civil::Time),
    #[error("the blackouts cover the whole day; leave some time to run")]
    WholeDay,
}

const DAY: i64 = 86_400 * 1_000_000;

/// Maximum number of steps in the search for the next start or end of a blackout. The
/// search needs far fewer steps, because a day has few blackouts and clocks change rarely.
const STEPS_MAX: usize = 1000;

impl Blackout {
    fn start_of_day(self) -> i64 {
        micros_of_day(self.start)
    }

    fn length(self) -> i64 {
        (micros_of_day(self.end) - micros_of_day(self.start)).rem_euclid(DAY)
    }

    /// Returns how long before `time_of_day` this blackout began, if it contains `time_of_day`.
    fn since(self, time_of_day: i64) -> Option<i64> {
        let since = (time_of_day - self.start_of_day()).rem_euclid(DAY);
        (since < self.length()).then_some(since)
    }
}

fn micros_of_day(time: jiff::civil::Time) -> i64 {
    let micros = time.duration_since(jiff::civil::Time::midnight()).as_micros();
    i64::try_from(micros).unwrap_or(0)
}

/// All blackouts of a job, in the job's time zone.
#[derive(Copy, Clone, Debug)]
pub struct Blackouts<'a> {
    periods: &'a [Blackout],
    zone: &'a Zone,
}

impl<'a> Blackouts<'a> {
    pub fn new(periods: &'a [Blackout], zone: &'a Zone) -> Self {
        Self { periods, zone }
    }

    /// Returns an error if the blackouts cover the whole day, so that the job could never run.
    pub fn check(periods: &[Blackout]) -> Result<(), BlackoutError> {
        if let Some(empty) = periods.iter().find(|period| period.length() == 0) {
            return Err(BlackoutError::Empty(empty.start));
        }
        if !periods.is_empty() && longest_open(periods).is_zero() {
            return Err(BlackoutError::WholeDay);
        }
        Ok(())
    }

    pub fn is_empty(self) -> bool {
        self.periods.is_empty()
    }

    pub fn is_in_blackout(self, moment: Timestamp) -> bool {
        let time_of_day = || self.zone.offset_period_at(moment).local(moment).rem_euclid(DAY);
        !self.is_empty() && self.began(time_of_day()).is_some()
    }

    /// Returns the first time at or after `moment` that is not in a blackout.
    pub fn next_open(self, moment: Timestamp) -> Timestamp {
        let mut moment = moment;
        for _ in 0..STEPS_MAX {
            if self.is_empty() {
                return moment;
            }
            let period = self.zone.offset_period_at(moment);
            let time_of_day = period.local(moment).rem_euclid(DAY);
            let left = self
                .periods
                .iter()
                .filter_map(|period| Some(period.length() - period.since(time_of_day)?))
                .max();
            let Some(left) = left else { return moment };
            moment = Timestamp::from_micros(moment.as_micros() + left).min(period.end);
        }
        moment
    }

    /// Returns the first time at or after `moment` that is in a blackout.
    pub fn next_start(self, moment: Timestamp) -> Option<Timestamp> {
        let mut moment = moment;
        for _ in 0..STEPS_MAX {
            let period = self.zone.offset_period_at(moment);
            let time_of_day = period.local(moment).rem_euclid(DAY);
            if self.began(time_of_day).is_some() {
                return Some(moment);
            }
            let wait = |period: &Blackout| (period.start_of_day() - time_of_day).rem_euclid(DAY);
            let wait = self.periods.iter().map(wait).min()?;
            moment = Timestamp::from_micros(moment.as_micros() + wait).min(period.end);
        }
        None
    }

    /// Returns the start of the blackout that contains `moment` or ends at `moment`. Returns
    /// `moment` if no blackout contains `moment` or ends at `moment`.
    pub fn current_start(self, moment: Timestamp) -> Timestamp {
        let mut since = moment;
        for _ in 0..STEPS_MAX {
            if self.is_empty() {
                break;
            }
            let before = since.saturating_sub(Span::from_micros(1));
            let period = self.zone.offset_period_at(before);
            let time_of_day = period.local(before).rem_euclid(DAY);
            let Some(began) = self.began(time_of_day) else { break };
            since = before.saturating_sub(Span::from_micros(began.unsigned_abs()));
            since = since.max(period.start);
            if since == Timestamp::MIN {
                break;
            }
        }
        since
    }

    /// Returns the longest time between two blackouts, on a day without a clock change.
    pub fn longest_open(self) -> Span {
        longest_open(self.periods)
    }

    /// Returns how long before `time_of_day` the blackout began that contains `time_of_day`. If
    /// several blackouts contain the time of day, the earliest start counts.
    fn began(self, time_of_day: i64) -> Option<i64> {
        self.periods.iter().filter_map(|period| period.since(time_of_day)).max()
    }
}

fn longest_open(periods: &[Blackout]) -> Span {
    let open_after = |period: &Blackout| {
        let end = micros_of_day(period.end);
        if periods.iter().any(|other| other.since(end).is_some()) {
            return 0;
        }
        let until = |other: &Blackout| (other.start_of_day() - end).rem_euclid(DAY);
        periods.iter().map(until).min().unwrap_or(DAY)
    };
    let longest = periods.iter().map(open_after).max().unwrap_or(DAY);
    Span::from_micros(longest.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn periods(texts: &[(&str, &str)]) -> Vec<Blackout> {
        texts
            .iter()
            .map(|(start, end)| Blackout {
                start: start.parse().unwrap(),
                end: end.parse().unwrap(),
            })
            .collect()
    }

    #[test]
    fn time_in_a_blackout_moves_to_its_end() {
        let utc = Zone::utc();
        let periods = periods(&[("00:00", "01:00"), ("12:00", "14:00")]);
        let blackouts = Blackouts::new(&periods, &utc);
        assert_eq!(blackouts.next_open(at("2026-05-01T00:00:00Z")), at("2026-05-01T01:00:00Z"));
        assert_eq!(blackouts.next_open(at("2026-05-01T13:59:59Z")), at("2026-05-01T14:00:00Z"));
        assert_eq!(blackouts.next_open(at("2026-05-01T14:00:00Z")), at("2026-05-01T14:00:00Z"));
        assert_eq!(
            blackouts.next_start(at("2026-05-01T14:00:00Z")),
            Some(at("2026-05-02T00:00:00Z"))
        );
        assert_eq!(
            blackouts.next_start(at("2026-05-01T12:30:00Z")),
            Some(at("2026-05-01T12:30:00Z"))
        );
        assert_eq!(blackouts.current_start(at("2026-05-01T12:30:00Z")), at("2026-05-01T12:00:00Z"));
        assert_eq!(blackouts.current_start(at("2026-05-01T14:00:00Z")), at("2026-05-01T12:00:00Z"));
        assert_eq!(blackouts.current_start(at("2026-05-01T15:00:00Z")), at("2026-05-01T15:00:00Z"));
    }

    #[test]
    fn blackout_may_cross_midnight_and_touch_another() {
        let zone = Zone::get("America/Toronto").unwrap();
        let periods = periods(&[("22:00", "02:00"), ("02:00", "05:00")]);
        let blackouts = Blackouts::new(&periods, &zone);
        assert_eq!(blackouts.next_open(at("2026-05-02T03:00:00Z")), at("2026-05-02T09:00:00Z"));
        assert_eq!(blackouts.current_start(at("2026-05-02T08:00:00Z")), at("2026-05-02T02:00:00Z"));
        assert_eq!(blackouts.longest_open(), Span::from_secs(17 * 3600));
    }

    #[test]
    fn blackout_follows_local_clock_changes() {
        let zone = Zone::get("Europe/Berlin").unwrap();
        let periods = periods(&[("01:00", "02:30")]);
        let blackouts = Blackouts::new(&periods, &zone);
        // The hour from 02:00 to 03:00 does not exist on this day, so the blackout ends when the
        // clocks jump forward.
        assert_eq!(blackouts.next_open(at("2026-03-29T00:10:00Z")), at("2026-03-29T01:00:00Z"));
        // The hour from 02:00 to 03:00 occurs twice on this day, and the blackout covers half of
        // the hour both times.
        assert_eq!(blackouts.next_open(at("2026-10-25T00:10:00Z")), at("2026-10-25T00:30:00Z"));
        assert_eq!(
            blackouts.next_start(at("2026-10-25T00:30:00Z")),
            Some(at("2026-10-25T01:00:00Z"))
        );
        assert_eq!(blackouts.next_open(at("2026-10-25T01:00:00Z")), at("2026-10-25T01:30:00Z"));
    }

    #[test]
    fn blackouts_of_a_whole_day_are_refused() {
        let check = |texts| Blackouts::check(&periods(texts));
        assert_eq!(check(&[("00:00", "12:00"), ("11:00", "00:00")]), Err(BlackoutError::WholeDay));
        assert!(matches!(check(&[("09:00", "09:00")]), Err(BlackoutError::Empty(_))));
        assert_eq!(check(&[("00:00", "23:59:59")]), Ok(()));
        assert_eq!(check(&[]), Ok(()));
    }

    proptest! {
        #[test]
        fn next_open_and_next_start_match_a_walk_by_the_minute(
            edges in prop::collection::vec((0_i8..24, 0_i8..60, 1_i64..700), 1..4),
            from in 0_i64..60 * 24 * 365,
            zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/Toronto",
                "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"]),
        ) {
            let periods: Vec<Blackout> = edges
                .iter()
                .map(|(hour, minute, length)| {
                    let start = jiff::civil::time(*hour, *minute, 0, 0);
                    let end = start.wrapping_add(jiff::Span::new().minutes(*length));
                    Blackout { start, end }
                })
                .collect();
            prop_assume!(Blackouts::check(&periods).is_ok());
            let zone = Zone::get(zone).unwrap();
            let blackouts = Blackouts::new(&periods, &zone);
            let minute = |n: i64| Timestamp::from_micros((at("2026-01-01T00:00:00Z").as_micros() / 1_000_000 + n * 60) * 1_000_000);
            let walk = |wanted: bool| (from..).map(minute).find(|it| blackouts.is_in_blackout(*it) == wanted);
            prop_assert_eq!(Some(blackouts.next_open(minute(from))), walk(false));
            prop_assert_eq!(blackouts.next_start(minute(from)), walk(true));
            let back = (0..=from).rev().map(minute).find(|it| !blackouts.is_in_blackout(it.saturating_sub(Span::from_micros(1))));
            if let Some(back) = back {
                prop_assert_eq!(blackouts.current_start(minute(from)), back);
            }
        }
    }
}
