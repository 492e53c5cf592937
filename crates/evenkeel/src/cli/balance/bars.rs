//! Bars drawn with Unicode characters.

use evenkeel_core::Timestamp;

use crate::output::duration_ms;
pub(super) use crate::output::wrapped;

/// Block characters that are filled from the left, in steps of one eighth.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
/// Block characters that are filled from below, in steps of one eighth.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws `value` as a horizontal bar without trailing spaces, and a vertical line at `mark`. A bar
/// of full length, `width` characters, stands for the value `most`.
pub(in crate::cli) fn bar(value: f64, most: f64, width: usize, mark: Option<f64>) -> String {
    let place = |value: f64| {
        if most > 0.0 { (value / most).clamp(0.0, 1.0) * width as f64 } else { 0.0 }
    };
    let length = place(value);
    let full = length as usize;
    let mut cells: Vec<char> = vec![' '; width];
    cells.iter_mut().take(full).for_each(|cell| *cell = '█');
    if let Some(cell) = cells.get_mut(full) {
        *cell = EIGHTHS[((length.fract() * 8.0) as usize).min(7)];
        // The bar of a value above 0 has at least one visible character.
        if full == 0 && value > 0.0 && *cell == ' ' {
            *cell = EIGHTHS[1];
        }
    }
    if let Some(mark) = mark.filter(|mark| *mark > 0.0 && width > 0) {
        // `mark` is the value that every bar would have if the load were even.
        let at = (place(mark).ceil() as usize).clamp(1, width) - 1;
        cells[at] = '│';
    }
    let text: String = cells.into_iter().collect();
    text.trim_end().into()
}

/// Draws each value as a vertical bar of one character.
pub(super) fn spark(values: &[f64], most: f64) -> String {
    values.iter().map(|value| level(*value, most)).collect()
}

pub(super) fn level(value: f64, most: f64) -> char {
    if value <= 0.0 || most <= 0.0 {
        return ' ';
    }
    LEVELS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1]
}

/// `14:00`
pub(super) fn clock(hour: u8) -> String {
    format!("{hour:02}:00")
}

/// Returns the hour of the day of a time in UTC, from 0 to 23.
pub(super) fn hour_of(time: Timestamp) -> u8 {
    let hours = time.as_micros().div_euclid(3_600_000_000).rem_euclid(24);
    u8::try_from(hours).unwrap_or(0)
}

/// Returns the 24 hours of a day, starting at the hour `first`.
pub(super) fn hours_from(first: u8) -> impl Iterator<Item = u8> {
    (0..24).map(move |n| (first + n) % 24)
}

/// Formats the length of a time slot: `15m`, `30s`.
pub(super) fn slot(minutes: f64) -> String {
    duration_ms((minutes * 60_000.0).max(0.0) as u64)
}

/// Formats a number with thousands separators: `1,234`.
pub(in crate::cli) fn grouped(count: f64) -> String {
    let digits = format!("{:.0}", count.max(0.0));
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 job`, `2 jobs`
pub(super) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(count as f64))
}

/// `2 protection_window, 1 job_running`
pub(in crate::cli) fn reasons(by_reason: &std::collections::BTreeMap<String, u64>) -> String {
    let mut all: Vec<_> = by_reason.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let all = all.into_iter().map(|(reason, count)| {
        format!("{} {}", grouped(*count as f64), crate::output::clean(reason))
    });
    all.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_length_is_proportional() {
        assert_eq!(bar(8.0, 8.0, 4, None), "████");
        assert_eq!(bar(4.0, 8.0, 4, None), "██");
        assert_eq!(bar(1.0, 8.0, 4, None), "▌");
        assert_eq!(bar(0.0, 8.0, 4, None), "");
        assert_eq!(bar(0.001, 8.0, 4, None), "▏", "the smallest value is visible");
        assert_eq!(bar(3.0, 0.0, 4, None), "▏");
        assert_eq!(bar(3.0, 3.0, 0, None), "");
    }

    #[test]
    fn line_marks_the_even_spread() {
        assert_eq!(bar(1.0, 8.0, 8, Some(4.0)), "█  │");
        assert_eq!(bar(8.0, 8.0, 8, Some(4.0)), "███│████");
        assert_eq!(bar(0.0, 8.0, 8, Some(8.0)), "       │");
        assert_eq!(bar(2.0, 8.0, 8, Some(0.0)), "██");
    }

    #[test]
    fn small_bars_are_empty_for_zero() {
        assert_eq!(spark(&[0.0, 1.0, 4.0, 8.0], 8.0), " ▁▄█");
        assert_eq!(spark(&[0.0, 0.0], 0.0), "  ");
    }

    #[test]
    fn thousands_are_grouped() {
        for (count, text) in
            [(0.0, "0"), (999.0, "999"), (1000.0, "1,000"), (1_234_567.0, "1,234,567")]
        {
            assert_eq!(grouped(count), text);
        }
        assert_eq!((counted(1, "job"), counted(2, "job")), ("1 job".into(), "2 jobs".into()));
    }

    #[test]
    fn day_may_begin_at_any_hour() {
        let hours: Vec<u8> = hours_from(22).collect();
        assert_eq!((hours.len(), hours[0], hours[2], hours[23]), (24, 22, 0, 21));
    }
}
