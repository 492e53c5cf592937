//! The panel "Schedule Distribution".

use evenkeel_core::Timestamp;
use jiff::tz::TimeZone;
use jiff::{Timestamp as Instant, ToSpan as _, Zoned};
use maud::{Markup, html};
use serde_json::Value;

use crate::chart::{self, Bar, number};
use crate::layout::primary_button;
use crate::session::Session;
use crate::{text, zone};

pub(crate) fn panel(session: &Session, distribution: &Value, now: Timestamp) -> Markup {
    let may_move = session.role >= evenkeel_store::Role::Operator;
    html! {
        section.panel {
            h2 { "Schedule Distribution" }
            p { "Score " strong { (text::score(&distribution["distribution_score"])) } " of 1. "
                (text::plain(&distribution["suggestion"])) }
            (hours(&distribution["hourly_distribution"], "Jobs per hour, next 24h", now))
            @if may_move { (primary_button(session, "/ui/rebalance", &[], "Rebalance Schedule")) }
            @else { p { "Moving jobs needs the role operator." } }
        }
    }
}

/// Returns when an hour of the day in UTC begins next, or began if it is the present hour, in the
/// zone of the page.
pub(crate) fn local_hour(hour: &Value, now: Timestamp) -> Option<Zoned> {
    let hour = i64::try_from(hour.as_u64()?).ok()?;
    let now = Instant::from_microsecond(now.as_micros()).ok()?.to_zoned(TimeZone::UTC);
    let ahead = (hour - i64::from(now.hour())).rem_euclid(24);
    let start =
        now.round(jiff::ZonedRound::new().smallest(jiff::Unit::Hour).mode(jiff::RoundMode::Floor));
    Some(start.ok()?.checked_add(ahead.hours()).ok()?.with_time_zone(zone::current()))
}

/// A bar per hour of the day, in the order of the clock of the page's zone. The peak hours are marked
/// by a symbol and named in the text.
pub(super) fn hours(hours: &Value, title: &str, now: Timestamp) -> Markup {
    let hours = hours.as_array().map_or(&[][..], Vec::as_slice);
    let local =
        |it: &Value| Some((local_hour(&it["hour"], now)?, it["job_count"].as_f64().unwrap_or(0.0)));
    let mut hours: Vec<(Zoned, f64)> = hours.iter().filter_map(local).collect();
    // When the clocks go back, two hours have the same name; the earlier one comes first.
    hours.sort_by_key(|(start, _)| (start.time(), start.timestamp()));
    let bars: Vec<Bar> = hours
        .iter()
        .enumerate()
        .map(|(nth, (start, value))| {
            // Some zones are half an hour off the hours of UTC.
            let label = if start.minute() == 0 {
                start.hour().to_string()
            } else {
                start.strftime("%H:%M").to_string()
            };
            Bar {
                name: start.strftime("%H:%M %Z").to_string(),
                value: *value,
                label: (nth % 3 == 0).then_some(label),
            }
        })
        .collect();
    let peak = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let peaks: Vec<_> =
        bars.iter().filter(|bar| bar.value >= peak).map(|bar| bar.name.as_str()).collect();
    html! {
        figure {
            figcaption { (title) ". "
                @if peak > 0.0 { "▲ Peak: " (number(peak)) " runs in the hour from " (peaks.join(", ")) "." }
                @else { "No run is expected." } }
            (chart::bars(&bars, title, "runs"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hours_begin_at_their_next_occurrence_or_are_present() {
        let now: Timestamp = "2026-11-18T09:40:00Z".parse().unwrap();
        for (hour, start) in
            [(9, "2026-11-18T09:00:00Z"), (10, "2026-11-18T10:00:00Z"), (8, "2026-11-19T08:00:00Z")]
        {
            assert_eq!(local_hour(&json!(hour), now).unwrap().timestamp().to_string(), start);
        }
        assert!(local_hour(&Value::Null, now).is_none());
    }

    #[test]
    fn hours_are_sorted_by_the_clock_of_the_page() {
        let now: Timestamp = "2026-11-18T09:40:00Z".parse().unwrap();
        let all: Vec<Value> =
            (0..24).map(|hour| json!({"hour": hour, "job_count": u64::from(hour == 20)})).collect();
        let draw = || hours(&Value::from(all.clone()), "title", now).into_string();
        assert!(draw().contains("Peak: 1 runs in the hour from 20:00 UTC."), "{}", draw());
        let drawn = zone::rendered_in("Asia/Kolkata", draw);
        assert!(drawn.contains("Peak: 1 runs in the hour from 01:30 IST."), "{drawn}");
        let first = drawn.find("<title>").unwrap();
        assert!(drawn[first..].starts_with("<title>00:30 IST: 0 runs</title>"), "{drawn}");
        assert_eq!(drawn.matches("<rect").count(), 24);
    }
}
