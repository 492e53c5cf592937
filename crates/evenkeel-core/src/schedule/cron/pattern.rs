//! The parsed form of a cron expression: the matching days, and the matching seconds of a day.

/// Sets of bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Pattern {
    pub seconds: u64,
    pub minutes: u64,
    pub hours: u32,
    /// Bit 1 is January.
    pub months: u16,
    pub dates: Dates,
    pub weekdays: Weekdays,
    /// True if a day must match both the day-of-month field and the day-of-week field. If `both` is
    /// false, a match of either day field is enough.
    pub both: bool,
    /// True if the cron expression names every hour or every minute; such a job keeps running at
    /// the same pace through every clock change. If `rhythmic` is false, the job runs once a day at
    /// each of the times of day that the cron expression names.
    pub rhythmic: bool,
}

/// The days that the day-of-month field of a cron expression matches.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Dates {
    /// Bit 0 is the 1st.
    pub days: u32,
    /// Days counted from the end of the month: bit 0 is the last day, bit 3 is three days earlier.
    pub from_last: u32,
    /// Dates whose nearest working day (Monday to Friday) in the same month matches; bit 0 is the
    /// 1st.
    pub nearest: u32,
    /// True if the last working day of the month matches.
    pub last_working: bool,
}

/// The weekdays that the day-of-week field of a cron expression matches; bit 0 is Sunday.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Weekdays {
    pub every: u8,
    /// The weekdays whose first to fifth occurrence in the month matches.
    pub nth: [u8; 5],
    /// The last of the month.
    pub last: u8,
}

impl Pattern {
    /// Returns the matching days of a month with `length` days that begins with the weekday
    /// `first_weekday`; bit 0 is the 1st. `days` does not check whether the month itself matches.
    #[inline]
    pub fn days(&self, length: u32, first_weekday: u32) -> u32 {
        let dates = self.dates.days(length, first_weekday);
        let weekdays = self.weekdays.days(length, first_weekday);
        let days = if self.both { dates & weekdays } else { dates | weekdays };
        days & first_bits(length)
    }

    /// True if the cron expression matches any day. All cases are tried: in 400 years, each month,
    /// and February with either length, begins with each weekday.
    pub fn is_possible(&self) -> bool {
        let months = (1..=12).filter(|month| self.months >> month & 1 == 1);
        months.flat_map(lengths).any(|length| (0..7).any(|first| self.days(length, first) != 0))
    }

    /// Returns the number of seconds between two runs, if every day matches and the matching
    /// seconds divide the day evenly, so that the number is always the same without clock changes.
    pub fn even_secs(&self) -> Option<u32> {
        let every_month = self.months >> 1 & 0xfff == 0xfff;
        let every_day = (28..=31)
            .flat_map(|length| (0..7).map(move |first| (length, first)))
            .all(|(length, first)| self.days(length, first) == first_bits(length));
        if !every_month || !every_day {
            return None;
        }
        let times = u32::try_from(self.count_before(86_400)).ok().filter(|times| *times > 0)?;
        let step = (86_400 % times == 0).then_some(86_400 / times)?;
        let first = self.at_or_after(0)?;
        // The day has as many run times as steps, and each step begins at a run time, so no other
        // run times exist.
        let on_time = |n: u32| self.at_or_after(first + n * step) == Some(first + n * step);
        (first < step && (0..times).all(on_time)).then_some(step)
    }

