//! Time zones, as stretches of time in which clocks go evenly.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use jiff::tz::{AmbiguousOffset, TimeZone};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::time::Timestamp;

/// An IANA time zone. The rules are those that were compiled in: two nodes of a cluster must agree
/// on what a local time is.
#[derive(Clone)]
pub struct Zone(Arc<Rules>);

/// What is known of a zone. All jobs of one zone share it.
struct Rules {
    zone: TimeZone,
    /// Every stretch from before 1970 until after [`Timestamp::MAX`], in order, never empty. Two
    /// neighbours have different offsets.
    stretches: Box<[Even]>,
}

/// From `start` on, and until the next one starts, local time is `offset` seconds ahead of UTC.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Even {
    /// In seconds since 1970. The first one of a zone has always been.
    pub start: i64,
    pub offset: i32,
}

/// A year earlier than any run: what happens at the first moment of 1970 is then like any other.
const EARLIEST_SECS: i64 = -366 * 86_400;

/// Every zone that was asked for. Its keys are names of the bundled data, so it does not grow
/// beyond them.
static KNOWN: LazyLock<RwLock<HashMap<String, Zone>>> = LazyLock::new(RwLock::default);

static UTC: LazyLock<Zone> = LazyLock::new(|| Zone(Arc::new(Rules::new(TimeZone::UTC))));

impl Rules {
    fn new(zone: TimeZone) -> Self {
        let earliest = jiff::Timestamp::from_second(EARLIEST_SECS).unwrap_or(jiff::Timestamp::MIN);
        let first = Even { start: i64::MIN, offset: zone.to_offset(earliest).seconds() };
        let mut stretches = vec![first];
        let latest = jiff_time(Timestamp::MAX);
        for change in zone.following(earliest).take_while(|change| change.timestamp() <= latest) {
            let offset = change.offset().seconds();
            // A transition may change no more than the zone's abbreviation: clocks go on evenly.
            if stretches.last().is_some_and(|even| even.offset != offset) {
                stretches.push(Even { start: change.timestamp().as_second(), offset });
            }
        }
        Self { zone, stretches: stretches.into() }
    }
}

/// A name that no zone has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a time zone: write it like America/Toronto or UTC")]
pub struct ZoneError;

/// A stretch of time in which local time is `offset` ahead of UTC.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OffsetPeriod {
    /// Seconds that local time is ahead of UTC.
    pub offset: i32,
    /// Its first moment, if that is not long before any run's.
    pub start: Timestamp,
    /// The first moment with another offset; [`Timestamp::MAX`] if there is none.
    pub end: Timestamp,
}

/// When local clocks show a given time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Local {
    /// Then.
    Once(Timestamp),
    /// They jump over it.
    Never {
        /// The first moment after the jump.
        after: Timestamp,
    },
    /// They are set back and show it again.
    Twice {
        /// Before they are.
        first: Timestamp,
        /// After.
        last: Timestamp,
    },
}

impl OffsetPeriod {
    /// What local clocks show at `moment`, as if it were UTC.
    pub fn local(self, moment: Timestamp) -> i64 {
        moment.as_micros() + i64::from(self.offset) * 1_000_000
    }

    /// When local clocks of this stretch show `local`.
    pub fn moment(self, local: i64) -> Timestamp {
        Timestamp::from_micros(local - i64::from(self.offset) * 1_000_000)
    }
}

