//! Schedules on one line.

use evenkeel_core::schedule::{CalendarInterval, Cron, CronSchedule, Interval};
use evenkeel_core::{Schedule, Timestamp};

use super::length::{Length, length};
use super::limits::EXPRESSION_CHARS_MAX;
use super::misread::Misread;

/// A schedule on one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// The rule.
    pub schedule: Schedule,
    /// How many times it has, if that was said: `R5/…`.
    pub times: Option<u64>,
    /// Was it said in the language of cron, `@every 30m` included?
    pub(super) as_cron: bool,
    /// Was the cooldown of its periodic schedule left open, and has a default one?
    pub(super) open_cooldown: bool,
}

impl From<Schedule> for Said {
    fn from(schedule: Schedule) -> Self {
        Self { schedule, times: None, as_cron: false, open_cooldown: false }
    }
}

const CRON: &str = "0 9 * * 1-5";
const EVERY: &str = "@every 30m";
const REPEATING: &str = "R/2026-12-01T00:00:00Z/PT30M";
/// One of each form.
pub(super) const ALL_FORMS: &str =
    "0 9 * * 1-5, @daily, @every 30m, 30m, PT30M, P1M or R/2026-12-01T00:00:00Z/PT30M";

/// Reads a schedule on one line: `0 9 * * 1-5`, `@daily`, `@every 30m`, `30m`, `PT30M`, `P1M`,
/// `R/2026-12-01T00:00:00Z/PT30M`, `R5/PT30M`.
pub fn read_schedule(text: &str) -> Result<Said, Misread> {
    bounded(text)?;
    let skipped = text.chars().take_while(|c| c.is_whitespace()).count();
    trimmed(text.trim()).map_err(|misread| misread.after(skipped))
}

/// An expression is stored as it was written, so it must not be endless.
fn bounded(text: &str) -> Result<(), Misread> {
    if text.chars().nth(EXPRESSION_CHARS_MAX).is_none() {
        return Ok(());
    }
    let message = format!("at most {EXPRESSION_CHARS_MAX} characters are read");
    Err(Misread::new(EXPRESSION_CHARS_MAX, message, CRON))
}

/// Reads what may stand where a cron expression is asked for: one, or `@every 30m`.
pub(crate) fn read_cron(text: &str) -> Result<Said, Misread> {
    bounded(text)?;
    let skipped = text.chars().take_while(|c| c.is_whitespace()).count();
    let read = match strip_every(text.trim()) {
        Some(_) => trimmed(text.trim()),
        None => cron(text.trim()),
    };
    read.map_err(|misread| misread.after(skipped))
}

fn trimmed(text: &str) -> Result<Said, Misread> {
    if let Some(span) = strip_every(text) {
        let said = every(span).map(|said| Said { as_cron: true, ..said });
        return said.map_err(|it| Misread { example: EVERY, ..it.after("@every".len()) });
    }
    let words = text.split_whitespace().count();
    let repeats = text.strip_prefix(['R', 'r']);
    if let Some(rest) =
        repeats.filter(|rest| rest.starts_with(|c: char| c == '/' || c.is_ascii_digit()))
    {
        repeating(rest).map_err(|misread| Misread { example: REPEATING, ..misread.after(1) })
    } else if text.starts_with(['P', 'p']) && words == 1 {
        every(text)
    } else if text.starts_with('@')
        || looks_like_cron(text)
        || (words > 1 && !looks_like_length(text))
    {
        cron(text)
    } else if looks_like_length(text) {
        if text.parse::<Timestamp>().is_ok() {
            let message = "a time alone is no rule: for one run, write {\"kind\": \"once\", \
                           \"at\": …}; to repeat from then on";
            return Err(Misread::new(0, message, REPEATING));
        }
        every(text)
    } else {
        Err(Misread::new(0, "this is not a schedule", ALL_FORMS))
    }
}

/// What stands after `@every`, of any case.
fn strip_every(text: &str) -> Option<&str> {
    let (name, rest) = text.split_at_checked("@every".len())?;
    let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
    (ends && name.eq_ignore_ascii_case("@every")).then_some(rest)
}

