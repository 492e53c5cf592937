//! Formats times and texts for display.

use evenkeel_core::{Span, Timestamp};

/// Returns a text on one line without control characters, because names and outputs of jobs are
/// untrusted. Line breaks and tabs become the escape sequences `\n`, `\r` and `\t`.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => cleaned.push_str("\\n"),
            '\r' => cleaned.push_str("\\r"),
            '\t' => cleaned.push_str("\\t"),
            c if c.is_control() => cleaned.push('\u{fffd}'),
            c => cleaned.push(c),
        }
    }
    cleaned
}

/// Returns a text without control characters, but with its line breaks.
pub fn clean_lines(text: &str) -> String {
    let keep = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().map(|c| if keep(c) { c } else { '\u{fffd}' }).collect()
}

pub fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + 1 + word.chars().count() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// Quotes a text for a shell.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Formats a time relative to another: `in 12s`, `3m ago`, `now`.
pub fn ago(moment: Timestamp, now: Timestamp) -> String {
    let (ahead, behind) = (moment.since(now), now.since(moment));
    if ahead < Span::from_millis(500) && behind < Span::from_millis(500) {
        "now".into()
    } else if ahead.is_zero() {
        format!("{} ago", rounded(behind))
    } else {
        format!("in {}", rounded(ahead))
    }
}

pub fn duration_ms(millis: u64) -> String {
    if millis < 10_000 {
        if millis < 1000 {
            return format!("{millis}ms");
        }
        return format!("{}.{}s", millis / 1000, millis % 1000 / 100);
    }
    rounded(Span::from_millis(millis))
}

/// Formats a duration in its largest unit; below 10 units, adds the next smaller unit.
fn rounded(span: Span) -> String {
    let secs = (span.as_millis() + 500) / 1000;
    let (minutes, hours, days) = (secs / 60, secs / 3600, secs / 86_400);
    let two = |big: u64, big_unit: &str, small: u64, small_unit: &str| {
        if big < 10 && small > 0 {
            format!("{big}{big_unit} {small}{small_unit}")
        } else {
            format!("{big}{big_unit}")
        }
    };
    match secs {
        0..60 => format!("{secs}s"),
        60..3600 => two(minutes, "m", secs % 60, "s"),
        3600..86_400 => two(hours, "h", minutes % 60, "m"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ago_is_relative_to_now() {
        let now = Timestamp::from_micros(1_800_000_000_000_000);
        let later = |secs| now.saturating_add(Span::from_secs(secs));
        assert_eq!(ago(now, now), "now");
        assert_eq!(ago(later(12), now), "in 12s");
        assert_eq!(ago(later(90), now), "in 1m 30s");
        assert_eq!(ago(now, later(3600 * 5)), "5h ago");
        assert_eq!(ago(now, later(86_400 * 30)), "30d ago");
    }

    #[test]
    fn durations_show_one_or_two_units() {
        assert_eq!(duration_ms(7), "7ms");
        assert_eq!(duration_ms(1234), "1.2s");
        assert_eq!(duration_ms(61_000), "1m 1s");
    }

    #[test]
    fn clean_replaces_control_characters() {
        assert_eq!(clean("a\x1b]0;x\x07\u{9b}b"), "a\u{fffd}]0;x\u{fffd}\u{fffd}b");
        assert_eq!(clean_lines("a\x1b\n\tb\r"), "a\u{fffd}\n\tb\u{fffd}");
    }

    #[test]
    fn clean_shows_line_breaks_as_escapes() {
        assert_eq!(clean("a\r\nb\tc"), "a\\r\\nb\\tc");
    }

    #[test]
    fn wrapped_breaks_between_words() {
        assert_eq!(wrapped("one two three", 8), "one two\nthree");
        assert_eq!(wrapped("unbreakable", 3), "unbreakable");
    }

    #[test]
    fn quoted_names_can_be_pasted_into_a_shell() {
        assert_eq!(quoted("news-1"), "news-1");
        assert_eq!(quoted("my job"), "'my job'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