impl Zone {
    /// The zone called `name`, whatever its case.
    pub fn get(name: &str) -> Result<Self, ZoneError> {
        // Machines have the same zones under this name, too.
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

    /// Universal time.
    pub fn utc() -> Self {
        UTC.clone()
    }

    /// Its IANA name.
    pub fn name(&self) -> &str {
        self.0.zone.iana_name().unwrap_or("UTC")
    }

    /// Is it universal time?
    pub fn is_utc(&self) -> bool {
        self.name() == "UTC"
    }

    /// The stretch that `moment` lies in.
    pub fn stretch_at(&self, moment: Timestamp) -> OffsetPeriod {
        let stretches = self.stretches();
        let index = self.stretch_index(moment.as_micros().div_euclid(1_000_000));
        let moment = |even: &Even| Timestamp::from_micros(even.start.saturating_mul(1_000_000));
        let end = stretches.get(index + 1).map_or(Timestamp::MAX, moment);
        OffsetPeriod { offset: stretches[index].offset, start: moment(&stretches[index]), end }
    }

    /// All its stretches, in order; never none.
    pub(crate) fn stretches(&self) -> &[Even] {
        &self.0.stretches
    }

    /// Which of its stretches the second `secs` after 1970 lies in.
    pub(crate) fn stretch_index(&self, secs: i64) -> usize {
        // The first one has always been.
        self.0.stretches[1..].partition_point(|even| even.start <= secs)
    }

    /// How far local time is ahead of UTC at `moment`, in seconds.
    pub fn offset_at(&self, moment: Timestamp) -> i32 {
        self.stretch_at(moment).offset
    }

    /// `moment` as local clocks show it, with its offset.
    pub fn local_text(&self, moment: Timestamp) -> String {
        let local = jiff_time(moment).to_zoned(self.0.zone.clone());
        local.strftime("%Y-%m-%dT%H:%M:%S.%6f%:z").to_string()
    }

    /// When local clocks show `local`, given in microseconds as if it were UTC.
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
                Local::Never { after: self.stretch_at(shown(after)).end }
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

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

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
    fn a_stretch_ends_when_the_clocks_are_changed() {
        let berlin = Zone::get("europe/berlin").unwrap();
        assert_eq!(berlin.name(), "Europe/Berlin");
        let winter = berlin.stretch_at(at("2026-01-15T12:00:00Z"));
        let start = at("2025-10-26T01:00:00Z");
        assert_eq!(winter, OffsetPeriod { offset: 3600, start, end: at("2026-03-29T01:00:00Z") });
        let summer = berlin.stretch_at(winter.end);
        let start = winter.end;
        assert_eq!(summer, OffsetPeriod { offset: 7200, start, end: at("2026-10-25T01:00:00Z") });
    }

    #[test]
    fn a_local_time_comes_once_or_twice_or_never() {
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
    fn universal_time_is_one_stretch() {
        assert_eq!(Zone::utc().stretch_at(Timestamp::MIN).end, Timestamp::MAX);
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
                assert_eq!(zone.offset_at(moment), jiff.to_offset(jiff_time(moment)).seconds());
            }
        }
    }

    /// The search for times by the calendar rests on this: a local time is shown twice at most,
    /// and one that is jumped over is not shown at another time.
    #[test]
    fn no_zone_changes_its_clocks_twice_within_a_few_days() {
        for name in jiff::tz::db().available() {
            let Ok(zone) = Zone::get(name.as_str()) else { continue };
            let stretches = zone.stretches();
            for pair in stretches[1..].windows(2) {
                assert!(pair[1].start - pair[0].start > 5 * 86_400, "{zone}: {pair:?}");
            }
            for pair in stretches.windows(2) {
                assert!(pair[1].offset.abs_diff(pair[0].offset) <= 86_400, "{zone}: {pair:?}");
            }
        }
    }

    #[test]
    fn what_is_no_zone_is_refused() {
        for name in ["Mars/Olympus", "", "Etc/Unknown", "EST5EDT4,M3.2.0,M11.1.0", "../etc/passwd"]
        {
            assert_eq!(Zone::get(name).unwrap_err(), ZoneError, "{name}");
        }
    }

    #[test]
    fn a_zone_is_stored_by_its_name() {
        let toronto = Zone::get("America/Toronto").unwrap();
        let stored = serde_json::to_string(&toronto).unwrap();
        assert_eq!(stored, "\"America/Toronto\"");
        assert_eq!(serde_json::from_str::<Zone>(&stored).unwrap(), toronto);
    }
}