/// Has it as many words as an expression, each of them made of what cron knows?
fn looks_like_cron(text: &str) -> bool {
    const WORDS: [&str; 26] = [
        "", "*", "?", "H", "L", "W", "LW", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG",
        "SEP", "OCT", "NOV", "DEC", "SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT",
    ];
    let known = |part: &str| {
        let letters = part.trim_start_matches(|c: char| c.is_ascii_digit()).to_ascii_uppercase();
        let day = letters.strip_suffix('L').unwrap_or(&letters);
        let number = letters.len() < part.len();
        let only_days = matches!(letters.as_str(), "" | "L" | "W");
        if number { only_days } else { WORDS.contains(&letters.as_str()) || WORDS.contains(&day) }
    };
    matches!(text.split_whitespace().count(), 5 | 6)
        && text.split_whitespace().all(|word| word.split([',', '-', '/', '#', '(', ')']).all(known))
}

/// Does it begin with a number and its unit, or with a number alone?
fn looks_like_length(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    let begins = first.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let has_unit = |word: &str| word.contains(char::is_alphabetic);
    let cronish = |c: char| matches!(c, '*' | '/' | ',' | '?' | '#' | '-');
    begins
        && match words.next() {
            None => true,
            Some(second) => {
                !text.contains(cronish)
                    && (has_unit(first) || second.starts_with(char::is_alphabetic))
            }
        }
}

fn cron(text: &str) -> Result<Said, Misread> {
    match Cron::parse(text) {
        Ok(cron) => {
            let schedule = Schedule::Cron(CronSchedule { cron, max_duration: None });
            Ok(Said { as_cron: true, ..schedule.into() })
        }
        Err(fault) => Err(Misread::new(fault.position, fault.message, CRON)),
    }
}

/// The rule of so much time between two runs.
fn every(text: &str) -> Result<Said, Misread> {
    let skipped = text.chars().take_while(|c| c.is_whitespace()).count();
    let schedule = at_intervals(length(text)?, None).map_err(|misread| misread.after(skipped));
    schedule.map(Said::from)
}

pub(super) fn at_intervals(length: Length, anchor: Option<Timestamp>) -> Result<Schedule, Misread> {
    match length {
        Length::Elapsed(span) => Interval::new(span, anchor)
            .map(Schedule::Interval)
            .map_err(|error| Misread::new(0, error.to_string(), "30m")),
        Length::Calendar(every) => {
            Ok(Schedule::Calendar(CalendarInterval { every, anchor, tolerance: None }))
        }
    }
}

/// ISO 8601: a count or nothing, then a duration, or a start and a duration or an end.
fn repeating(text: &str) -> Result<Said, Misread> {
    let wrong = |at: usize, message: &str| Err(Misread::new(at, message, REPEATING));
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let times = match &text[..digits] {
        "" => None,
        count => match count.parse::<u64>() {
            Ok(0) => return wrong(0, "no run at all: write 1 or more, or nothing for no end"),
            Ok(count) => Some(count),
            Err(_) => return wrong(0, "that many runs there never are: write nothing for no end"),
        },
    };
    let mut at = digits;
    let Some(rest) = text[digits..].strip_prefix('/') else {
        return wrong(digits, "a / belongs here");
    };
    at += 1;
    let parts: Vec<&str> = rest.split('/').collect();
    let schedule = match parts[..] {
        [span] => {
            length(span).and_then(|length| at_intervals(length, None)).map_err(|it| it.after(at))
        }
        [start, last] => {
            let moment = |text: &str, at: usize| {
                text.parse::<Timestamp>()
                    .map_err(|error| Misread::new(at, format!("this is {error}"), REPEATING))
            };
            let last_at = at + start.chars().count() + 1;
            let anchor = moment(start, at)?;
            if last.starts_with(['P', 'p']) {
                let length = length(last).map_err(|it| it.after(last_at))?;
                at_intervals(length, Some(anchor))
            } else {
                let end = moment(last, last_at)?;
                if end <= anchor {
                    return wrong(last_at, "the end of the first interval is not after its start");
                }
                at_intervals(Length::Elapsed(end.since(anchor)), Some(anchor))
            }
            .map_err(|it| it.after(last_at))
        }
        _ => return wrong(at, "after R/, write a duration, or a start, a / and a duration"),
    };
    Ok(Said { times, ..schedule?.into() })
}
