//! Explains why the run times of another cron implementation (an oracle) differ from Evenkeel's.
//! `docs/cron-oracle.md` describes the differences between the implementations in more detail.

use std::ops::Range;

use evenkeel_core::schedule::Dst;
use evenkeel_core::{Timestamp, Zone};

use super::judge::Case;
use super::matrix::Change;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// True if the range of local time contains a midnight.
fn crosses_midnight(range: &Range<i64>) -> bool {
    range.contains(&(range.start + (-range.start).rem_euclid(DAY)))
}

/// A case in which the run times of an oracle differ from Evenkeel's.
pub struct Differing<'a> {
    pub case: &'a Case<'a>,
    pub only_ours: Vec<i64>,
    pub only_theirs: Vec<i64>,
}

impl<'a> Differing<'a> {
    pub fn new(case: &'a Case<'a>, ours: &[i64], theirs: &[i64]) -> Self {
        let only = |these: &[i64], those: &[i64]| {
            these.iter().copied().filter(|time| those.binary_search(time).is_err()).collect()
        };
        Self { case, only_ours: only(ours, theirs), only_theirs: only(theirs, ours) }
    }

    /// Returns the reason why cronsim's run times differ from Evenkeel's, if the reason is known.
    pub fn cronsim(&self) -> Option<&'static str> {
        let (change, expression) = (self.case.change, self.case.expression);
        let gap = change.at + change.before..change.at + change.after;
        let repeated = gap.end..gap.start;
        // For these expressions, cronsim only compares local time with the expression, so local
        // time shows whether Evenkeel or cronsim is right.
        let is_local = expression.is_rhythmic() || expression.has_seconds();
        if !is_local || !self.clocks_prove_us_right() {
            None
        } else if crosses_midnight(&gap) && self.all_within(change.at, DAY) {
            Some("begins a day at a midnight that the clocks jumped over")
        } else if crosses_midnight(&repeated) && self.all_within(change.at, HOUR) {
            Some("has gone on to the next day when the clocks go back to this one")
        } else if self.is_off_the_hour() && self.all_within(change.at - HOUR, DAY + HOUR) {
            Some("counts in hours from a full one, but the clocks are changed off it")
        } else {
            None
        }
    }

    /// Returns the reason why croniter's run times differ from Evenkeel's, if the reason is known.
    pub fn croniter(&self) -> Option<&'static str> {
        let (change, expression) = (self.case.change, self.case.expression);
        let jumped = change.after > change.before;
        let lost = self.only_theirs.is_empty() && self.clocks_prove_us_right();
        if !jumped && lost && self.is_off_the_hour() {
            return Some("loses a repeated time when the clocks go back off the full hour");
        }
        if expression.is_rhythmic() {
            let moved = jumped && self.only_ours.is_empty() && self.only_theirs == [change.at];
            return (moved && self.clocks_prove_us_right())
                .then_some("moves a time out of the gap, though the expression is in rhythm");
        }
        let not_moved = self.only_ours == [change.at] && self.only_theirs.is_empty();
        if jumped && expression.field(1) == "0-23" && not_moved {
            return Some("takes the hours 0-23 for *, so moves nothing out of the gap");
        }
        let in_the_minute = self.all_within(change.at, 59) && self.only_ours.len() <= 1;
        if jumped && expression.has_seconds() && in_the_minute {
            return Some("moves by whole minutes and keeps the seconds");
        }
        None
    }

    /// True if local time is not a full hour just before or after the clock change.
    fn is_off_the_hour(&self) -> bool {
        let Change { at, before, after } = self.case.change;
        (at + before) % HOUR != 0 || (at + after) % HOUR != 0
    }

    /// True if local time matches the expression at each time that only Evenkeel returns, and at no
    /// time that only the oracle returns.
    fn clocks_prove_us_right(&self) -> bool {
        self.only_ours.iter().all(|time| self.is_shown(*time))
            && !self.only_theirs.iter().any(|time| self.is_shown(*time))
    }

    /// True if the local time at `time` matches the expression.
    fn is_shown(&self, time: i64) -> bool {
        let at = |secs: i64| Timestamp::from_micros(secs * 1_000_000);
        let local = time + i64::from(self.case.zone.offset_period_at(at(time)).offset);
        let cron = &self.case.expression.cron;
        cron.count(at(local), at(local + 1), &Zone::utc(), Dst::default()) == 1
    }

    /// True if all differing run times are within `secs` seconds after `start`.
    fn all_within(&self, start: i64, secs: i64) -> bool {
        let mut all = self.only_ours.iter().chain(&self.only_theirs);
        all.all(|time| (start..=start + secs).contains(time))
    }
}
