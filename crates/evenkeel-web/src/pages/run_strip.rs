//! Strips of runs: one symbol per run, the oldest left and the newest right.

use maud::{Markup, html};
use serde_json::Value;

use super::lists::count;
use crate::backend::escape;
use crate::text;

pub(super) fn link(run: &Value) -> String {
    format!("/runs/{}", escape(&text::plain(&run["id"])))
}

fn symbol(status: &Value) -> (&'static str, &'static str) {
    match status.as_str().unwrap_or_default() {
        "completed" => ("good", "✓"),
        "failed" => ("bad", "✕"),
        "timed_out" => ("bad", "◷"),
        "partly_failed" => ("warn", "!"),
        "running" => ("busy", "▶"),
        "skipped" | "cancelled" | "superseded" => ("quiet", "⊘"),
        _ => ("plain", "•"),
    }
}

/// Counts the runs of each status, the status of the newest run first.
pub(super) fn tally(runs: &[Value]) -> Vec<(&Value, usize)> {
    let mut counts: Vec<(&Value, usize)> = Vec::new();
    for run in runs {
        match counts.iter_mut().find(|(status, _)| **status == run["status"]) {
            Some((_, count)) => *count += 1,
            None => counts.push((&run["status"], 1)),
        }
    }
    counts
}

/// Shows `runs`, which come newest first, each as a link. `name` is the accessible name of the strip.
pub(super) fn strip(runs: &[Value], name: &str) -> Markup {
    html! {
        ul.strip aria-label=(name) {
            @for run in runs.iter().rev() {
                @let (class, symbol) = symbol(&run["status"]);
                @let name = format!("{} {}", text::plain(&run["status"]), text::time_text(&run["scheduled_at"]));
                li { a class=(class) href=(link(run)) title=(name) {
                    span aria-hidden="true" { (symbol) }
                    span.hidden-text { (name) }
                } }
            }
        }
    }
}

/// Shows the newest runs of a job in a list of jobs, if it has any.
pub(super) fn recent(runs: &[Value]) -> Markup {
    let counts = tally(runs).into_iter();
    let counts: Vec<String> =
        counts.map(|(status, count)| format!("{count} {}", text::plain(status))).collect();
    let name = format!("last {}: {}", count(runs.len() as u64, "run"), counts.join(", "));
    html! { @if !runs.is_empty() { (strip(runs, &name)) } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn recent_runs_have_one_name_and_the_newest_run_last() {
        let run = |id: &str, status: &str| json!({"id": id, "status": status, "scheduled_at": "2026-11-18T09:00:00Z"});
        let runs = [run("c", "completed"), run("b", "failed"), run("a", "completed")];
        let shown = recent(&runs).into_string();
        assert!(shown.contains("aria-label=\"last 3 runs: 2 completed, 1 failed\""), "{shown}");
        let links: Vec<&str> = shown.split("href=\"").skip(1).map(|rest| &rest[..7]).collect();
        assert_eq!(links, ["/runs/a", "/runs/b", "/runs/c"]);
        let one = recent(&runs[1..2]).into_string();
        assert!(one.contains("aria-label=\"last 1 run: 1 failed\""), "{one}");
        assert!(one.contains("class=\"bad\"") && one.contains('✕'), "{one}");
        assert_eq!(recent(&[]).into_string(), "");
    }
}