    /// Returns the first second of a day, at or after `from`, that matches the cron expression.
    #[inline]
    pub fn at_or_after(&self, from: u32) -> Option<u32> {
        let (hour, minute, second) = (from / 3600, from / 60 % 60, from % 60);
        if from < 86_400 && self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1 {
                let seconds = self.seconds >> second;
                if seconds != 0 {
                    return Some(from + seconds.trailing_zeros());
                }
            }
            let minutes = self.minutes >> minute >> 1;
            if minutes != 0 {
                let minute = minute + 1 + minutes.trailing_zeros();
                return Some(hour * 3600 + minute * 60 + self.seconds.trailing_zeros());
            }
        }
        let hours = u64::from(self.hours) >> (hour + 1);
        (hours != 0).then(|| {
            let hour = hour + 1 + hours.trailing_zeros();
            hour * 3600 + self.minutes.trailing_zeros() * 60 + self.seconds.trailing_zeros()
        })
    }

    /// Returns the last second of a day, before `until`, that matches the cron expression.
    #[inline]
    pub fn before(&self, until: u32) -> Option<u32> {
        let (hour, minute, second) = (until / 3600, until / 60 % 60, until % 60);
        let (last_minute, last_second) = (self.minutes.ilog2(), self.seconds.ilog2());
        if until < 86_400 && self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1 {
                let seconds = self.seconds & ((1 << second) - 1);
                if seconds != 0 {
                    return Some(until - second + seconds.ilog2());
                }
            }
            let minutes = self.minutes & ((1 << minute) - 1);
            if minutes != 0 {
                return Some(hour * 3600 + minutes.ilog2() * 60 + last_second);
            }
        }
        let hours = self.hours & first_bits(hour);
        (hours != 0).then(|| hours.ilog2() * 3600 + last_minute * 60 + last_second)
    }

    /// Counts the seconds of a day before `until` that match the cron expression.
    #[inline]
    pub fn count_before(&self, until: u32) -> u64 {
        let (hour, minute, second) = (until / 3600, until / 60 % 60, until % 60);
        let of_minute = u64::from(self.seconds.count_ones());
        let of_hour = of_minute * u64::from(self.minutes.count_ones());
        let mut count = of_hour * u64::from((self.hours & first_bits(hour)).count_ones());
        if until < 86_400 && self.hours >> hour & 1 == 1 {
            let minutes = self.minutes & ((1 << minute) - 1);
            count += of_minute * u64::from(minutes.count_ones());
            if self.minutes >> minute & 1 == 1 {
                count += u64::from((self.seconds & ((1 << second) - 1)).count_ones());
            }
        }
        count
    }
}

impl Dates {
    fn days(self, length: u32, first_weekday: u32) -> u32 {
        let mut days = self.days | self.from_last.reverse_bits() >> (32 - length);
        if self.last_working {
            days |= 1 << nearest_working(length - 1, length, first_weekday);
        }
        let mut wanted = self.nearest & first_bits(length);
        while wanted != 0 {
            days |= 1 << nearest_working(wanted.trailing_zeros(), length, first_weekday);
            wanted &= wanted - 1;
        }
        days
    }
}

impl Weekdays {
    fn days(self, length: u32, first_weekday: u32) -> u32 {
        // Sets one bit for the same weekday in each week of the month.
        let mut days = u64::from(week_from(first_weekday, self.every)) * 0x1020_4081;
        for (week, nth) in self.nth.into_iter().enumerate() {
            days |= u64::from(week_from(first_weekday, nth)) << (7 * week);
        }
        days |= u64::from(week_from((first_weekday + length) % 7, self.last)) << (length - 7);
        days as u32
    }
}

/// Rotates a set of weekdays so that bit 0 is the weekday of the 1st of the month.
fn week_from(first_weekday: u32, weekdays: u8) -> u8 {
    let twice = u16::from(weekdays) << 7 | u16::from(weekdays);
    (twice >> first_weekday) as u8 & 0x7f
}

/// Returns the working day nearest to `day`; days of the month are counted from 0.
fn nearest_working(day: u32, length: u32, first_weekday: u32) -> u32 {
    match (first_weekday + day) % 7 {
        6 if day == 0 => 2,
        6 => day - 1,
        0 if day + 1 == length => day - 2,
        0 => day + 1,
        _ => day,
    }
}

fn lengths(month: u32) -> std::ops::RangeInclusive<u32> {
    match month {
        2 => 28..=29,
        4 | 6 | 9 | 11 => 30..=30,
        _ => 31..=31,
    }
}

/// Returns a number whose lowest `count` bits are set; `count` is at most 31.
fn first_bits(count: u32) -> u32 {
    (1 << count) - 1
}
