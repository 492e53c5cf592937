//! Parses durations, and reports the position of errors.

use evenkeel_core::Span;
use evenkeel_core::schedule::{CalendarError, CalendarSpan};
use evenkeel_core::time::SpanError;

use super::syntax_error::{SyntaxError, without_spaces};

/// The time between two runs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Length {
    /// A duration of fixed length.
    Elapsed(Span),
    /// A number of calendar days, months or years, whose length varies.
    Calendar(CalendarSpan),
}

const PLAIN: &str = "1h 30m";
const ISO: &str = "PT30M";

/// Names of the units of durations, each with its length in nanoseconds.
const UNITS: [(&str, u128); 10] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
];

/// Parses a fixed or calendar duration, such as `30m`, `1h 30m`, `1.5h`, `PT30M` or `P1M`.
pub(super) fn length(text: &str) -> Result<Length, SyntaxError> {
    without_spaces(text, |text| match text.starts_with(['P', 'p']) {
        true => iso(text),
        false => elapsed(text).map(Length::Elapsed),
    })
}

/// Parses a fixed duration.
pub(super) fn span(text: &str) -> Result<Span, SyntaxError> {
    match length(text)? {
        Length::Elapsed(span) => Ok(span),
        Length::Calendar(_) => {
            let message = "days and months of the calendar are not always equally long: write \
                           them in hours, or as 1d for 24 hours";
            Err(SyntaxError::new(0, message, "24h"))
        }
    }
}

/// Parses durations in the format of Go, such as `1h30m`, but also with days and weeks.
fn elapsed(text: &str) -> Result<Span, SyntaxError> {
    let wrong = |at, message: String| Err(SyntaxError::new(at, message, PLAIN));
    let chars: Vec<char> = text.chars().collect();
    let run = |from: usize, fits: fn(char) -> bool| {
        chars[from..].iter().position(|c| !fits(*c)).map_or(chars.len(), |length| from + length)
    };
    if chars.is_empty() {
        return wrong(0, "a length of time is missing".into());
    }
    let (mut at, mut nanos) = (0, 0_u128);
    while at < chars.len() {
        let end = run(at, |c| c.is_ascii_digit() || c == '.');
        let number: String = chars[at..end].iter().collect();
        let digits = number.bytes().filter(u8::is_ascii_digit).count();
        if digits == 0 || digits > 20 || number.bytes().filter(|byte| *byte == b'.').count() > 1 {
            return wrong(at, "this is not a length of time: a number belongs here".into());
        }
        let unit_at = run(end, char::is_whitespace);
        let unit_end = run(unit_at, char::is_alphabetic);
        let unit: String = chars[unit_at..unit_end].iter().collect();
        let Some((_, of_unit)) = UNITS.into_iter().find(|(name, _)| *name == unit) else {
            let units = "ns, us, ms, s, m, h, d or w";
            let message = match unit.as_str() {
                "" => format!("the number needs a unit, {units}: write {number}m"),
                unit => format!("{unit} is not a unit: write {units}"),
            };
            return wrong(unit_at, message);
        };
        let Some(added) = times(&number, of_unit).and_then(|more| nanos.checked_add(more)) else {
            return wrong(at, "this is longer than any schedule".into());
        };
        nanos = added;
        at = run(unit_end, char::is_whitespace);
    }
    match u64::try_from(nanos / 1_000) {
        Ok(micros) => Ok(Span::from_micros(micros)),
        Err(_) => wrong(0, "this is longer than any schedule".into()),
    }
}

fn times(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    whole.checked_mul(unit)?.checked_add(part.checked_mul(unit)? / scale)
}

/// Parses an ISO 8601 duration.
fn iso(text: &str) -> Result<Length, SyntaxError> {
    if iso_shape(text)? {
        let wrong = |error: CalendarError| SyntaxError::new(0, format!("this is {error}"), "P1M");
        text.parse().map(Length::Calendar).map_err(wrong)
    } else {
        let wrong = |error: SpanError| SyntaxError::new(0, format!("this is {error}"), ISO);
        text.parse().map(Length::Elapsed).map_err(wrong)
    }
}

