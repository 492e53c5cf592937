//! One mark for each run, in lanes, and the same runs as a table.

use evenkeel_core::Timestamp;
use maud::{Markup, html};
use serde_json::Value;

use super::axis::{TOP, WIDTH, shown};
use super::shapes::{SHAPES, draw, legend, shape_of};
use super::{ROWS, View};
use crate::backend::escape;
use crate::pages::lists::count;
use crate::pages::{items, job_link};
use crate::text;

/// Lanes on one page.
const LANES: usize = 40;
/// Height of a lane in pixels, as in the style sheet.
const LANE: f64 = 28.0;
/// Shorter bars are hidden by their mark.
const BAR_MIN: f64 = 8.0;

fn is_expected(mark: &Value) -> bool {
    mark["status"] == "expected"
}

/// Says how many runs of which kind there are.
pub(super) fn summary(answer: &Value) -> Markup {
    let marks = items(answer, "marks");
    let of = |statuses: &[&str]| {
        let is_one = |mark: &&Value| statuses.iter().any(|status| mark["status"] == *status);
        marks.iter().filter(is_one).count() as u64
    };
    let (expected, active) = (of(&["expected"]), of(&["running", "pending"]));
    let failed = of(&["failed", "timed_out", "partly_failed"]);
    let past = marks.len() as u64 - expected - active;
    html! {
        (count(past, "past run")) @if failed > 0 { ", of which " strong { (failed) " failed" } }
        "; " (count(active, "active run")) "; " (count(expected, "expected run")) ". "
        @if !marks.is_empty() { (not_kept(answer)) }
    }
}

/// Says how many past runs are missing.
pub(super) fn not_kept(answer: &Value) -> Markup {
    let missing = answer["runs_not_kept"].as_u64().unwrap_or(0);
    html! {
        @if missing > 0 {
            "About " (count(missing, "further past run")) " can't be shown, because the history keeps only the "
            "newest runs of each job. "
        }
    }
}

pub(super) fn render(view: &View<'_>) -> Markup {
    let lanes = items(view.answer, "lanes");
    let first = view.lanes.min(lanes.len().saturating_sub(1));
    let drawn = &lanes[first..(first + LANES).min(lanes.len())];
    let place = |mark: &Value| {
        let lane = usize::try_from(mark["lane"].as_u64()?).ok()?.checked_sub(first)?;
        (lane < drawn.len()).then_some(lane)
    };
    let marks: Vec<(usize, &Value)> =
        items(view.answer, "marks").iter().filter_map(|mark| Some((place(mark)?, mark))).collect();
    html! {
        div.timeline {
            ul.lanes aria-label="Lanes" {
                @for lane in drawn { li { (lane_name(lane, view.choice.by)) } }
            }
            (chart(view, drawn.len(), &marks))
        }
        (view.parts("lanes", LANES, first, lanes.len(), "lanes"))
        (legend())
        (table(view, &marks))
    }
}

fn lane_name(lane: &Value, by: &str) -> Markup {
    match (lane["name"].as_str(), by) {
        (_, "job") => html! { (job_link(&lane["job_id"], &lane["name"])) },
        (Some(name), "node") => html! { a href="/nodes" { (name) } },
        (Some(name), _) => html! { (name) },
        (None, "node") => html! { "no node yet" },
        (None, _) => html! { "deleted jobs" },
    }
}

fn chart(view: &View<'_>, lanes: usize, marks: &[(usize, &Value)]) -> Markup {
    let bottom = TOP + LANE * lanes as f64;
    html! {
        div.axis tabindex="0" role="region" aria-label="Chart of runs, by time" {
            svg width=(WIDTH) height=(bottom) viewBox={ "0 0 " (WIDTH) " " (bottom) } role="group"
                aria-label="Runs by time; the table below has the same runs" {
                defs { @for shape in &SHAPES { g id={ "mark-" (shape.id) } { (draw(shape)) } } }
                (view.axis.draw(bottom))
                @for lane in 0..=lanes { path.tick d={ "M0 " (TOP + LANE * lane as f64) "H" (WIDTH) } {} }
                @for (lane, mark) in marks {
                    (mark_at(view, mark, TOP + LANE * (*lane as f64 + 0.5)))
                }
                (view.axis.draw_now(bottom))
            }
        }
    }
}

/// Where the mark leads: to its run, or to its job.
fn target(mark: &Value) -> String {
    match mark["run_id"].as_str() {
        Some(run) => format!("/runs/{}", escape(run)),
        None => format!("/jobs/{}", escape(mark["job_id"].as_str().unwrap_or_default())),
    }
}

