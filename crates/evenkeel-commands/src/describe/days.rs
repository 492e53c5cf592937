//! Describes the day and month fields of a cron expression.

use super::items::{DATES, Item, MONTHS, Unit, WEEKDAYS};
use super::words::{listed, ordinal};

/// Describes the days on which a cron expression matches, or returns `None` if the expression
/// matches every day.
pub(super) fn describe([date, month, weekday]: [&str; 3]) -> Option<String> {
    // As in cron, the day of the month and the weekday must both match if one of these fields
    // begins with a star; otherwise one match is enough.
    let both = [date, weekday].iter().any(|field| field.starts_with(['*', '?']));
    let dates = Some(DATES.items(date)).filter(|items| !items.is_empty());
    let weekdays = Some(WEEKDAYS.items(weekday)).filter(|items| !items.is_empty());
    let days = match (dates, weekdays) {
        (Some(dates), Some(weekdays)) => {
            let (dates, weekdays) = (of_month(&dates), of_week(&weekdays));
            Some(if both {
                format!("{dates}, if it is {}", weekdays.trim_start_matches("on "))
            } else {
                format!("{dates}, and also {weekdays}")
            })
        }
        // The expression matches every day, because one matching day field is enough and one of
        // both fields matches every day.
        (Some(_), None) | (None, Some(_)) if !both => None,
        (Some(dates), None) => Some(of_month(&dates)),
        (None, Some(weekdays)) => Some(of_week(&weekdays)),
        (None, None) => None,
    };
    let months = MONTHS.items(month);
    let months = (!months.is_empty()).then(|| of_year(&months));
    match (days, months) {
        (Some(days), Some(months)) => Some(format!("{days}, {months}")),
        (None, Some(months)) => Some(format!("every day {months}")),
        (days, None) => days,
    }
}

fn of_month(items: &[Item<'_>]) -> String {
    let (mut days, mut steps, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        match *item {
            Item::Range { first, last, .. } if first == last => days.push(ordinal(first)),
            Item::Range { first, last, step: 1 } => {
                days.push(format!("{} to {}", ordinal(first), ordinal(last)));
            }
            Item::Range { first, last, step } => {
                let until = match last {
                    31 => "on".into(),
                    last => format!("to the {}", ordinal(last)),
                };
                let (nth, first) = (ordinal(step), ordinal(first));
                steps.push(format!("every {nth} day of the month from the {first} {until}"));
            }
            Item::Own { range, step } => {
                others.push(own(&DATES, range, step, "day of the month"));
            }
            Item::Day(text) => others.push(special_date(text)),
        }
    }
    let mut parts = Vec::new();
    if !days.is_empty() {
        parts.push(format!("on the {} of the month", listed(&days, "and")));
    }
    parts.extend(steps);
    parts.extend(others);
    listed(&parts, "and")
}

fn special_date(text: &str) -> String {
    let nth = |text: &str| text.parse().map_or_else(|_| text.to_owned(), ordinal);
    if let Some(before) = text.strip_prefix("L-") {
        return match before.parse::<u32>() {
            Ok(0) => "on the last day of the month".into(),
            Ok(1) => "1 day before the last of the month".into(),
            _ => format!("{before} days before the last of the month"),
        };
    }
    match text.strip_suffix('W') {
        Some("L") => "on the last day from Monday to Friday of the month".into(),
        Some(day) => format!("on the day from Monday to Friday nearest to the {}", nth(day)),
        None => "on the last day of the month".into(),
    }
}

fn of_week(items: &[Item<'_>]) -> String {
    let (mut plain, mut others) = (Vec::new(), Vec::new());
    let day = |value| WEEKDAYS.name(value).to_owned();
    let named = |text: &str| WEEKDAYS.value(text).map_or_else(|| text.to_owned(), day);
    for item in items {
        match *item {
            Item::Range { first, last, .. } if first == last => plain.push(day(first)),
            Item::Range { first, last, step: 1 } => {
                plain.push(format!("{} to {}", day(first), day(last)));
            }
            // The weekdays of a step are listed one by one, because a step beyond the end of the
            // week is easily misunderstood.
            Item::Range { first, last, step } => {
                for day in (first..=last).step_by(step as usize).map(day) {
                    if !plain.contains(&day) {
                        plain.push(day);
                    }
                }
            }
            Item::Own { range, step } => {
                others.push(own(&WEEKDAYS, range, step, "day of the week"));
            }
            Item::Day(text) => others.push(match text.split_once('#') {
                Some((which, week)) => {
                    let week = week.parse().map_or_else(|_| week.to_owned(), ordinal);
                    format!("on the {week} {} of the month", named(which))
                }
                None => format!("on the last {} of the month", named(text.trim_end_matches('L'))),
            }),
        }
    }
    if !plain.is_empty() {
        let range = plain.len() == 1 && plain[0].contains(" to ");
        let on = if range { "" } else { "on " };
        others.insert(0, format!("{on}{}", listed(&plain, "and")));
    }
    listed(&others, "and")
}

fn of_year(items: &[Item<'_>]) -> String {
    let month = |value| MONTHS.name(value);
    let parts = items.iter().map(|item| match *item {
        Item::Range { first, last, .. } if first == last => month(first).to_owned(),
        Item::Range { first, last, step: 1 } => format!("{} to {}", month(first), month(last)),
        Item::Range { first, last: 12, step } => {
            format!("every {} month from {} on", ordinal(step), month(first))
        }
        Item::Range { first, last, step } => {
            format!("every {} month from {} to {}", ordinal(step), month(first), month(last))
        }
        Item::Own { range, step } => {
            own(&MONTHS, range, step, "month").trim_start_matches("on ").to_owned()
        }
        Item::Day(text) => text.to_owned(),
    });
    format!("in {}", listed(&parts.collect::<Vec<_>>(), "and"))
}

/// Describes `H`, which chooses a fixed random value for each job.
fn own(unit: &Unit, range: Option<(u32, u32)>, step: Option<u32>, noun: &str) -> String {
    let name = |value: u32| match unit.names {
        [] => format!("the {}", ordinal(value)),
        _ => unit.name(value).to_owned(),
    };
    let range = range.map(|(first, last)| format!(" from {} to {}", name(first), name(last)));
    let range = range.unwrap_or_default();
    match step {
        Some(step) => format!("on every {} {noun} from one of its own on{range}", ordinal(step)),
        None => format!("on a {noun} of its own{range}"),
    }
}
