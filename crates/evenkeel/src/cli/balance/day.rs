//! Draws the expected load of each hour of a day as a bar.

use super::bars::{bar, clock, counted, grouped, hour_of, hours_from, slot, spark, wrapped};
use super::views::{Day, Hour, Seconds, Slot};
use crate::output::{Output, clean, duration_ms};

/// Maximum number of time slots per hour; a chart with more time slots has no sparklines.
const SPARKS_MAX: usize = 12;
/// Longest bar, for readability.
const BAR_MAX: usize = 72;

/// Draws the load of each hour of a day, in lines of at most `width` characters.
pub(super) fn draw(day: &Day, width: usize, output: Output) -> String {
    let by_cost = day.by == "cost";
    let value = |hour: &Hour| if by_cost { hour.cost_seconds } else { hour.job_count };
    let format_value = |value: f64| if by_cost { seconds(value) } else { grouped(value) };
    let most = day.hourly_distribution.iter().map(value).fold(day.least_peak_hour, f64::max);
    let numbers: Vec<String> =
        day.hourly_distribution.iter().map(|hour| format_value(value(hour))).collect();
    let number_width = numbers.iter().map(|text| text.chars().count()).max().unwrap_or(1);
    let sparks = sparks(day, by_cost);
    let spark_width = sparks.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let gap = if spark_width > 0 { 2 } else { 0 };
    let used = 2 + 5 + 2 + spark_width + gap + 2 + number_width;
    let bar_width = width.saturating_sub(used).clamp(10, BAR_MAX);
    let mut text = heading(day, &format_value);
    let now = hour_of(day.as_of);
    let peak = day.hourly_distribution.iter().map(value).fold(0.0, f64::max);
    for hour in hours_from(now) {
        let Some(shown) = day.hourly_distribution.iter().find(|shown| shown.hour == hour) else {
            continue;
        };
        let mark = if hour == now { '▸' } else { ' ' };
        let drawn = bar(value(shown), most, bar_width, Some(day.least_peak_hour));
        let is_peak = value(shown) >= peak && value(shown) > day.least_peak_hour * 1.05;
        let space = " ".repeat(bar_width.saturating_sub(drawn.chars().count()));
        let spark = sparks.get(usize::from(hour)).map_or("", String::as_str);
        let pad = " ".repeat(spark_width - spark.chars().count() + gap);
        let number = format_value(value(shown));
        text.push_str(&format!(
            "{mark} {}  {spark}{pad}{}{space}  {number:>number_width$}\n",
            clock(hour),
            if is_peak { output.warned(&drawn) } else { drawn },
        ));
    }
    text.push('\n');
    text.push_str(&wrapped(&clean(&day.suggestion), width));
    text
}

fn heading(day: &Day, format_value: &impl Fn(f64) -> String) -> String {
    let by_cost = day.by == "cost";
    let what = match day.by.as_str() {
        "next" => "the next run of each",
        "cost" => "what runs cost",
        _ => "runs",
    };
    let value = |hour: &Hour| if by_cost { hour.cost_seconds } else { hour.job_count };
    let peak = day.hourly_distribution.iter().fold(None::<&Hour>, |best, hour| match best {
        Some(best) if value(best) >= value(hour) => Some(best),
        _ => Some(hour),
    });
    let peak = peak.filter(|peak| value(peak) > 0.0).map_or_else(
        || "no peak".into(),
        |peak| {
            let in_slot =
                format!("{}/{}", format_value(day.peak_slot_count), slot(day.slot_minutes));
            format!("peak {}/h at {}, {in_slot}", format_value(value(peak)), clock(peak.hour))
        },
    );
    let level = if day.least_peak_hour > 0.0 {
        format!("   even │ {}/h", format_value(day.least_peak_hour))
    } else {
        String::new()
    };
    let seconds = day.seconds.map_or_else(String::new, |seconds| {
        let Seconds { distribution_score, peak } = seconds;
        let peak = grouped(peak);
        format!("by the second: score {distribution_score:.2}   peak {peak}/s (intervals < 15m)\n")
    });
    format!(
        "{} over the next 24 hours (UTC), by {what}\nscore {:.2}   {peak}{level}   policy {}\n{seconds}\n",
        counted(day.total_jobs, "job"),
        day.distribution_score,
        clean(&day.policy),
    )
}

