//! Parses the timestamps in API answers without using code of the server.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;

/// Converts a timestamp such as `2026-12-01T09:00:00.000001Z` to microseconds since 1970.
pub fn parse(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    let digits = fraction.get(..fraction.len().min(6))?;
    let micros: i64 = format!("{digits:0<6}").parse().ok()?;
    let seconds = ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * 1_000_000 + micros)
}

/// Returns the timestamp in a field of an API answer.
pub fn field(answer: &Value, name: &str) -> Result<i64> {
    answer[name].as_str().and_then(parse).with_context(|| format!("{name} is not a time"))
}

// The year begins in March for this computation, so that the leap day is the last day of the year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    // 719,468 is the number of days from 1 March of year 0 to 1 January 1970.
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is not a time")))
}

pub fn deserialize_some<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    parse(&text).map(Some).ok_or_else(|| D::Error::custom(format!("{text:?} is not a time")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_are_parsed() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600_000_000),
            ("2024-03-01T00:00:00.5Z", 1_709_251_200_500_000),
            ("2026-12-31T23:59:59.999999Z", 1_798_761_599_999_999),
        ] {
            assert_eq!(parse(text), Some(micros), "{text}");
        }
        assert_eq!(parse("2026-12-31 23:59:59"), None);
        assert_eq!(parse("soon"), None);
    }
}
