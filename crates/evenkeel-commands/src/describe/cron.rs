//! Describes cron expressions in English.

use super::days;
use super::items::{HOURS, Item, SIXTY, Unit};
use super::words::{listed, ordinal};

/// Maximum number of times of day that a description lists one by one.
const TIMES_MAX: usize = 6;

/// Describes a valid cron expression.
pub(super) fn describe(expression: &str) -> String {
    let expression = match expression.trim().to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => "0 0 1 1 *".into(),
        "@monthly" => "0 0 1 * *".into(),
        "@weekly" => "0 0 * * 0".into(),
        "@daily" | "@midnight" => "0 0 * * *".into(),
        "@hourly" => "0 * * * *".into(),
        _ => expression.to_uppercase(),
    };
    let fields: Vec<&str> = expression.split_whitespace().collect();
    match fields[..] {
        [ref second @ .., minute, hour, date, month, weekday] if second.len() <= 1 => {
            let (time, once_a_day) = time_of_day(second.first().unwrap_or(&"0"), minute, hour);
            match days::describe([date, month, weekday]) {
                Some(days) => format!("{time}, {days}"),
                None if once_a_day => format!("{time} every day"),
                None => time,
            }
        }
        _ => format!("by the expression {expression}"),
    }
}

/// Describes the seconds, minutes and hours of a cron expression. Also returns whether "every day"
/// must be added to the description.
fn time_of_day(second: &str, minute: &str, hour: &str) -> (String, bool) {
    let (seconds, minutes, hours) = (SIXTY.items(second), SIXTY.items(minute), HOURS.items(hour));
    if let Some(text) = fixed_times(&seconds, &minutes, &hours) {
        return (text, true);
    }
    let (seconds, minutes) = (Part::of(&SIXTY, &seconds), Part::of(&SIXTY, &minutes));
    let hours = Part::of(&HOURS, &hours);
    let once_a_day = !matches!(hours, Part::Any | Part::Step(_));
    // `H` in the fields hour and minute chooses a fixed random value for each job.
    let own = match (&hours, &minutes, &seconds) {
        (Part::Own, Part::Own, Part::Own | Part::Number(0)) => {
            Some("at a time of the day of its own".into())
        }
        (Part::Number(hour), Part::Own, Part::Own) => {
            Some(format!("at a minute and second of its own after {hour:02}:00"))
        }
        (Part::Number(hour), Part::Own, Part::Number(0)) => {
            Some(format!("at a minute of its own after {hour:02}:00"))
        }
        _ => None,
    };
    if let Some(text) = own {
        return (text, once_a_day);
    }
    let mut parts = Vec::new();
    if !matches!(seconds, Part::Number(0)) {
        parts.push(seconds.small("second"));
    }
    if !(seconds.is_regular() && matches!(minutes, Part::Any)) {
        parts.push(match (&minutes, &hours) {
            (Part::Number(0), Part::Any) if parts.is_empty() => {
                return ("every hour, on the hour".into(), once_a_day);
            }
            (Part::Number(0), Part::Step(n)) if parts.is_empty() && 24 % n == 0 => {
                let text = format!("every {n} hours, on the hour, from midnight on");
                return (text, once_a_day);
            }
            (Part::Any, _) if !parts.is_empty() => "of every minute".into(),
            _ => minutes.small("minute"),
        });
    }
    let is_regular = |last: &String| last.starts_with("every") || last == "of every minute";
    if let Some(hours) = hours.large(parts.last().is_some_and(is_regular)) {
        parts.push(hours);
    }
    (parts.join(" "), once_a_day)
}

