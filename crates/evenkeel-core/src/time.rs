//! Timestamps and durations in microseconds, a precision that both PostgreSQL and SQLite can store.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Implements `Debug` and `Serialize` of a type with the text form that `Display` writes. With
/// `parsed`, also implements `Deserialize` with `FromStr`.
macro_rules! text_form {
    ($type:ty) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
    ($type:ty, parsed) => {
        $crate::time::text_form!($type);

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'_, str> as serde::Deserialize>::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use text_form;

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest scheduled time.
    pub const MIN: Self = Self(0);
    /// The latest possible scheduled time, in the year 2112; its microseconds fit into 52 bits.
    pub const MAX: Self = Self((1 << 52) - 1);

    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Returns `None` beyond [`Timestamp::MAX`].
    pub fn checked_add(self, span: Span) -> Option<Self> {
        let micros = self.0.checked_add_unsigned(span.as_micros())?;
        (micros <= Self::MAX.0).then_some(Self(micros))
    }

    /// Returns at most [`Timestamp::MAX`].
    pub fn saturating_add(self, span: Span) -> Self {
        self.checked_add(span).unwrap_or(Self::MAX)
    }

    /// Returns at least [`Timestamp::MIN`].
    pub fn saturating_sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub_unsigned(span.as_micros()).max(0))
    }

    /// Returns the time that has passed since `earlier`, or zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Span {
        Span::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(moment) => write!(f, "{moment:.6}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TimestampError {
    #[error("not a time: write it like 2026-12-01T09:00:00Z")]
    Unreadable(#[source] jiff::Error),
    #[error("outside the years 1970 to 2112")]
    OutOfRange,
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let moment: jiff::Timestamp = text.parse().map_err(TimestampError::Unreadable)?;
        let micros = moment.as_microsecond();
        if (Self::MIN.0..=Self::MAX.0).contains(&micros) {
            Ok(Self(micros))
        } else {
            Err(TimestampError::OutOfRange)
        }
    }
}

text_form!(Timestamp, parsed);

/// A duration in microseconds, which is never negative.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

/// The units in the text form of durations, the longest unit first.
const UNITS: [(&str, u64); 7] = [
    ("w", 7 * 24 * 3600 * 1_000_000),
    ("d", 24 * 3600 * 1_000_000),
    ("h", 3600 * 1_000_000),
    ("m", 60 * 1_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

impl Span {
    pub const ZERO: Self = Self(0);

    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Rounds down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }

    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Self::from_micros(span.0)
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Span {
    /// Writes the shortest exact text form: 90 s becomes `1m 30s`, and 86,400 s becomes `1d`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let (mut left, mut gap) = (self.0, "");
        for (unit, micros) in UNITS.into_iter().filter(|(unit, _)| *unit != "w") {
            if left >= micros {
                write!(f, "{gap}{}{unit}", left / micros)?;
                left %= micros;
                gap = " ";
            }
        }
        Ok(())
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a length of time: write it like 30m, 1h 30m, 250ms or PT30M")]
pub struct SpanError;

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let text = text.trim();
        if text.starts_with(['P', 'p']) {
            let iso: jiff::SignedDuration = text.parse().map_err(|_| SpanError)?;
            return Duration::try_from(iso).map(Self::from).map_err(|_| SpanError);
        }
        let mut rest = text;
        let mut total = 0_u64;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or(SpanError)?;
            let number: u64 = rest[..digits].parse().map_err(|_| SpanError)?;
            rest = rest[digits..].trim_start();
            let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
            total = total.checked_add(whole_unit(number, &rest[..letters])?).ok_or(SpanError)?;
            rest = rest[letters..].trim_start();
        }
        if text.is_empty() { Err(SpanError) } else { Ok(Self(total)) }
    }
}

fn whole_unit(number: u64, unit: &str) -> Result<u64, SpanError> {
    if unit == "ns" {
        return Ok(number / 1_000);
    }
    let unit = if unit == "µs" { "us" } else { unit };
    let (_, micros) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or(SpanError)?;
    number.checked_mul(micros).ok_or(SpanError)
}

text_form!(Span, parsed);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_are_read_in_every_documented_form() {
        for (text, secs) in
            [("30m", 1800), ("1h 30m", 5400), ("1h30m", 5400), ("PT30M", 1800), ("2d", 172_800)]
        {
            assert_eq!(text.parse(), Ok(Span::from_secs(secs)), "{text}");
        }
        assert_eq!("1500000000ns".parse(), Ok(Span::from_millis(1500)));
    }

    #[test]
    fn invalid_spans_are_refused() {
        for text in ["", "30", "m", "-5m", "5 parsecs", "P1M", "99999999999999w", "-PT5M"] {
            assert_eq!(text.parse::<Span>(), Err(SpanError), "{text}");
        }
    }

    #[test]
    fn times_are_shown_with_microseconds() {
        let moment: Timestamp = "2026-12-01T09:00:00+01:00".parse().unwrap();
        assert_eq!(moment.to_string(), "2026-12-01T08:00:00.000000Z");
    }

    proptest! {
        #[test]
        fn span_reads_back_as_written(micros in 0_u64..u64::MAX / 2) {
            let span = Span::from_micros(micros);
            prop_assert_eq!(span.to_string().parse::<Span>(), Ok(span));
        }

        #[test]
        fn timestamp_reads_back_as_written(micros in 0_i64..1 << 52) {
            let moment = Timestamp::from_micros(micros);
            prop_assert_eq!(moment.to_string().parse::<Timestamp>().unwrap(), moment);
        }

        #[test]
        fn adding_never_leaves_the_range(micros in 0_i64..1 << 52, span in any::<u64>()) {
            let sum = Timestamp::from_micros(micros).saturating_add(Span::from_micros(span));
            prop_assert!(sum <= Timestamp::MAX);
        }
    }
}
