//! Time zones, as stretches of time in which clocks go evenly.

use std::fmt;

use jiff::tz::{AmbiguousOffset, TimeZone};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::time::Timestamp;

/// An IANA time zone. The rules are those that were compiled in: two nodes of a cluster must agree
/// on what a local time is.
#[derive(Clone)]
pub struct Zone(TimeZone);

/// A name that no zone has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a time zone: write it like America/Toronto or UTC")]
pub struct ZoneError;

/// A stretch of time in which local time is `offset` ahead of UTC.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// Seconds that local time is ahead of UTC.
    pub offset: i32,
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

impl Stretch {
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
        let zone = TimeZone::get(name).map_err(|_| ZoneError)?;
        let known = !zone.is_unknown() && zone.iana_name().is_some();
        if known { Ok(Self(zone)) } else { Err(ZoneError) }
    }

    /// Universal time.
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// Its IANA name.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// Is it universal time?
    pub fn is_utc(&self) -> bool {
        self.name() == "UTC"
    }

    /// The stretch that `moment` lies in.
    pub fn stretch_at(&self, moment: Timestamp) -> Stretch {
        let at = jiff_time(moment);
        let offset = self.0.to_offset(at).seconds();
        // A transition may change no more than the zone's abbreviation: clocks go on evenly.
        let end = self
            .0
            .following(at)
            .take_while(|change| change.timestamp() <= jiff_time(Timestamp::MAX))
            .find(|change| change.offset().seconds() != offset)
            .map_or(Timestamp::MAX, |change| from_jiff(change.timestamp()));
        Stretch { offset, end }
    }

    /// How far local time is ahead of UTC at `moment`, in seconds.
    pub fn offset_at(&self, moment: Timestamp) -> i32 {
        self.0.to_offset(jiff_time(moment)).seconds()
    }

    /// `moment` as local clocks show it, with its offset.
    pub fn local_text(&self, moment: Timestamp) -> String {
        let local = jiff_time(moment).to_zoned(self.0.clone());
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
        match self.0.to_ambiguous_timestamp(civil).offset() {
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

fn from_jiff(moment: jiff::Timestamp) -> Timestamp {
    Timestamp::from_micros(moment.as_microsecond())
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
        assert_eq!(winter, Stretch { offset: 3600, end: at("2026-03-29T01:00:00Z") });
        let summer = berlin.stretch_at(winter.end);
        assert_eq!(summer, Stretch { offset: 7200, end: at("2026-10-25T01:00:00Z") });
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
