//! `evenkeel activity`

use std::collections::BTreeMap;

use clap::Args;
use evenkeel_core::Timestamp;
use serde::Deserialize;

use super::Session;
use super::balance::bars::{bar, grouped, reasons};
use super::balance::views::read;
use crate::Result;
use crate::output::{Output, clean, duration_ms};

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel activity
  evenkeel activity --step 1h --from 2026-12-01T00:00:00Z --until 2026-12-04T00:00:00Z
  evenkeel activity --json | jq .totals

Times are UTC. ENDED counts successful attempts, FAILED also those that timed out, SKIPPED scheduled
times without a run. LATE is the lateness that 99 % of the starts did not exceed. The bars show the
fired runs.";

#[derive(Args, Clone)]
pub struct ActivityArgs {
    /// Start of the period, at most 90 days ago [default: 24 hours before the end]
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// End of the period [default: now]
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Length of a line; an answer has at most 2,000
    #[arg(long, value_name = "STEP", default_value = "15m")]
    #[arg(value_parser = ["15m", "1h", "1d"])]
    step: String,
}

#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
struct Figures {
    fired: u64,
    completed: u64,
    failed: u64,
    timed_out: u64,
    cancelled: u64,
    skipped: BTreeMap<String, u64>,
    busy_seconds: f64,
    lateness: Lateness,
}

#[derive(Copy, Clone, PartialEq, Debug, Default, Deserialize)]
struct Lateness {
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    max_ms: Option<f64>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
struct Step {
    start: Timestamp,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
struct Activity {
    from: Timestamp,
    until: Timestamp,
    step: String,
    slots: Vec<Step>,
    totals: Figures,
}

pub(super) async fn run(session: &Session, args: ActivityArgs) -> Result {
    let Session { client, output } = session;
    let mut query = vec![("step", args.step)];
    query.extend(args.from.map(|from| ("from", from)));
    query.extend(args.until.map(|until| ("until", until)));
    let answer = client.get_with(&["scheduler", "activity"], &query).await?;
    if output.is_json() {
        return output.line(&answer.text);
    }
    output.line(&draw(&read(&answer)?, output.width(), *output))
}

impl Figures {
    fn failures(&self) -> u64 {
        self.failed + self.timed_out
    }

    fn skips(&self) -> u64 {
        self.skipped.values().sum()
    }

    fn is_empty(&self) -> bool {
        let ended = self.completed + self.failures() + self.cancelled;
        self.fired + ended + self.skips() == 0 && self.lateness.max_ms.is_none()
    }

    fn cells(&self) -> [String; COLUMNS] {
        let count = |count: u64| grouped(count as f64);
        [
            count(self.fired),
            count(self.completed),
            count(self.failures()),
            count(self.skips()),
            duration_ms((self.busy_seconds.max(0.0) * 1000.0) as u64),
            late(self.lateness.p99_ms),
        ]
    }
}

const COLUMNS: usize = 6;
const HEADINGS: [&str; COLUMNS] = ["FIRED", "ENDED", "FAILED", "SKIPPED", "BUSY", "LATE"];
/// The column that is coloured if its number is not 0.
const FAILED: usize = 2;
/// Longest bar, for readability.
const BAR_MAX: usize = 40;

/// Draws one line per step, in lines of at most `width` characters if the numbers leave room for
/// it. Neighbouring steps without activity share a line.
fn draw(activity: &Activity, width: usize, output: Output) -> String {
    let mut text = heading(activity);
    if activity.totals.is_empty() {
        text.push_str("Nothing ran and nothing was skipped.\n");
        return text;
    }
    let rows: Vec<[String; COLUMNS]> =
        activity.slots.iter().map(|step| step.figures.cells()).collect();
    let mut widths = HEADINGS.map(str::len);
    for row in &rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(cell.chars().count());
        }
    }
    let time_width = if activity.step == "1d" { 10 } else { 16 };
    let used = time_width + widths.iter().map(|column| column + 2).sum::<usize>() + 2;
    let bar_width = width.saturating_sub(used).clamp(5, BAR_MAX);
    let most = activity.slots.iter().map(|step| step.figures.fired).max().unwrap_or(0) as f64;
    text.push_str(&line(&" ".repeat(time_width), &HEADINGS.map(String::from), &widths));
    text.push('\n');
    let mut empty = 0;
    for (step, row) in activity.slots.iter().zip(rows) {
        if step.figures.is_empty() {
            empty += 1;
            continue;
        }
        push_gap(&mut text, std::mem::take(&mut empty));
        let time = clock(step.start, time_width);
        let mut shown = line(&time, &row, &widths);
        if step.figures.failures() > 0 {
            let before: usize = widths[..FAILED].iter().map(|column| column + 2).sum();
            let at = time_width + before + 2;
            let failed = shown[at..at + widths[FAILED]].to_owned();
            shown.replace_range(at..at + widths[FAILED], &output.warned(&failed));
        }
        let drawn = bar(step.figures.fired as f64, most, bar_width, None);
        text.push_str(format!("{shown}  {drawn}").trim_end());
        text.push('\n');
    }
    push_gap(&mut text, empty);
    text
}