/// Returns a text such as `at 09:00 and 17:30`, if there are at most [`TIMES_MAX`] times of day.
fn fixed_times(seconds: &[Item<'_>], minutes: &[Item<'_>], hours: &[Item<'_>]) -> Option<String> {
    let numbers = |items: &[Item<'_>]| -> Option<Vec<u32>> {
        let mut numbers: Vec<u32> = items.iter().map(single).collect::<Option<_>>()?;
        numbers.sort_unstable();
        numbers.dedup();
        Some(numbers).filter(|numbers| !numbers.is_empty())
    };
    let (seconds, minutes, hours) = (numbers(seconds)?, numbers(minutes)?, numbers(hours)?);
    if seconds.len() * minutes.len() * hours.len() > TIMES_MAX {
        return None;
    }
    let mut times = Vec::new();
    for hour in &hours {
        for minute in &minutes {
            for second in &seconds {
                times.push(if seconds == [0] {
                    format!("{hour:02}:{minute:02}")
                } else {
                    format!("{hour:02}:{minute:02}:{second:02}")
                });
            }
        }
    }
    Some(format!("at {}", listed(&times, "and")))
}

/// The meaning of the seconds, minutes or hours field of a cron expression.
enum Part {
    Any,
    /// Every n-th value of the field, starting with 0.
    Step(u32),
    Number(u32),
    /// `H` without a range: a fixed random value for each job.
    Own,
    /// Any other list of values, as a description in English.
    Words(String),
}

impl Part {
    fn of(unit: &Unit, items: &[Item<'_>]) -> Self {
        match *items {
            [] => Self::Any,
            [Item::Own { range: None, step: None }] => Self::Own,
            [Item::Range { first, last, step }] if step > 1 && first == 0 && last == unit.last => {
                Self::Step(step)
            }
            [only] if single(&only).is_some() => Self::Number(single(&only).unwrap_or_default()),
            ref items => {
                let items: Vec<String> = items.iter().map(|one| item(unit, one)).collect();
                Self::Words(listed(&items, "and"))
            }
        }
    }

    /// True if all consecutive values of the field have the same distance, also across the end of a
    /// minute or an hour.
    fn is_regular(&self) -> bool {
        matches!(self, Self::Any) || matches!(self, Self::Step(n) if 60 % n == 0)
    }

    /// Describes the seconds or minutes field of a cron expression.
    fn small(&self, unit: &str) -> String {
        match self {
            Self::Any => format!("every {unit}"),
            Self::Step(n) if 60 % n == 0 => format!("every {n} {unit}s"),
            Self::Step(n) => format!("at every {} {unit} from 0 on", ordinal(*n)),
            Self::Number(n) => format!("at {unit} {n}"),
            Self::Own => format!("at a {unit} of its own"),
            Self::Words(words) => match one_item(words, unit) {
                Some(one) => format!("at {one}"),
                None => format!("at {unit}s {words}"),
            },
        }
    }

    /// Describes the hours field of a cron expression; the text follows the description of the
    /// minutes.
    fn large(&self, after_every: bool) -> Option<String> {
        Some(match self {
            Self::Any if after_every => return None,
            Self::Any => "of every hour".into(),
            Self::Step(n) => format!("of every {} hour from midnight on", ordinal(*n)),
            Self::Number(hour) => format!("of hour {hour}"),
            Self::Own => "of an hour of its own".into(),
            Self::Words(words) => match one_item(words, "hour") {
                Some(one) => format!("of {one}"),
                None => format!("of the hours {words}"),
            },
        })
    }
}

/// Adds the unit to the description of a single step or a single `H`.
fn one_item(words: &str, unit: &str) -> Option<String> {
    if words.contains(" and ") {
        return None;
    }
    if let Some(step) = words.strip_prefix("every ") {
        let (nth, range) = step.split_once(' ')?;
        return Some(format!("every {nth} {unit} {range}"));
    }
    let range = words.strip_prefix("one of its own")?;
    let article = if unit == "hour" { "an" } else { "a" };
    Some(format!("{article} {unit} of its own{range}"))
}

/// Returns the value of an item such as `5`, or `None` for a range, a step or `H`.
fn single(item: &Item<'_>) -> Option<u32> {
    match item {
        Item::Range { first, last, .. } if first == last => Some(*first),
        _ => None,
    }
}

/// Describes an item of a cron field: a number, a range, a step or `H`.
fn item(unit: &Unit, item: &Item<'_>) -> String {
    match *item {
        Item::Range { first, last, .. } if first == last => first.to_string(),
        Item::Range { first, last, step: 1 } => format!("{first} to {last}"),
        Item::Range { first, last, step } if last == unit.last => {
            format!("every {} from {first} on", ordinal(step))
        }
        Item::Range { first, last, step } => {
            format!("every {} from {first} to {last}", ordinal(step))
        }
        Item::Own { range, step } => {
            let range = range.map(|(first, last)| format!(" from {first} to {last}"));
            let range = range.unwrap_or_default();
            match step {
                Some(step) => format!("every {} from one of its own on{range}", ordinal(step)),
                None => format!("one of its own{range}"),
            }
        }
        Item::Day(text) => text.into(),
    }
}