/// Draws the load of the time slots of each hour as a sparkline.
fn sparks(day: &Day, by_cost: bool) -> Vec<String> {
    let value = |slot: &Slot| if by_cost { slot.cost_seconds } else { slot.job_count };
    let per_hour =
        if day.slot_minutes > 0.0 { (60.0 / day.slot_minutes).round() as usize } else { 0 };
    if !(2..=SPARKS_MAX).contains(&per_hour) {
        return Vec::new();
    }
    let most = day.slots.iter().map(value).fold(0.0, f64::max);
    let mut hours = vec![vec![0.0; per_hour]; 24];
    for slot in &day.slots {
        let minute = slot.start.as_micros().div_euclid(60_000_000).rem_euclid(60) as f64;
        let place = ((minute / day.slot_minutes) as usize).min(per_hour - 1);
        hours[usize::from(hour_of(slot.start))][place] += value(slot);
    }
    hours.iter().map(|slots| spark(slots, most)).collect()
}

fn seconds(value: f64) -> String {
    duration_ms((value.max(0.0) * 1000.0) as u64)
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{Span, Timestamp};

    use super::*;

    /// A day with 16 runs at 14:30 and one run in every other hour. The current time is 13:20.
    fn sample(by: &str) -> Day {
        let start: Timestamp = "2026-12-01T13:15:00Z".parse().unwrap();
        let slots = (0..96_u64).map(|n| {
            let start = start.saturating_add(Span::from_secs(900 * n));
            let is_half = start.as_micros() / 60_000_000 % 60 == 30;
            let count = match (is_half, hour_of(start)) {
                (true, 14) => 16.0,
                (true, _) => 1.0,
                _ => 0.0,
            };
            Slot { start, job_count: count, cost_seconds: count * 30.0 }
        });
        let hours = (0..24).map(|hour| {
            let job_count = if hour == 14 { 16.0 } else { 1.0 };
            Hour { hour, job_count, cost_seconds: job_count * 30.0 }
        });
        Day {
            as_of: "2026-12-01T13:20:00Z".parse().unwrap(),
            by: by.into(),
            slot_minutes: 15.0,
            total_jobs: 39,
            distribution_score: 0.615,
            peak_slot_count: if by == "cost" { 480.0 } else { 16.0 },
            seconds: None,
            least_peak_hour: if by == "cost" { 60.0 } else { 2.0 },
            suggestion:
                "A rebalance would raise the score from 0.62 to 1 by moving 14 jobs, and lower \
                         the fullest slot from 16 runs to 1 run."
                    .into(),
            policy: "projected".into(),
            hourly_distribution: hours.collect(),
            slots: slots.collect(),
        }
    }

    fn drawn(day: &Day, width: usize) -> Vec<String> {
        draw(day, width, Output::new(false)).lines().map(String::from).collect()
    }

    #[test]
    fn day_begins_now_and_shows_its_peak() {
        let lines = drawn(&sample("runs"), 80);
        assert_eq!(lines[0], "39 jobs over the next 24 hours (UTC), by runs");
        assert_eq!(
            lines[1],
            "score 0.61   peak 16/h at 14:00, 16/15m   even │ 2/h   policy projected"
        );
        assert!(lines[3].starts_with("▸ 13:00    ▁   ███▊   │"), "{}", lines[3]);
        assert!(lines[4].starts_with("  14:00    █   ███████│████"), "{}", lines[4]);
        assert!(lines[4].ends_with("█  16"), "{}", lines[4]);
        assert_eq!(lines.len(), 2 + 1 + 24 + 1 + 2);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [80, 120] {
            for line in drawn(&sample("runs"), width) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn cost_is_shown_as_time() {
        let lines = drawn(&sample("cost"), 80);
        assert!(lines[1].contains("peak 8m/h at 14:00, 8m/15m   even │ 1m/h"), "{}", lines[1]);
        assert!(lines[4].ends_with(" 8m"), "{}", lines[4]);
    }

    #[test]
    fn evenness_inside_slots_is_shown_if_known() {
        let mut day = sample("runs");
        day.seconds = Some(Seconds { distribution_score: 0.74, peak: 3.0 });
        let lines = drawn(&day, 80);
        assert_eq!(lines[2], "by the second: score 0.74   peak 3/s (intervals < 15m)");
        assert!(lines[4].starts_with("▸ 13:00"), "{}", lines[4]);
    }

    #[test]
    fn empty_day_is_drawn() {
        let mut day = sample("runs");
        day.slots.iter_mut().for_each(|slot| slot.job_count = 0.0);
        day.hourly_distribution.iter_mut().for_each(|hour| hour.job_count = 0.0);
        (day.total_jobs, day.least_peak_hour) = (0, 0.0);
        let lines = drawn(&day, 80);
        assert_eq!(lines[1], "score 0.61   no peak   policy projected");
        assert!(lines[3].ends_with(" 0"));
    }

    #[test]
    fn very_short_slots_have_no_small_bars() {
        let mut day = sample("runs");
        day.slot_minutes = 0.5;
        assert!(drawn(&day, 80)[3].starts_with("▸ 13:00  ██"));
    }
}
