//! Parses schedules that are written as one line of text.

use evenkeel_core::schedule::{CalendarInterval, Cron, CronSchedule, Interval};
use evenkeel_core::{Schedule, Span, Timestamp};

use super::length::{Length, length};
use super::limits::EXPRESSION_CHARS_MAX;
use super::syntax_error::{SyntaxError, without_spaces};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParsedSchedule {
    pub schedule: Schedule,
    /// Number of runs, if the schedule text contains that number, as in `R5/…`.
    pub times: Option<u64>,
    /// True if the schedule text was a cron expression or an interval such as `@every 30m`.
    pub(super) as_cron: bool,
    /// True for a periodic schedule with the default cooldown, which another field may replace.
    pub(super) open_cooldown: bool,
}

impl From<Schedule> for ParsedSchedule {
    fn from(schedule: Schedule) -> Self {
        Self { schedule, times: None, as_cron: false, open_cooldown: false }
    }
}

const CRON: &str = "0 9 * * 1-5";
const EVERY: &str = "@every 30m";
const REPEATING: &str = "R/2026-12-01T00:00:00Z/PT30M";
/// One example of each form of schedule.
pub(super) const ALL_FORMS: &str =
    "0 9 * * 1-5, @daily, @every 30m, 30m, PT30M, P1M or R/2026-12-01T00:00:00Z/PT30M";

/// Parses a schedule on one line, such as `0 9 * * 1-5`, `@daily`, `@every 30m`, `30m`, `PT30M`,
/// `P1M`, `R/2026-12-01T00:00:00Z/PT30M` or `R5/PT30M`.
pub fn read_schedule(text: &str) -> Result<ParsedSchedule, SyntaxError> {
    bounded(text)?;
    without_spaces(text, any_form)
}

/// Refuses schedule texts that are too long, because the store saves the text as it was written.
fn bounded(text: &str) -> Result<(), SyntaxError> {
    if text.chars().nth(EXPRESSION_CHARS_MAX).is_none() {
        return Ok(());
    }
    let message = format!("at most {EXPRESSION_CHARS_MAX} characters are read");
    Err(SyntaxError::new(EXPRESSION_CHARS_MAX, message, CRON))
}

/// Parses a cron expression, or an interval such as `@every 30m`.
pub(crate) fn read_cron(text: &str) -> Result<ParsedSchedule, SyntaxError> {
    bounded(text)?;
    let is_every = strip_every(text.trim()).is_some();
    without_spaces(text, if is_every { any_form } else { cron })
}

fn any_form(text: &str) -> Result<ParsedSchedule, SyntaxError> {
    if let Some(span) = strip_every(text) {
        let parsed = every(span).map(|parsed| ParsedSchedule { as_cron: true, ..parsed });
        return parsed.map_err(|it| SyntaxError { example: EVERY, ..it.after("@every".len()) });
    }
    let words = text.split_whitespace().count();
    let repeats = text.strip_prefix(['R', 'r']);
    if let Some(rest) =
        repeats.filter(|rest| rest.starts_with(|c: char| c == '/' || c.is_ascii_digit()))
    {
        repeating(rest).map_err(|error| SyntaxError { example: REPEATING, ..error.after(1) })
    } else if text.starts_with(['P', 'p']) && words == 1 {
        every(text)
    } else if text.starts_with('@')
        || looks_like_cron(text)
        || (words > 1 && !looks_like_length(text))
    {
        cron(text)
    } else if looks_like_length(text) {
        if text.parse::<Timestamp>().is_ok() {
            let message = "a time alone is not a schedule: for one run, write {\"kind\": \"once\", \
                           \"at\": …}; to repeat from then on";
            return Err(SyntaxError::new(0, message, REPEATING));
        }
        every(text)
    } else {
        Err(SyntaxError::new(0, "this is not a schedule", ALL_FORMS))
    }
}

/// Returns the text after `@every`, which may be in upper or lower case.
fn strip_every(text: &str) -> Option<&str> {
    let (name, rest) = text.split_at_checked("@every".len())?;
    let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
    (ends && name.eq_ignore_ascii_case("@every")).then_some(rest)
}

/// True if the text has 5 or 6 words that look like fields of a cron expression.
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

/// True if the text looks like a duration, such as `30m` or `1h 30m`.
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

fn cron(text: &str) -> Result<ParsedSchedule, SyntaxError> {
    match Cron::parse(text) {
        Ok(cron) => {
            let schedule = Schedule::Cron(CronSchedule { cron, max_duration: None });
            Ok(ParsedSchedule { as_cron: true, ..schedule.into() })
        }
        Err(fault) => Err(SyntaxError::new(fault.position, fault.message, CRON)),
    }
}

fn every(text: &str) -> Result<ParsedSchedule, SyntaxError> {
    let schedule = without_spaces(text, |text| at_intervals(length(text)?, None, None));
    schedule.map(ParsedSchedule::from)
}

pub(super) fn at_intervals(
    length: Length,
    anchor: Option<Timestamp>,
    tolerance: Option<Span>,
) -> Result<Schedule, SyntaxError> {
    match length {
        Length::Elapsed(span) => Interval::new(span, anchor)
            .map(|every| Schedule::Interval(every.with_tolerance(tolerance)))
            .map_err(|error| SyntaxError::new(0, error.to_string(), "30m")),
        Length::Calendar(every) => {
            Ok(Schedule::Calendar(CalendarInterval { every, anchor, tolerance }))
        }
    }
}

/// Parses an ISO 8601 repetition after its `R`: an optional count, followed by a duration, or by a
/// start and a duration, or by a start and an end.
fn repeating(text: &str) -> Result<ParsedSchedule, SyntaxError> {
    let wrong = |at: usize, message: &str| Err(SyntaxError::new(at, message, REPEATING));
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let times = match &text[..digits] {
        "" => None,
        count => match count.parse::<u64>() {
            Ok(0) => {
                let message = "0 runs are not a schedule: write 1 or more, or nothing for no end";
                return wrong(0, message);
            }
            Ok(count) => Some(count),
            Err(_) => return wrong(0, "the count is too large: write nothing for no end"),
        },
    };
    let Some(rest) = text[digits..].strip_prefix('/') else {
        return wrong(digits, "a / belongs here");
    };
    let at = digits + 1;
    let parts: Vec<&str> = rest.split('/').collect();
    let schedule = match parts[..] {
        [span] => length(span)
            .and_then(|length| at_intervals(length, None, None))
            .map_err(|it| it.after(at)),
        [start, last] => {
            let moment = |text: &str, at: usize| {
                text.parse::<Timestamp>()
                    .map_err(|error| SyntaxError::new(at, format!("this is {error}"), REPEATING))
            };
            let last_at = at + start.chars().count() + 1;
            let anchor = moment(start, at)?;
            if last.starts_with(['P', 'p']) {
                let length = length(last).map_err(|it| it.after(last_at))?;
                at_intervals(length, Some(anchor), None)
            } else {
                let end = moment(last, last_at)?;
                if end <= anchor {
                    return wrong(last_at, "the end of the first interval is not after its start");
                }
                at_intervals(Length::Elapsed(end.since(anchor)), Some(anchor), None)
            }
            .map_err(|it| it.after(last_at))
        }
        _ => return wrong(at, "after R/, write a duration, or a start, a / and a duration"),
    };
    Ok(ParsedSchedule { times, ..schedule?.into() })
}
