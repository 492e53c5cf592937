//! How pages show times, durations, numbers and states.

use evenkeel_core::Timestamp;
use jiff::Timestamp as Instant;
use maud::{Markup, html};
use serde_json::Value;

use crate::zone;

/// Returns a time of the API in the zone of the page, for example "2026-11-18 09:00:00 UTC".
fn in_zone(text: &str) -> Option<String> {
    let instant: Instant = text.parse().ok()?;
    Some(instant.to_zoned(zone::current()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string())
}

/// Returns a time with its offset from UTC without the fraction of a second and the `T`.
pub(crate) fn local(value: &Value) -> String {
    let text = plain(value);
    let Some((date, time)) = text.split_once('T') else { return text };
    let Some((time, rest)) = time.split_once('.') else { return text };
    let offset = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    format!("{date} {time} {offset}")
}

/// Shows a time with its distance from `now`, or a dash for no time.
pub(crate) fn time(value: &Value, now: Timestamp) -> Markup {
    let Some(text) = value.as_str() else { return html! { "–" } };
    let Some(shown) = in_zone(text) else { return html! { (text) } };
    let distance = micros(value).map(|at| distance(at - now.as_micros()));
    html! {
        time datetime=(text) { (shown) }
        @if let Some(distance) = distance { " " small { "(" (distance) ")" } }
    }
}

/// Shows a time without its distance, or a dash for no time.
pub(crate) fn moment(value: &Value) -> Markup {
    let Some(text) = value.as_str() else { return html! { "–" } };
    html! { time datetime=(text) { (in_zone(text).as_deref().unwrap_or(text)) } }
}

/// Returns a time in the zone of the page, for places that take no markup.
pub(crate) fn time_text(value: &Value) -> String {
    value.as_str().and_then(in_zone).unwrap_or_else(|| plain(value))
}

/// Shows the time of day of a line, to the millisecond.
pub(crate) fn clock(value: &Value) -> Markup {
    let instant: Option<Instant> = value.as_str().and_then(|text| text.parse().ok());
    let Some(instant) = instant else { return html! {} };
    let shown = instant.to_zoned(zone::current()).strftime("%H:%M:%S%.3f").to_string();
    html! { time datetime=(plain(value)) { (shown) } }
}

/// Returns how much time is left until a deadline, for example "12 min left" or "3 h overdue".
pub(crate) fn slack(deadline: &Value, now: Timestamp) -> String {
    let Some(deadline) = micros(deadline) else { return "no deadline".to_owned() };
    let left = deadline - now.as_micros();
    let length = duration(left.unsigned_abs() / 1000);
    if left < 0 { format!("{length} overdue") } else { format!("{length} left") }
}

/// Returns the beginning of a long text.
pub(crate) fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 300;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

pub(crate) fn micros(value: &Value) -> Option<i64> {
    let instant: Instant = value.as_str()?.parse().ok()?;
    Some(instant.as_microsecond())
}

/// Returns how far a time is away, for example "in 5 min" or "3 h ago".
pub(crate) fn distance(micros: i64) -> String {
    let length = duration(micros.unsigned_abs() / 1000);
    if micros < 0 { format!("{length} ago") } else { format!("in {length}") }
}

/// Returns a duration rounded to its largest unit, for example "350 ms", "12 s" or "3 h".
pub(crate) fn duration(millis: u64) -> String {
    let rounded = |unit: u64| millis.saturating_add(unit / 2) / unit;
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..119_500 => format!("{} s", rounded(1000)),
        119_500..7_170_000 => format!("{} min", rounded(60_000)),
        7_170_000..171_000_000 => format!("{} h", rounded(3_600_000)),
        _ => format!("{} days", rounded(86_400_000)),
    }
}

/// Shows a state by symbol and text, so that it does not depend on colour.
pub(crate) fn state(value: &Value) -> Markup {
    let name = value.as_str().unwrap_or("unknown");
    let (class, symbol) = match name {
        "completed" | "OK" | "live" | "done" => ("good", "✓"),
        "failed" | "timed_out" | "ERROR" | "gone" | "dead" => ("bad", "✕"),
        "WARNING" | "suspect" | "draining" => ("warn", "!"),
        "running" => ("busy", "▶"),
        "paused" => ("quiet", "‖"),
        "cancelled" | "skipped" => ("quiet", "⊘"),
        _ => ("plain", "•"),
    };
    html! { span class={ "state " (class) } { span aria-hidden="true" { (symbol) } " " (name) } }
}

/// Returns the name of a job, or its id if it has no name.
pub(crate) fn job_name<'a>(name: &'a Value, id: &'a Value) -> &'a str {
    name.as_str().or_else(|| id.as_str()).unwrap_or("?")
}

/// Returns a text or a number as text, and "–" for nothing.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(crate) fn score(value: &Value) -> String {
    value.as_f64().map_or("–".to_owned(), |score| format!("{score:.2}"))
}

/// Returns a schedule in words.
pub(crate) fn schedule(job: &Value) -> String {
    let schedule = &job["schedule"];
    let text = |name: &str| plain(&schedule[name]);
    match schedule["kind"].as_str() {
        Some("interval") => format!("every {}", text("every")),
        Some("cron") => format!("{} ({})", text("expression"), plain(&job["timezone"])),
        Some("periodic") => format!("at least every {}", text("period")),
        Some("once") => match schedule["at"].as_str().and_then(in_zone) {
            Some(at) => format!("once at {at}"),
            None => "once".to_owned(),
        },
        _ => plain(schedule),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn time_is_shown_in_utc_with_its_distance() {
        let now = Timestamp::from_micros(1_795_000_000_000_000);
        let at = json!("2026-11-18T09:00:00.000000Z");
        let shown = time(&at, now).into_string();
        assert!(shown.contains("2026-11-18 09:00:00 UTC"), "{shown}");
        assert_eq!(time(&Value::Null, now).into_string(), "–");
        assert_eq!(time(&json!("<b>"), now).into_string(), "&lt;b&gt;");
    }

    #[test]
    fn local_time_keeps_its_offset() {
        let at = |text: &str| local(&json!(text));
        assert_eq!(at("2026-11-18T09:00:00.000000-05:00"), "2026-11-18 09:00:00 -05:00");
        assert_eq!(at("soon"), "soon");
    }

    #[test]
    fn slack_is_left_or_overdue() {
        let now = Timestamp::from_micros(1_795_000_000_000_000);
        let at = |seconds: u64| {
            json!(now.saturating_add(evenkeel_core::Span::from_secs(seconds)).to_string())
        };
        assert_eq!(slack(&at(720), now), "12 min left");
        let later = now.saturating_add(evenkeel_core::Span::from_secs(10_800));
        assert_eq!(slack(&at(0), later), "3 h overdue");
        assert_eq!(slack(&Value::Null, now), "no deadline");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(shortened("short"), "short");
        let long = shortened(&"é".repeat(301));
        assert_eq!((long.chars().count(), long.chars().last()), (301, Some('…')));
    }

    #[test]
    fn distance_has_one_unit() {
        let second = 1_000_000;
        for (micros, text) in [
            (350_000, "in 350 ms"),
            (-5 * second, "5 s ago"),
            (119 * second, "in 119 s"),
            (119 * second + 600_000, "in 2 min"),
            (-600 * second, "10 min ago"),
            (900 * second - 1000, "in 15 min"),
            (7199 * second, "in 2 h"),
            (3 * 3600 * second, "in 3 h"),
            (72 * 3600 * second, "in 3 days"),
        ] {
            assert_eq!(distance(micros), text);
        }
    }
}
