//! The days and months of a cron expression.

use super::words::{listed, ordinal};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Which days; `None` if every day.
pub(super) fn describe([date, month, weekday]: [&str; 3]) -> Option<String> {
    let is_any = |field: &str| matches!(field, "*" | "?" | "*/1");
    // As for cron, a field that begins with a star takes days away and adds none.
    let both = [date, weekday].iter().any(|field| field.starts_with(['*', '?']));
    let dates = (!is_any(date)).then(|| dates(date));
    let weekdays = (!is_any(weekday)).then(|| weekdays(weekday));
    let months = (!is_any(month)).then(|| months(month));
    let days = match (dates, weekdays) {
        (Some(dates), Some(weekdays)) if both => {
            Some(format!("{dates}, as far as it is {}", weekdays.trim_start_matches("on ")))
        }
        (Some(dates), Some(weekdays)) => Some(format!("{dates}, and also {weekdays}")),
        (dates, weekdays) => dates.or(weekdays),
    };
    match (days, months) {
        (Some(days), Some(months)) => Some(format!("{days}, {months}")),
        (None, Some(months)) => Some(format!("every day {months}")),
        (days, None) => days,
    }
}

/// A number or a name, from 1 or from 0 on.
fn index(text: &str, names: &[&str], first: usize) -> Option<usize> {
    let number = text.parse::<usize>().ok().and_then(|number| number.checked_sub(first));
    let named = || names.iter().position(|name| name[..3].eq_ignore_ascii_case(text));
    number.or_else(named).map(|index| index % names.len())
}

fn name<'a>(text: &'a str, names: &'a [&'a str], first: usize) -> &'a str {
    index(text, names, first).map_or(text, |index| names[index])
}

/// `1st`, if it is a number.
fn nth(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), ordinal)
}

fn dates(field: &str) -> String {
    let (mut plain, mut others) = (Vec::new(), Vec::new());
    for item in field.split(',') {
        let (base, step) = stepped(item);
        if base.starts_with('H') {
            others.push(own(base, step, "day of the month"));
        } else if item == "L" {
            others.push("on the last day of the month".into());
        } else if item == "LW" {
            others.push("on the last day from Monday to Friday of the month".into());
        } else if let Some(before) = item.strip_prefix("L-") {
            let unit = if before == "1" { "day" } else { "days" };
            others.push(format!("{before} {unit} before the last of the month"));
        } else if let Some(day) = item.strip_suffix('W') {
            others.push(format!("on the day from Monday to Friday nearest to the {}", nth(day)));
        } else {
            plain.push(match (base.split_once('-'), step) {
                (Some((first, last)), None) => format!("{} to {}", nth(first), nth(last)),
                (Some((first, last)), Some(step)) => {
                    format!(
                        "every {} day of the month from the {} to the {}",
                        ordinal(step),
                        nth(first),
                        nth(last)
                    )
                }
                (None, Some(step)) => {
                    let first = if base == "*" { "1" } else { base };
                    format!("every {} day of the month from the {} on", ordinal(step), nth(first))
                }
                (None, None) => nth(base),
            });
        }
    }
    if !plain.is_empty() {
        let (steps, days): (Vec<_>, Vec<_>) =
            plain.into_iter().partition(|item: &String| item.starts_with("every"));
        others.splice(0..0, steps);
        if !days.is_empty() {
            others.insert(0, format!("on the {} of the month", listed(&days, "and")));
        }
    }
    listed(&others, "and")
}

fn weekdays(field: &str) -> String {
    let (mut plain, mut others) = (Vec::new(), Vec::new());
    let day = |text: &str| name(text, &WEEKDAYS, 0).to_owned();
    for item in field.split(',') {
        let (base, step) = stepped(item);
        if base.starts_with('H') {
            others.push(own(base, step, "day of the week"));
        } else if let Some((which, week)) = item.split_once('#') {
            others.push(format!("on the {} {} of the month", nth(week), day(which)));
        } else if let Some(last) = item.strip_suffix('L') {
            others.push(format!("on the last {} of the month", day(last)));
        } else {
            plain.push(match (base.split_once('-'), step) {
                (Some((first, last)), None) => format!("{} to {}", day(first), day(last)),
                (Some((first, last)), Some(step)) => {
                    format!("every {} day from {} to {}", ordinal(step), day(first), day(last))
                }
                (None, Some(step)) => {
                    let first = if base == "*" { "Sunday".into() } else { day(base) };
                    format!("every {} day of the week from {first} on", ordinal(step))
                }
                (None, None) => day(base),
            });
        }
    }
    if !plain.is_empty() {
        let range =
            plain.len() == 1 && (plain[0].contains(" to ") || plain[0].starts_with("every"));
        let on = if range { "" } else { "on " };
        others.insert(0, format!("{on}{}", listed(&plain, "and")));
    }
    listed(&others, "and")
}

fn months(field: &str) -> String {
    let month = |text: &str| name(text, &MONTHS, 1).to_owned();
    let items: Vec<String> = field
        .split(',')
        .map(|item| {
            let (base, step) = stepped(item);
            if base.starts_with('H') {
                return own(base, step, "month").trim_start_matches("on ").to_owned();
            }
            match (base.split_once('-'), step) {
                (Some((first, last)), None) => format!("{} to {}", month(first), month(last)),
                (Some((first, last)), Some(step)) => {
                    format!(
                        "every {} month from {} to {}",
                        ordinal(step),
                        month(first),
                        month(last)
                    )
                }
                (None, Some(step)) => {
                    let first = if base == "*" { "January".into() } else { month(base) };
                    format!("every {} month from {first} on", ordinal(step))
                }
                (None, None) => month(base),
            }
        })
        .collect();
    format!("in {}", listed(&items, "and"))
}

fn stepped(item: &str) -> (&str, Option<u32>) {
    match item.split_once('/') {
        Some((base, step)) => (base, step.parse().ok().filter(|step| *step > 1)),
        None => (item, None),
    }
}

/// One that is the job's alone.
fn own(base: &str, step: Option<u32>, unit: &str) -> String {
    let range = base[1..].trim_matches(['(', ')']).replace('-', " to ");
    let range = if range.is_empty() { range } else { format!(" from {range}") };
    match step {
        Some(step) => format!("on every {} {unit} from one of its own on{range}", ordinal(step)),
        None => format!("on a {unit} of its own{range}"),
    }
}