/// Returns an error with the position of the first character that ISO 8601 does not allow in a
/// duration. Returns true if the duration has days, weeks, months or years.
fn iso_shape(text: &str) -> Result<bool, SyntaxError> {
    let wrong = |at: usize, message: String| Err(SyntaxError::new(at, message, ISO));
    let chars: Vec<char> = text.to_uppercase().chars().collect();
    let (mut at, mut units, mut parts) = (1, "YMWD", 0);
    let (mut in_time, mut has_days) = (false, false);
    while at < chars.len() {
        if chars[at] == 'T' && !in_time {
            (in_time, units, parts) = (true, "HMS", 0);
            at += 1;
            continue;
        }
        let end = chars[at..].iter().position(|c| !(c.is_ascii_digit() || matches!(c, '.' | ',')));
        let end = end.map_or(chars.len(), |length| at + length);
        if end == at {
            return wrong(at, format!("{} does not belong here: a number does", chars[at]));
        }
        let Some(unit) = chars.get(end) else {
            return wrong(end, format!("the number needs a unit: {}", listed(units)));
        };
        if !in_time && "HS".contains(*unit) && !chars.contains(&'T') {
            let (date, time): (String, String) =
                (chars[..at].iter().collect(), chars[at..].iter().collect());
            return wrong(end, format!("{unit} belongs after a T: write {date}T{time}"));
        }
        let Some(place) = units.find(*unit) else {
            return wrong(end, format!("{unit} is not a unit here: {}", listed(units)));
        };
        has_days |= !in_time;
        units = &units[place + 1..];
        parts += 1;
        at = end + 1;
    }
    if parts == 0 {
        return wrong(chars.len(), "a number and its unit are missing".into());
    }
    Ok(has_days)
}

fn listed(units: &str) -> String {
    match units {
        "" => "nothing may follow".into(),
        units => {
            let units: Vec<String> = units.chars().map(String::from).collect();
            format!("write {}", units.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> usize {
        length(text).unwrap_err().position
    }

    #[test]
    fn lengths_parse_in_every_documented_form() {
        for (text, micros) in [
            ("30m", 1_800_000_000),
            ("1h 30m", 5_400_000_000),
            ("1h30m", 5_400_000_000),
            ("1.5h", 5_400_000_000),
            (" 90 s ", 90_000_000),
            ("7d", 604_800_000_000),
            ("1500000000ns", 1_500_000),
            ("5µs", 5),
            ("PT30M", 1_800_000_000),
            ("pt1h30m", 5_400_000_000),
            ("PT0.5S", 500_000),
        ] {
            assert_eq!(span(text), Ok(Span::from_micros(micros)), "{text}");
        }
        for text in ["P1D", "P1M", "P1Y2M10DT2H30M", "P2W", "p1d"] {
            assert!(matches!(length(text), Ok(Length::Calendar(_))), "{text}");
        }
    }

    #[test]
    fn syntax_errors_have_the_position_of_the_wrong_character() {
        assert_eq!(place(""), 0);
        assert_eq!(place("30"), 2);
        assert_eq!(place("30 parsecs"), 3);
        assert_eq!(place("1h 30x"), 5);
        assert_eq!(place("  1h,30m"), 4);
        assert_eq!(place("-5m"), 0);
        assert_eq!(place("P"), 1);
        assert_eq!(place("PT"), 2);
        assert_eq!(place("PT30"), 4);
        assert_eq!(place("PT30X"), 4);
        assert_eq!(place("P1H"), 2);
        assert_eq!(place("PT5M3H"), 5);
        assert_eq!(place("P1DT"), 4);
        assert_eq!(place("PTT5M"), 2);
        assert_eq!(place("99999999999999999w"), 0);
    }

    #[test]
    fn calendar_days_are_refused_where_a_fixed_duration_is_needed() {
        assert!(span("P1D").unwrap_err().message.contains("1d for 24 hours"));
    }
}
