//! Formats numbers, lists and durations in English.

use evenkeel_core::Span;
use evenkeel_core::schedule::CalendarSpan;

/// Formats lists such as `a`, `a and b` or `a, b and c`.
pub(crate) fn listed(items: &[String], last: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [before @ .., end] => format!("{} {last} {end}", before.join(", ")),
    }
}

pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Formats ordinals such as `1st`, `2nd`, `3rd` and `11th`.
pub(super) fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Formats a number and its unit, such as `1 hour` or `2 hours`.
pub(crate) fn counted(number: u64, unit: &str) -> String {
    if number == 1 { format!("1 {unit}") } else { format!("{number} {unit}s") }
}

const UNITS: [(&str, u64); 6] = [
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
    ("microsecond", 1),
];

/// Formats a duration such as `1 hour 30 minutes`.
pub(crate) fn span_words(span: Span) -> String {
    if span.is_zero() {
        return "0 seconds".into();
    }
    in_units(span, &UNITS)
}

fn in_units(span: Span, units: &[(&str, u64)]) -> String {
    let mut left = span.as_micros();
    let mut parts = Vec::new();
    for (unit, micros) in units {
        if left >= *micros {
            parts.push(counted(left / micros, unit));
            left %= micros;
        }
    }
    parts.join(" ")
}

/// Formats an interval such as `every 30 minutes`. An interval of one day is `every 24 hours`,
/// because calendar days differ in length.
pub(super) fn every(span: Span) -> String {
    let [_, units @ ..] = UNITS;
    match units.iter().find(|(_, micros)| span.as_micros() == *micros) {
        Some((unit, _)) => format!("every {unit}"),
        None => format!("every {}", in_units(span, &units)),
    }
}

/// Formats a calendar interval such as `every month` or `every 2 days`.
pub(super) fn every_of_calendar(every: CalendarSpan) -> String {
    // The canonical text of a calendar interval has years, months and days, then a `T` and hours.
    let text = every.to_string();
    let (date, time) = text.split_once('T').unwrap_or((&text, ""));
    let mut parts = Vec::new();
    for (section, units) in [
        (date.trim_start_matches('P'), [('Y', "year"), ('M', "month"), ('D', "day")]),
        (time, [('H', "hour"), ('M', "minute"), ('S', "second")]),
    ] {
        let mut rest = section;
        for (letter, unit) in units {
            if let Some((number, after)) = rest.split_once(letter) {
                parts.push(match number.parse::<u64>() {
                    Ok(days) if unit == "day" && days % 7 == 0 => counted(days / 7, "week"),
                    Ok(number) => counted(number, unit),
                    Err(_) => format!("{number} {unit}s"),
                });
                rest = after;
            }
        }
    }
    match &parts[..] {
        [one] => format!("every {}", one.strip_prefix("1 ").unwrap_or(one)),
        parts => format!("every {}", listed(parts, "and")),
    }
}
