//! Time zones, represented as periods in which the offset from UTC is constant.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use jiff::tz::{AmbiguousOffset, TimeZone};
use serde::{Deserialize, Deserializer, de};

use crate::time::{Timestamp, text_form};

/// An IANA time zone. The time zone rules are compiled into the program, because all nodes of a
/// cluster must agree on local times.
#[derive(Clone)]
pub struct Zone(Arc<Rules>);

/// The rules of one time zone, shared by all jobs in that zone.
struct Rules {
    zone: TimeZone,
    /// All periods of constant offset from before 1970 until after [`Timestamp::MAX`], in
    /// chronological order, at least one. Consecutive periods have different offsets from UTC.
    periods: Box<[ConstantOffset]>,
}

/// A period of constant offset: from `start` until the next period starts, local time is `offset`
/// seconds ahead of UTC.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct ConstantOffset {
    /// In seconds since 1970. The start of the first period of a zone is `i64::MIN`.
    pub start: i64,
    pub offset: i32,
}

/// The rules of a time zone are read from one year before the earliest possible run, so that the
/// first moment of 1970 needs no special case.
const EARLIEST_SECS: i64 = -366 * 86_400;

/// Cache of the time zones that were used so far. The keys are names from the bundled time zone
/// data, so the number of entries is bounded.
static KNOWN: LazyLock<RwLock<HashMap<String, Zone>>> = LazyLock::new(RwLock::default);

static UTC: LazyLock<Zone> = LazyLock::new(|| Zone(Arc::new(Rules::new(TimeZone::UTC))));

impl Rules {
    fn new(zone: TimeZone) -> Self {
        let earliest = jiff::Timestamp::from_second(EARLIEST_SECS).unwrap_or(jiff::Timestamp::MIN);
        let first = ConstantOffset { start: i64::MIN, offset: zone.to_offset(earliest).seconds() };
        let mut periods = vec![first];
        let latest = jiff_time(Timestamp::MAX);
        for change in zone.following(earliest).take_while(|change| change.timestamp() <= latest) {
            let offset = change.offset().seconds();
            // Transitions that change only the abbreviation of the time zone, not its offset, are
            // ignored.
            if periods.last().is_some_and(|even| even.offset != offset) {
                periods.push(ConstantOffset { start: change.timestamp().as_second(), offset });
            }
        }
        Self { zone, periods: periods.into() }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a time zone: write it like America/Toronto or UTC")]
pub struct ZoneError;

/// A period in which local time is `offset` seconds ahead of UTC.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OffsetPeriod {
    /// In seconds.
    pub offset: i32,
    /// The start of the time zone's first period is a time long before any possible run.
    pub start: Timestamp,
    /// The first moment after the period; [`Timestamp::MAX`] if the offset never changes again.
    pub end: Timestamp,
}

/// The moments at which local clocks show a given time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Local {
    Once(Timestamp),
    /// Clocks are set forward and skip this local time.
    Never {
        /// The first moment after clocks are set forward.
        after: Timestamp,
    },
    /// Clocks are set back and show this local time twice.
    Twice {
        first: Timestamp,
        last: Timestamp,
    },
}

impl OffsetPeriod {
    /// Returns the local time at `moment`, as microseconds since 1970 in local time.
    pub fn local(self, moment: Timestamp) -> i64 {
        moment.as_micros() + i64::from(self.offset) * 1_000_000
    }
}

impl Zone {
    /// Returns the time zone with this name; upper and lower case do not matter.
    pub fn get(name: &str) -> Result<Self, ZoneError> {
        // Operating systems list each time zone a second time with the prefix `posix/`.
        let name = name.strip_prefix("posix/").unwrap_or(name);
        let zone = TimeZone::get(name).map_err(|_| ZoneError)?;
        let known = zone.iana_name().filter(|_| !zone.is_unknown()).ok_or(ZoneError)?;
        if let Some(zone) = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(known) {
            return Ok(zone.clone());
        }
        let name = known.to_owned();
        let zone = Self(Arc::new(Rules::new(zone)));
        let mut all = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        Ok(all.entry(name).or_insert(zone).clone())
    }

    pub fn utc() -> Self {
        UTC.clone()
    }

    /// The IANA name.
    pub fn name(&self) -> &str {
        self.0.zone.iana_name().unwrap_or("UTC")
    }

    pub fn is_utc(&self) -> bool {
        self.name() == "UTC"
    }

    pub fn offset_period_at(&self, moment: Timestamp) -> OffsetPeriod {
        let periods = self.periods();
        let index = self.period_index(moment.as_micros().div_euclid(1_000_000));
        let moment =
            |even: &ConstantOffset| Timestamp::from_micros(even.start.saturating_mul(1_000_000));
        let end = periods.get(index + 1).map_or(Timestamp::MAX, moment);
        OffsetPeriod { offset: periods[index].offset, start: moment(&periods[index]), end }
    }

    /// In order, never empty.
    pub(crate) fn periods(&self) -> &[ConstantOffset] {
        &self.0.periods
    }

    /// Returns the index of the constant-offset period that contains the moment `secs` seconds
    /// after 1970.
    pub(crate) fn period_index(&self, secs: i64) -> usize {
        // The search skips the first constant-offset period, because it has no real start.
        self.0.periods[1..].partition_point(|even| even.start <= secs)
    }

