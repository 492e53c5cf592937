//! Bars of numbers of runs, if there are too many runs for marks.

use maud::{Markup, html};
use serde_json::Value;

use super::axis::{TOP, WIDTH, shown};
use super::{ROWS, View};
use crate::chart::number;
use crate::pages::items;
use crate::text;

/// Height of the bars in pixels.
const HEIGHT: f64 = 160.0;
/// Room for the symbol above a bar, in pixels.
const ABOVE: f64 = 14.0;

/// Returns a number of runs; a large one without digits after the point.
fn runs(count: f64) -> String {
    if count < 100.0 { number(count) } else { format!("{count:.0}") }
}

/// Numbers of runs of one step.
struct Step {
    start: i64,
    end: i64,
    completed: f64,
    bad: f64,
    cancelled: f64,
    /// True if the past of the step is known.
    is_past: bool,
    expected: Option<f64>,
}

impl Step {
    fn read(step: &Value, seconds: i64) -> Option<Self> {
        let start = text::micros(&step["start"])?;
        let past = &step["past"];
        let count = |name: &str| past[name].as_f64().unwrap_or(0.0);
        Some(Self {
            start,
            end: start + seconds * 1_000_000,
            completed: count("completed"),
            bad: count("failed") + count("timed_out"),
            cancelled: count("cancelled"),
            is_past: past.is_object(),
            expected: step["expected"].as_f64(),
        })
    }

    fn total(&self) -> f64 {
        self.completed + self.bad + self.cancelled + self.expected.unwrap_or(0.0)
    }

    fn name(&self) -> String {
        let time = shown(self.start, "%a %d %b, %H:%M:%S");
        let end = shown(self.end, "%H:%M:%S %Z");
        let mut parts = Vec::new();
        if self.is_past {
            parts.push(format!("{} completed", self.completed));
            parts.push(format!("{} failed or timed out", self.bad));
            parts.push(format!("{} cancelled", self.cancelled));
        }
        parts.extend(self.expected.map(|count| format!("{} expected", runs(count))));
        if parts.is_empty() {
            parts.push("not known".to_owned());
        }
        format!("{time} to {end}: {}", parts.join(", "))
    }
}

pub(super) fn render(view: &View<'_>) -> Markup {
    let seconds = view.answer["step_seconds"].as_i64().unwrap_or(900);
    let steps: Vec<Step> =
        items(view.answer, "density").iter().filter_map(|step| Step::read(step, seconds)).collect();
    let peak = steps.iter().map(Step::total).fold(0.0, f64::max);
    let length = text::duration(seconds.unsigned_abs() * 1_000);
    let sum = |of: fn(&Step) -> f64| runs(steps.iter().map(of).sum());
    html! {
        p { "This period has too many runs to show each of them. The bars show how many executions ended, and how many "
            "runs are expected, in steps of " (length) ": "
            (sum(|step| step.completed)) " completed, " (sum(|step| step.bad)) " failed or timed out, "
            (sum(|step| step.cancelled)) " cancelled, " (sum(|step| step.expected.unwrap_or(0.0))) " expected. "
            "The highest bar has " (runs(peak)) ". A bar leads to its step. "
            @if view.choice.job.is_empty() { "To see runs, zoom in or choose one job." } @else { "To see runs, zoom in." } }
        div.timeline.bars { (chart(view, &steps, peak)) }
        ul.legend aria-label="Legend" {
            li { svg.good width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" {
                path d="M2 2H14V14H2Z" fill="currentColor" {} } " completed" }
            li { svg.bad width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" {
                path d="M2 2H14V14H2Z" fill="none" stroke="currentColor" {} path d="M2 14L14 2M2 8L8 2M8 14L14 8" stroke="currentColor" {} }
                " failed or timed out, with ✕ above the bar" }
            li { svg.quiet width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" {
                path d="M2 2H14V14H2Z" fill="none" stroke="currentColor" stroke-width="2" {} } " cancelled" }
            li { svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" {
                path d="M2 2H14V14H2Z" fill="none" stroke="currentColor" stroke-dasharray="3 2" {} }
                " expected, an estimate" }
        }
        p { small { "Past numbers count executions in the step in which they ended, so a run that was retried counts more than "
            "once. Steps without a bar had no run, or their future is not known." } }
        (table(view, &steps))
    }
}

