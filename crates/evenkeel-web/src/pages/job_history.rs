//! The past runs of a job: as a strip, as a chart of durations and as a table.

use evenkeel_core::Timestamp;
use maud::{Markup, html};
use serde_json::Value;

use super::lists::count;
use super::run_strip::{link, strip, tally};
use super::{items, next_page};
use crate::backend::Answer;
use crate::{chart, text};

/// Width of a bar and height of the chart, in units of the drawing.
const BAR: u64 = 14;
const HEIGHT: u64 = 90;
/// The chart is at least as wide as this number of bars, and has this width left of them.
const BARS_MIN: u64 = 50;
const LEFT: u64 = 48;

pub(super) fn millis(value: &Value) -> String {
    value.as_u64().map_or("–".to_owned(), text::duration)
}

/// Shows the runs of `answer`, newest first in the table and last in the strip and the chart.
pub(super) fn render(answer: &Answer, job_id: &str, now: Timestamp) -> Markup {
    html! {
        section {
            h2 { "Past runs" }
            @match answer {
                Ok(answer) if items(answer, "runs").is_empty() => p {
                    "It has not run yet. Its first run appears here." },
                Ok(answer) => {
                    @let runs = items(answer, "runs");
                    (outcomes(runs))
                    (durations(runs))
                    (table(runs, now))
                    (next_page(answer, &format!("/jobs/{job_id}"), &[]))
                }
                Err(refused) => p role="alert" { (refused.detail) },
            }
        }
    }
}

/// Says how the runs ended, and shows one symbol per run.
fn outcomes(runs: &[Value]) -> Markup {
    html! {
        p { "The last " (count(runs.len() as u64, "run")) ", the newest last: "
            @for (nth, (status, count)) in tally(runs).into_iter().enumerate() {
                @if nth > 0 { ", " }
                (count) " " (text::state(status))
            }
            "." }
        (strip(runs, "Past runs, the newest last"))
    }
}

/// A bar per run that has ended, and the same in words.
fn durations(runs: &[Value]) -> Markup {
    let ended: Vec<(&Value, u64)> =
        runs.iter().rev().filter_map(|run| Some((run, run["duration_ms"].as_u64()?))).collect();
    let mut sorted: Vec<u64> = ended.iter().map(|(_, duration)| *duration).collect();
    sorted.sort_unstable();
    let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else { return html! {} };
    let median = sorted[sorted.len() / 2];
    let height = |duration: u64| (duration.saturating_mul(HEIGHT) / (*most).max(1)).max(1);
    let width = LEFT + BAR * (ended.len() as u64).max(BARS_MIN);
    html! {
        figure {
            figcaption { "Durations of the last " (count(ended.len() as u64, "ended run")) ": median "
                (text::duration(median)) ", shortest " (text::duration(*least)) ", longest "
                (text::duration(*most)) ". The newest run is at the right; failed runs are marked ✕." }
            svg viewBox={ "0 0 " (width) " " (HEIGHT + 20) } role="img" aria-label="Durations of runs" {
                (chart::scale(width, 14, HEIGHT, [&text::duration(*most), "0"]))
                @for (nth, (run, duration)) in ended.iter().enumerate() {
                    @let is_bad = matches!(run["status"].as_str(), Some("failed" | "timed_out"));
                    @let (x, tall) = (LEFT + nth as u64 * BAR, height(*duration));
                    rect class=[is_bad.then_some("bar-bad")] x=(x + 1) y=(HEIGHT + 14 - tall)
                        width=(BAR - 2) height=(tall) {
                        title { (text::time_text(&run["scheduled_at"])) ": " (text::duration(*duration)) ", "
                            (text::plain(&run["status"])) }
                    }
                    @if is_bad {
                        text x=(x + BAR / 2) y=(HEIGHT + 11 - tall) text-anchor="middle" { "✕" }
                    }
                }
            }
        }
    }
}

fn table(runs: &[Value], now: Timestamp) -> Markup {
    html! {
        table aria-label="Past runs" {
            thead { tr {
                th scope="col" { "Scheduled" } th scope="col" { "Status" }
                th scope="col" { "Attempts" } th scope="col" { "Late" }
                th scope="col" { "Duration" } th scope="col" { "Error" }
            } }
            tbody {
                @for run in runs {
                    tr {
                        th scope="row" { a href=(link(run)) { (text::time(&run["scheduled_at"], now)) } }
                        td { (text::state(&run["status"])) }
                        td { (text::plain(&run["attempt_count"])) }
                        td.numbers { (millis(&run["lateness_ms"])) }
                        td.numbers { (millis(&run["duration_ms"])) }
                        td {
                            @if let Some(reason) = run["skipped"]["reason"].as_str() {
                                (run["skipped"]["count"]) " skipped: " (reason)
                            } @else { (text::plain(&run["error_message"])) }
                        }
                    }
                }
            }
        }
    }
}

/// Compares how often the job should run with how often it has run.
pub(super) fn cadence(job: &Value, runs: &Answer, stats: &Answer, now: Timestamp) -> Markup {
    let runs = runs.as_ref().map_or(&[][..], |answer| items(answer, "runs"));
    let (count, achieved) = gaps(runs);
    html! {
        section.panel {
            h2 { "Cadence" }
            dl {
                dt { "Asked" } dd { (text::schedule(job)) }
                dt { "Achieved" } dd {
                    @match achieved {
                        Some((median, longest)) => { "a successful run started every "
                            (text::duration(median)) " (median of " (count) " gaps), the longest gap was "
                            (text::duration(longest)) }
                        None => { "unknown: fewer than two scheduled runs have succeeded" }
                    }
                }
                @if let Ok(stats) = stats {
                    dt { "Attempts" } dd { (stats["total_executions"]) " since the job was created, "
                        (stats["successful_runs"]) " succeeded, " (stats["failed_runs"]) " failed"
                        @if let Some(rate) = stats["success_rate"].as_f64() {
                            " (" (format!("{:.1}", rate * 100.0)) " % success)" } }
                    dt { "Last success" } dd { (text::time(&stats["last_success_at"], now)) }
                    dt { "Average duration" } dd { (millis(&stats["average_duration_ms"])) }
                }
            }
        }
    }
}

/// Returns the number of gaps between successful scheduled runs, their median and the longest one.
fn gaps(runs: &[Value]) -> (usize, Option<(u64, u64)>) {
    let is_good = |run: &&Value| run["origin"] == "schedule" && run["status"] == "completed";
    let starts = runs.iter().filter(is_good).filter_map(|run| text::micros(&run["started_at"]));
    let starts: Vec<i64> = starts.collect();
    let gaps = starts.windows(2).map(|pair| pair[0].abs_diff(pair[1]) / 1000);
    let mut gaps: Vec<u64> = gaps.collect();
    gaps.sort_unstable();
    let longest = gaps.last().map(|longest| (gaps[gaps.len() / 2], *longest));
    (gaps.len(), longest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cadence_counts_only_successful_scheduled_runs() {
        let run = |minute: u32, status: &str, origin: &str| {
            let at = format!("2026-11-18T09:{minute:02}:00Z");
            json!({"started_at": at, "status": status, "origin": origin})
        };
        let runs = [
            run(50, "completed", "trigger"),
            run(40, "completed", "schedule"),
            run(20, "failed", "schedule"),
            run(10, "completed", "schedule"),
            run(0, "completed", "schedule"),
        ];
        assert_eq!(gaps(&runs), (2, Some((1_800_000, 1_800_000))));
        assert_eq!(gaps(&runs[..2]), (0, None));
    }
}