    /// Returns the local time at `moment` as text, with the offset from UTC.
    pub fn local_text(&self, moment: Timestamp) -> String {
        let local = jiff_time(moment).to_zoned(self.0.zone.clone());
        local.strftime("%Y-%m-%dT%H:%M:%S.%6f%:z").to_string()
    }

    /// Returns the moments at which local clocks show `local`, given as microseconds since 1970 in
    /// local time.
    pub fn resolve(&self, local: i64) -> Local {
        let shown = |offset: jiff::tz::Offset| {
            Timestamp::from_micros(local - i64::from(offset.seconds()) * 1_000_000)
        };
        let Ok(civil) = jiff::Timestamp::from_microsecond(local) else {
            return Local::Once(Timestamp::MAX);
        };
        let civil = jiff::tz::Offset::UTC.to_datetime(civil);
        match self.0.zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => Local::Once(shown(offset)),
            AmbiguousOffset::Gap { after, .. } => {
                Local::Never { after: self.offset_period_at(shown(after)).end }
            }
            AmbiguousOffset::Fold { before, after } => {
                Local::Twice { first: shown(before), last: shown(after) }
            }
        }
    }
}

fn jiff_time(moment: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(moment.as_micros()).unwrap_or(jiff::Timestamp::MAX)
}

impl Default for Zone {
    fn default() -> Self {
        Self::utc()
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

text_form!(Zone);

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::get(&name).map_err(|error| de::Error::custom(format!("{name}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn offset_period_ends_at_a_clock_change() {
        let berlin = Zone::get("europe/berlin").unwrap();
        assert_eq!(berlin.name(), "Europe/Berlin");
        let winter = berlin.offset_period_at(at("2026-01-15T12:00:00Z"));
        let start = at("2025-10-26T01:00:00Z");
        assert_eq!(winter, OffsetPeriod { offset: 3600, start, end: at("2026-03-29T01:00:00Z") });
        let summer = berlin.offset_period_at(winter.end);
        let start = winter.end;
        assert_eq!(summer, OffsetPeriod { offset: 7200, start, end: at("2026-10-25T01:00:00Z") });
    }

    #[test]
    fn local_time_occurs_once_twice_or_never() {
        let berlin = Zone::get("Europe/Berlin").unwrap();
        let shows = |text: &str| berlin.resolve(at(text).as_micros());
        assert_eq!(shows("2026-07-01T12:00:00Z"), Local::Once(at("2026-07-01T10:00:00Z")));
        let after = at("2026-03-29T01:00:00Z");
        assert_eq!(shows("2026-03-29T02:00:00Z"), Local::Never { after });
        assert_eq!(shows("2026-03-29T02:59:59Z"), Local::Never { after });
        let (first, last) = (at("2026-10-25T00:30:00Z"), at("2026-10-25T01:30:00Z"));
        assert_eq!(shows("2026-10-25T02:30:00Z"), Local::Twice { first, last });
    }

    #[test]
    fn utc_is_one_offset_period() {
        assert_eq!(Zone::utc().offset_period_at(Timestamp::MIN).end, Timestamp::MAX);
        assert!(Zone::get("UTC").unwrap().is_utc());
    }

    #[test]
    fn offsets_are_those_of_the_time_zone_database() {
        for name in ["Africa/Casablanca", "Africa/Monrovia", "Australia/Lord_Howe", "Pacific/Apia"]
        {
            let zone = Zone::get(name).unwrap();
            let jiff = TimeZone::get(name).unwrap();
            for day in 0..52_000_i64 {
                let moment = Timestamp::from_micros(day * 86_400_000_000 + 12_345);
                let offset = zone.offset_period_at(moment).offset;
                assert_eq!(offset, jiff.to_offset(jiff_time(moment)).seconds());
            }
        }
    }

    /// The search for calendar times relies on two properties: a local time occurs at most twice,
    /// and a skipped local time never occurs at another moment.
    #[test]
    fn no_zone_changes_its_clocks_twice_within_a_few_days() {
        for name in jiff::tz::db().available() {
            let Ok(zone) = Zone::get(name.as_str()) else { continue };
            let periods = zone.periods();
            for pair in periods[1..].windows(2) {
                assert!(pair[1].start - pair[0].start > 5 * 86_400, "{zone}: {pair:?}");
            }
            for pair in periods.windows(2) {
                assert!(pair[1].offset.abs_diff(pair[0].offset) <= 86_400, "{zone}: {pair:?}");
            }
        }
    }

    #[test]
    fn unknown_zone_is_refused() {
        for name in ["Mars/Olympus", "", "Etc/Unknown", "EST5EDT4,M3.2.0,M11.1.0", "../etc/passwd"]
        {
            assert_eq!(Zone::get(name).unwrap_err(), ZoneError, "{name}");
        }
    }

    #[test]
    fn zone_is_stored_by_its_name() {
        let toronto = Zone::get("America/Toronto").unwrap();
        let stored = serde_json::to_string(&toronto).unwrap();
        assert_eq!(stored, "\"America/Toronto\"");
        assert_eq!(serde_json::from_str::<Zone>(&stored).unwrap(), toronto);
    }
}