fn heading(activity: &Activity) -> String {
    let Figures { fired, completed, failed, timed_out, cancelled, lateness, .. } = &activity.totals;
    let count = |count: u64| grouped(count as f64);
    let busy = duration_ms((activity.totals.busy_seconds.max(0.0) * 1000.0) as u64);
    format!(
        "{} to {} (UTC), in steps of {}\nfired {}   completed {}   failed {}   timed out {}   \
         cancelled {}\nskipped {}   busy {busy}   lateness p50 {} p99 {} max {}\n\n",
        clock(activity.from, 16),
        clock(activity.until, 16),
        clean(&activity.step),
        count(*fired),
        count(*completed),
        count(*failed),
        count(*timed_out),
        count(*cancelled),
        skipped(&activity.totals.skipped),
        late(lateness.p50_ms),
        late(lateness.p99_ms),
        late(lateness.max_ms),
    )
}

/// `3 (2 overlap, 1 misfire)`
fn skipped(by_reason: &BTreeMap<String, u64>) -> String {
    let found: BTreeMap<String, u64> =
        by_reason.iter().filter(|(_, count)| **count > 0).map(|(k, v)| (k.clone(), *v)).collect();
    let total: u64 = found.values().sum();
    match total {
        0 => "0".into(),
        _ => format!("{} ({})", grouped(total as f64), reasons(&found)),
    }
}

/// All cells are aligned to the right.
fn line(time: &str, cells: &[String; COLUMNS], widths: &[usize; COLUMNS]) -> String {
    let mut text = time.to_owned();
    for (cell, width) in cells.iter().zip(widths) {
        text.push_str(&format!("  {cell:>width$}"));
    }
    text
}

fn push_gap(text: &mut String, steps: usize) {
    match steps {
        0 => {}
        1 => text.push_str("  (1 step without activity)\n"),
        _ => text.push_str(&format!("  ({steps} steps without activity)\n")),
    }
}

/// `2026-12-01 13:30`, or the first `chars` characters of it.
fn clock(time: Timestamp, chars: usize) -> String {
    time.to_string().replace('T', " ").chars().take(chars).collect()
}

fn late(millis: Option<f64>) -> String {
    millis.map_or_else(|| "-".into(), |millis| duration_ms(millis.max(0.0).ceil() as u64))
}

#[cfg(test)]
mod tests {
    use evenkeel_core::Span;

    use super::*;

    fn figures(fired: u64, failed: u64) -> Figures {
        let late = (fired > 0).then_some(10.0);
        Figures {
            fired,
            completed: fired.saturating_sub(failed),
            failed,
            busy_seconds: fired as f64 * 2.0,
            skipped: [("overlap".to_owned(), failed), ("misfire".to_owned(), 0)].into(),
            lateness: Lateness { p50_ms: late, p99_ms: late, max_ms: late },
            ..Figures::default()
        }
    }

    fn sample(step: &str, counts: &[(u64, u64)]) -> Activity {
        let from: Timestamp = "2026-12-01T13:15:00Z".parse().unwrap();
        let start = |n: usize| from.saturating_add(Span::from_secs(900 * n as u64));
        let slots = counts.iter().enumerate().map(|(n, (fired, failed))| Step {
            start: start(n),
            figures: figures(*fired, *failed),
        });
        let sum = |of: fn(&(u64, u64)) -> u64| counts.iter().map(of).sum();
        Activity {
            from,
            until: start(counts.len()),
            step: step.into(),
            slots: slots.collect(),
            totals: figures(sum(|counts| counts.0), sum(|counts| counts.1)),
        }
    }

    fn drawn(activity: &Activity, width: usize) -> Vec<String> {
        draw(activity, width, Output::new(false)).lines().map(String::from).collect()
    }

    #[test]
    fn every_step_with_activity_has_a_line_and_a_bar() {
        let lines = drawn(&sample("15m", &[(8, 0), (4, 1), (0, 0), (0, 0), (1_000, 0)]), 80);
        assert_eq!(
            lines,
            [
                "2026-12-01 13:15 to 2026-12-01 14:30 (UTC), in steps of 15m",
                "fired 1,012   completed 1,011   failed 1   timed out 0   cancelled 0",
                "skipped 1 (1 overlap)   busy 33m   lateness p50 10ms p99 10ms max 10ms",
                "",
                "                  FIRED  ENDED  FAILED  SKIPPED  BUSY  LATE",
                "2026-12-01 13:15      8      8       0        0   16s  10ms  ▏",
                "2026-12-01 13:30      4      3       1        1  8.0s  10ms  ▏",
                "  (2 steps without activity)",
                "2026-12-01 14:15  1,000  1,000       0        0   33m  10ms  ███████████████████",
            ]
        );
    }

    #[test]
    fn days_are_shown_without_a_time() {
        let lines = drawn(&sample("1d", &[(8, 0)]), 80);
        assert!(lines[5].starts_with("2026-12-01      8"), "{lines:?}");
    }

    #[test]
    fn empty_period_is_reported() {
        let lines = drawn(&sample("15m", &[(0, 0), (0, 0)]), 80);
        assert_eq!(lines[4..], ["Nothing ran and nothing was skipped."]);
    }

    #[test]
    fn lines_fit_the_terminal() {
        for width in [80, 120] {
            for line in drawn(&sample("1h", &[(12_345, 678), (1, 0)]), width) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}
