//! Arithmetic on days and months.

/// In seconds.
pub(super) const DAY: i64 = 86_400;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Month {
    year: i32,
    /// From 1 to 12.
    pub number: u32,
    /// In days since 1970-01-01.
    pub first: i64,
}

impl Month {
    pub fn new(year: i32, number: u32) -> Self {
        Self { year, number, first: first_day(year, number) }
    }

    /// Returns the month that contains `day`, the number of days since 1970-01-01.
    pub fn of(day: i64) -> Self {
        // In this computation, years begin in March, so that a leap day is the last day of its
        // year. The calendar repeats after 400 years, which are 146,097 days.
        let shifted = day + 719_468;
        let (cycle, of_cycle) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
        let of_year = of_cycle - (365 * year + year / 4 - year / 100);
        let from_march = (5 * of_year + 2) / 153;
        let number = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = cycle * 400 + year + i64::from(number <= 2);
        let first = day - (of_year - (153 * from_march + 2) / 5);
        Self { year: year as i32, number: number as u32, first }
    }

    /// Returns the first month after this month that is in `months`, a set with at least one bit
    /// (bit 1 is January).
    pub fn next_of(self, months: u16) -> Self {
        let later = u32::from(months) >> (self.number + 1);
        if later == 0 {
            Self::new(self.year + 1, months.trailing_zeros())
        } else {
            Self::new(self.year, self.number + 1 + later.trailing_zeros())
        }
    }

    /// Returns the last month before this month that is in `months`.
    pub fn previous_of(self, months: u16) -> Self {
        let earlier = months & ((1 << self.number) - 1);
        if earlier == 0 {
            Self::new(self.year - 1, months.ilog2())
        } else {
            Self::new(self.year, earlier.ilog2())
        }
    }

    pub fn next(self) -> Self {
        self.next_of(0b1_1111_1111_1110)
    }

    /// In days.
    pub fn length(self) -> u32 {
        match self.number {
            2 if is_leap(self.year) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    /// 0 is Sunday.
    pub fn first_weekday(self) -> u32 {
        (self.first + 4).rem_euclid(7) as u32
    }
}

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn first_day(year: i32, month: u32) -> i64 {
    let (year, month) = (i64::from(year), i64::from(month));
    let (year, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (cycle, of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
    let days = of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + (153 * from_march + 2) / 5;
    cycle * 146_097 + days - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_follow_the_calendar() {
        let mut day = jiff::civil::date(1960, 1, 1);
        let first = Month::of(-3653);
        assert_eq!((first.year, first.number, first.first), (1960, 1, -3653));
        let mut month = first;
        while day.year() < 2200 {
            assert_eq!((month.year, month.number as i8), (i32::from(day.year()), day.month()));
            assert_eq!(month.length() as i8, day.days_in_month());
            assert_eq!(month.first_weekday() as i8, day.weekday().to_sunday_zero_offset());
            for of_month in 0..i64::from(month.length()) {
                assert_eq!(Month::of(month.first + of_month), month);
            }
            assert_eq!(month.next().previous_of(0b1_1111_1111_1110), month);
            month = month.next();
            day = day.checked_add(jiff::Span::new().months(1)).unwrap();
        }
    }

    #[test]
    fn months_outside_the_set_are_skipped() {
        let june = Month::new(2026, 6);
        assert_eq!(june.next_of(1 << 6), Month::new(2027, 6));
        assert_eq!(june.next_of(1 << 12 | 1 << 2), Month::new(2026, 12));
        assert_eq!(june.previous_of(1 << 6), Month::new(2025, 6));
        assert_eq!(june.previous_of(1 << 12 | 1 << 2), Month::new(2026, 2));
    }
}
