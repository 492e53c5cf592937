//! The fields of a cron expression: their names and ranges.

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Field {
    Second,
    Minute,
    Hour,
    Date,
    Month,
    Weekday,
}

impl Field {
    /// All fields in the order in which a cron expression lists them.
    pub const ALL: [Self; 6] =
        [Self::Second, Self::Minute, Self::Hour, Self::Date, Self::Month, Self::Weekday];

    pub const fn min(self) -> u32 {
        match self {
            Self::Date | Self::Month => 1,
            _ => 0,
        }
    }

    pub const fn max(self) -> u32 {
        match self {
            Self::Second | Self::Minute => 59,
            Self::Hour => 23,
            Self::Date => 31,
            Self::Month => 12,
            // Both 0 and 7 mean Sunday.
            Self::Weekday => 7,
        }
    }

    /// The number of different values.
    pub const fn size(self) -> u32 {
        match self {
            Self::Weekday => 7,
            _ => self.max() - self.min() + 1,
        }
    }

    /// The range of values from which the number for `H` is chosen. Days of the month end at the
    /// 28th, because every month has a 28th. Sunday has only one of its two numbers.
    pub const fn hashed(self) -> (u32, u32) {
        match self {
            Self::Date => (1, 28),
            Self::Weekday => (0, 6),
            _ => (self.min(), self.max()),
        }
    }

    pub const fn is_day(self) -> bool {
        matches!(self, Self::Date | Self::Weekday)
    }

    /// The word for one value of this cron field, for error messages.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Date => "day of the month",
            Self::Month => "month",
            Self::Weekday => "day of the week",
        }
    }

    /// The noun with its article.
    pub fn one(self) -> String {
        let article = if self == Self::Hour { "an" } else { "a" };
        format!("{article} {}", self.noun())
    }

    /// A description of the accepted values of a cron field, for error messages.
    pub const fn takes(self) -> &'static str {
        match self {
            Self::Second => "seconds go from 0 to 59",
            Self::Minute => "minutes go from 0 to 59",
            Self::Hour => "hours go from 0 to 23",
            Self::Date => "days of the month go from 1 to 31",
            Self::Month => "months go from 1 to 12, or JAN to DEC",
            Self::Weekday => "days of the week go from 0 to 7, both Sunday, or SUN to SAT",
        }
    }

    /// The unit of `@every` that corresponds to this cron field, if the unit's length is constant.
    pub const fn unit(self) -> Option<&'static str> {
        match self {
            Self::Second => Some("s"),
            Self::Minute => Some("m"),
            Self::Hour => Some("h"),
            Self::Date | Self::Weekday => Some("d"),
            Self::Month => None,
        }
    }

    /// Names of the values of a cron field, such as `JAN`, beginning with the smallest value.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &[
                "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
            ],
            Self::Weekday => &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
            _ => &[],
        }
    }
}
