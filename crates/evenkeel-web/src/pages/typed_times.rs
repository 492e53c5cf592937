//! Times that users type into filters.
//!
//! A typed time without a zone is in the zone of the page. The address of the page has the same time
//! with its zone, so that a shared link keeps its meaning.

use axum::response::{IntoResponse, Redirect, Response};
use jiff::civil::DateTime;
use jiff::{Timestamp as Instant, tz::TimeZone};
use maud::{Markup, html};

use super::lists::{Fields, address};
use crate::zone;

/// Returns a time as the API reads it. A time without a zone is in the zone of the page, a day means
/// its begin.
pub(super) fn in_full(time: &str) -> String {
    let time = time.trim().replacen(' ', "T", 1);
    // 2026-11-18, 2026-11-18T09:00 or 2026-11-18T09:00:00
    let has_no_zone = matches!(time.len(), 10 | 16 | 19)
        && time.bytes().all(|byte| byte.is_ascii_digit() || b"-:T".contains(&byte));
    let local: Option<DateTime> = has_no_zone.then(|| time.parse().ok()).flatten();
    let zoned = local.and_then(|local| local.to_zoned(zone::current()).ok());
    zoned.map_or(time, |zoned| zoned.timestamp().to_string())
}

/// Returns a time of an address as the user would type it, in the zone of the page.
pub(super) fn typed(time: &str) -> String {
    let Ok(instant) = time.parse::<Instant>() else { return time.to_owned() };
    instant.to_zoned(zone::current()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Leads to the address with full times, if one of the times was typed without its zone. `pairs` has
/// each time as it was sent and in full.
pub(super) fn redirect(
    pairs: &[(&str, &str)],
    path: &str,
    fields: &Fields<'_>,
) -> Option<Response> {
    let is_full = pairs.iter().all(|(sent, full)| sent == full);
    (!is_full).then(|| Redirect::to(&address(path, fields)).into_response())
}

/// Says in which zone typed times are.
pub(super) fn note() -> Markup {
    let zone = zone::current();
    let name = if zone == TimeZone::UTC { "UTC" } else { zone.iana_name().unwrap_or("UTC") };
    html! { small { "Times without a zone are in " (name) "." } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_a_zone_is_in_the_zone_of_the_page() {
        for (typed, sent) in [
            ("2026-11-18", "2026-11-18T00:00:00Z"),
            ("2026-11-18 09:00", "2026-11-18T09:00:00Z"),
            ("2026-11-18T09:00:30", "2026-11-18T09:00:30Z"),
            ("2026-11-18T09:00:00+01:00", "2026-11-18T09:00:00+01:00"),
            ("2026-11-18T09:00:00Z", "2026-11-18T09:00:00Z"),
            ("2026-13-18 09:00", "2026-13-18T09:00"),
            ("yesterday ", "yesterday"),
            ("", ""),
        ] {
            assert_eq!(in_full(typed), sent);
        }
        let full = zone::rendered_in("Europe/Berlin", || in_full("2026-07-01 09:00"));
        assert_eq!(full, "2026-07-01T07:00:00Z");
        let back = zone::rendered_in("Europe/Berlin", || typed(&full));
        assert_eq!(back, "2026-07-01 09:00:00");
        assert_eq!(typed("yesterday"), "yesterday");
    }

    #[test]
    fn address_gets_full_times_once() {
        let fields = [("since", "2026-11-18T00:00:00Z")];
        let answer = redirect(&[("2026-11-18", fields[0].1)], "/runs", &fields).unwrap();
        let location = answer.headers()["location"].to_str().unwrap();
        assert_eq!(location, "/runs?since=2026-11-18T00%3A00%3A00Z");
        assert!(redirect(&[(fields[0].1, fields[0].1), ("", "")], "/runs", &fields).is_none());
    }
}
