//! Finds the run times of a cron expression as if local clocks never changed, in local seconds
//! since 1970.

use super::calendar::{DAY, Month};
use super::pattern::Pattern;

/// The search for run times ends two years after the latest possible run.
const END_OF_TIME: i64 = (2115 - 1970) * 366 * DAY;
/// The search for run times begins two years before the earliest possible run.
const START_OF_TIME: i64 = -2 * 366 * DAY;

impl Pattern {
    /// Returns the first run time at or after `from`.
    pub fn next_local(&self, from: i64) -> Option<i64> {
        let (day, second) = (from.div_euclid(DAY), from.rem_euclid(DAY) as u32);
        let mut month = Month::of(day);
        let of_month = (day - month.first) as u32;
        let mut days = self.days_of(month) >> of_month << of_month;
        if days >> of_month & 1 == 1 {
            if let Some(second) = self.at_or_after(second) {
                return Some(day * DAY + i64::from(second));
            }
            days &= days - 1;
        }
        while days == 0 {
            month = month.next_of(self.months);
            if month.first * DAY > END_OF_TIME {
                return None;
            }
            days = self.days_of(month);
        }
        let day = month.first + i64::from(days.trailing_zeros());
        self.at_or_after(0).map(|second| day * DAY + i64::from(second))
    }

    /// Returns the last run time before `until`.
    pub fn last_local(&self, until: i64) -> Option<i64> {
        let (day, second) = (until.div_euclid(DAY), until.rem_euclid(DAY) as u32);
        let mut month = Month::of(day);
        let of_month = (day - month.first) as u32;
        let all = self.days_of(month);
        if all >> of_month & 1 == 1
            && let Some(second) = self.before(second)
        {
            return Some(day * DAY + i64::from(second));
        }
        let mut days = all & ((1 << of_month) - 1);
        while days == 0 {
            month = month.previous_of(self.months);
            if month.first * DAY < START_OF_TIME {
                return None;
            }
            days = self.days_of(month);
        }
        let day = month.first + i64::from(days.ilog2());
        self.before(DAY as u32).map(|second| day * DAY + i64::from(second))
    }

    /// Counts the run times in `from..until`.
    pub fn count_local(&self, from: i64, until: i64) -> u64 {
        if until <= from {
            return 0;
        }
        let (first_day, last_day) = (from.div_euclid(DAY), until.div_euclid(DAY));
        let before = self.count_in_day(first_day, from.rem_euclid(DAY));
        let last = self.count_in_day(last_day, until.rem_euclid(DAY));
        self.count_days(first_day, last_day) * self.count_before(DAY as u32) + last - before
    }

    /// Counts the days in `from..until` that match the cron expression.
    fn count_days(&self, from: i64, until: i64) -> u64 {
        let (mut month, last) = (Month::of(from), Month::of(until));
        let before = self.days_of(month) & ((1 << (from - month.first)) - 1);
        let mut count = 0;
        while month.first < last.first {
            count += u64::from(self.days_of(month).count_ones());
            month = month.next();
        }
        let in_last = self.days_of(last) & ((1 << (until - last.first)) - 1);
        count + u64::from(in_last.count_ones()) - u64::from(before.count_ones())
    }

    fn count_in_day(&self, day: i64, until: i64) -> u64 {
        let month = Month::of(day);
        let named = self.days_of(month) >> (day - month.first) & 1 == 1;
        if named { self.count_before(until as u32) } else { 0 }
    }

    /// Returns the days of `month` that match the cron expression; bit 0 is the 1st.
    fn days_of(&self, month: Month) -> u32 {
        if self.months >> month.number & 1 == 0 {
            return 0;
        }
        self.days(month.length(), month.first_weekday())
    }
}