fn chart(view: &View<'_>, steps: &[Step], peak: f64) -> Markup {
    let bottom = TOP + ABOVE + HEIGHT;
    html! {
        div.axis tabindex="0" role="region" aria-label="Chart of numbers of runs, by time" {
            svg width=(WIDTH) height=(bottom + 1.0) viewBox={ "0 0 " (WIDTH) " " (bottom + 1.0) } role="group"
                aria-label="Numbers of runs by time; the table below has the same numbers" {
                defs { pattern id="bad-runs" width="6" height="6" patternUnits="userSpaceOnUse" {
                    path.bad d="M0 6L6 0" fill="none" stroke="currentColor" stroke-width="2" {} } }
                (view.axis.draw(bottom))
                path.tick d={ "M0 " (bottom) "H" (WIDTH) } {}
                @for step in steps { (bar(view, step, peak, bottom)) }
                (view.axis.draw_now(bottom))
            }
        }
    }
}

fn bar(view: &View<'_>, step: &Step, peak: f64, bottom: f64) -> Markup {
    let (left, right) = (view.axis.x(step.start), view.axis.x(step.end));
    let gap = if right - left > 4.0 { 1.0 } else { 0.0 };
    let mut level = bottom;
    let mut part = |count: f64| {
        let top = if peak > 0.0 { level - count / peak * HEIGHT } else { level };
        let path = format!("M{:.1} {level:.1}V{top:.1}H{:.1}V{level:.1}Z", left + gap, right - gap);
        level = top;
        (count > 0.0).then_some(path)
    };
    let completed = part(step.completed);
    let cancelled = part(step.cancelled);
    let bad = part(step.bad);
    let expected = part(step.expected.unwrap_or(0.0));
    if [&completed, &cancelled, &bad, &expected].iter().all(|part| part.is_none()) {
        return html! {};
    }
    html! {
        a.mark href=(view.choice.period(step.start, step.end, view.choice.by)) tabindex="-1" {
            title { (step.name()) }
            @if let Some(path) = completed { path.good d=(path) fill="currentColor" {} }
            @if let Some(path) = cancelled { path.quiet d=(path) fill="none" stroke="currentColor" {} }
            @if let Some(path) = bad {
                path.bad d=(path) fill="url(#bad-runs)" stroke="currentColor" {}
                text x=(format!("{:.1}", (left + right) / 2.0)) y=(format!("{:.1}", level - 3.0)) text-anchor="middle" { "✕" }
            }
            @if let Some(path) = expected {
                path d=(path) fill="none" stroke="currentColor" stroke-dasharray="3 2" {}
            }
        }
    }
}

fn table(view: &View<'_>, steps: &[Step]) -> Markup {
    let first = view.rows.min(steps.len().saturating_sub(1));
    let rows = &steps[first..(first + ROWS).min(steps.len())];
    let past = |step: &Step, count: f64| if step.is_past { runs(count) } else { "–".to_owned() };
    html! {
        details open[view.rows > 0] {
            summary { "The same numbers as a table" }
            table {
                thead { tr { th scope="col" { "From" } th scope="col" { "Completed" }
                    th scope="col" { "Failed or timed out" } th scope="col" { "Cancelled" }
                    th scope="col" { "Expected" } } }
                tbody {
                    @for step in rows {
                        tr {
                            th scope="row" { a href=(view.choice.period(step.start, step.end, view.choice.by)) {
                                (shown(step.start, "%Y-%m-%d %H:%M:%S %Z")) } }
                            td.numbers { (past(step, step.completed)) }
                            td.numbers { (past(step, step.bad)) @if step.bad > 0.0 { " ✕" } }
                            td.numbers { (past(step, step.cancelled)) }
                            td.numbers { (step.expected.map_or("–".to_owned(), runs)) }
                        }
                    }
                }
            }
            (view.parts("rows", ROWS, first, steps.len(), "steps"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn name_of_a_step_says_what_is_known() {
        let past = json!({"completed": 3, "failed": 1, "timed_out": 1, "cancelled": 0});
        for (past, expected, name) in [
            (past.clone(), json!(null), "3 completed, 2 failed or timed out, 0 cancelled"),
            (past, json!(1.5), "3 completed, 2 failed or timed out, 0 cancelled, 1.5 expected"),
            (json!(null), json!(4.0), "4 expected"),
            (json!(null), json!(null), "not known"),
        ] {
            let step = json!({"start": "2026-11-18T09:00:00Z", "past": past, "expected": expected});
            let step = Step::read(&step, 900).unwrap();
            assert_eq!(step.name(), format!("Wed 18 Nov, 09:00:00 to 09:15:00 UTC: {name}"));
        }
    }
}