fn mark_at(view: &View<'_>, mark: &Value, y: f64) -> Markup {
    let shape = shape_of(mark);
    let start = text::micros(&mark["start"]).or_else(|| text::micros(&mark["scheduled_at"]));
    let Some(start) = start else { return html! {} };
    // A run that still runs takes at least until now.
    let end = text::micros(&mark["end"])
        .or_else(|| (mark["status"] == "running").then_some(view.axis.now));
    let x = view.axis.x(start);
    let bar_end = end.map(|end| view.axis.x(end)).filter(|end| end - x >= BAR_MIN);
    let is_dashed = is_expected(mark) || mark["is_estimate"] == true;
    html! {
        // The table has the same links, so that the Tab key need not visit every mark.
        a.mark.(shape.class) href=(target(mark)) tabindex="-1" {
            title { (name_of(mark, start, end)) }
            @if let Some(end) = bar_end {
                path.bar d={ "M" (format!("{x:.1} {}H{end:.1}V{}H{x:.1}Z", y - 4.0, y + 4.0)) } stroke="currentColor"
                    fill=(if is_dashed { "none" } else { "currentColor" })
                    stroke-dasharray=[is_dashed.then_some("3 3")] {}
            }
            use href={ "#mark-" (shape.id) } x=(format!("{x:.1}")) y=(y) {}
        }
    }
}

/// Says what a mark shows.
fn name_of(mark: &Value, start: i64, end: Option<i64>) -> String {
    let job = text::job_name(&mark["job_name"], &mark["job_id"]);
    let status = mark["status"].as_str().unwrap_or("?").replace('_', " ");
    let is_about = if mark["start_is_estimate"] == true { "about " } else { "" };
    let mut name = format!("{job}: {status}, {is_about}{}", shown(start, "%Y-%m-%d %H:%M:%S %Z"));
    if let Some(end) = end {
        let length = text::duration((end - start).unsigned_abs() / 1_000);
        name.push_str(&if is_expected(mark) || mark["is_estimate"] == true {
            format!(", takes about {length}")
        } else if mark["status"] == "running" {
            format!(", has run for {length}")
        } else {
            format!(", took {length}")
        });
    }
    name
}

fn table(view: &View<'_>, marks: &[(usize, &Value)]) -> Markup {
    let now = Timestamp::from_micros(view.axis.now);
    let first = view.rows.min(marks.len().saturating_sub(1));
    let rows = &marks[first..(first + ROWS).min(marks.len())];
    html! {
        details open[view.rows > 0] {
            summary { "The same runs as a table" }
            table {
                thead { tr { th scope="col" { "Scheduled" } th scope="col" { "Status" } th scope="col" { "Job" }
                    th scope="col" { "Start" } th scope="col" { "End" } th scope="col" { "Pool" }
                    th scope="col" { "Node" } } }
                tbody {
                    @for (_, mark) in rows {
                        tr {
                            th scope="row" { a href=(target(mark)) { (text::time(&mark["scheduled_at"], now)) } }
                            td { (text::state(&mark["status"])) }
                            td { (job_link(&mark["job_id"], &mark["job_name"])) }
                            td { @if mark["start_is_estimate"] == true { "about " } (text::time(&mark["start"], now))
                                @if let Some(reason) = mark["moved_by"].as_str() {
                                    " " small { "moved by " (reason.replace('_', " ")) } } }
                            td { @if mark["is_estimate"] == true && mark["end"].is_string() { "about " }
                                (text::time(&mark["end"], now)) }
                            td { (text::plain(&mark["pool"])) }
                            td { (text::plain(&mark["node"])) }
                        }
                    }
                }
            }
            (view.parts("rows", ROWS, first, marks.len(), "runs"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn name_of_a_mark_says_what_is_an_estimate() {
        let mut mark = json!({"status": "expected", "job_name": "a", "job_id": "1",
            "start_is_estimate": false, "is_estimate": true});
        assert_eq!(
            name_of(&mark, 0, Some(5_000_000)),
            "a: expected, 1970-01-01 00:00:00 UTC, takes about 5 s"
        );
        mark["start_is_estimate"] = json!(true);
        assert!(name_of(&mark, 0, None).ends_with("about 1970-01-01 00:00:00 UTC"));
        let past = json!({"status": "timed_out", "job_name": null, "job_id": "1"});
        let name = name_of(&past, 0, Some(2_000_000));
        assert_eq!(name, "1: timed out, 1970-01-01 00:00:00 UTC, took 2 s");
    }
}
