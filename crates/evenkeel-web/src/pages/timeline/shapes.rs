//! The shapes of marks: a shape and a colour for each status.

use maud::{Markup, html};
use serde_json::Value;

/// A shape, its class of colour, and what it means. The path is drawn around the point 0,0.
pub(super) struct Shape {
    pub(super) id: &'static str,
    pub(super) class: &'static str,
    path: &'static str,
    is_filled: bool,
    is_dashed: bool,
    meaning: &'static str,
}

const CIRCLE: &str = "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0";

const fn shape(
    id: &'static str,
    class: &'static str,
    path: &'static str,
    meaning: &'static str,
) -> Shape {
    Shape { id, class, path, is_filled: true, is_dashed: false, meaning }
}

const fn outline(
    id: &'static str,
    class: &'static str,
    path: &'static str,
    meaning: &'static str,
) -> Shape {
    Shape { is_filled: false, ..shape(id, class, path, meaning) }
}

pub(super) const SHAPES: [Shape; 9] = [
    shape("completed", "good", CIRCLE, "completed"),
    outline("failed", "bad", "M-5-5L5 5M5-5L-5 5", "failed"),
    shape("timed_out", "bad", "M-5-6H5L-5 6H5Z", "timed out"),
    shape("partly_failed", "warn", "M0-6L6 5H-6Z", "partly failed"),
    shape("running", "busy", "M-4-6L6 0L-4 6Z", "running"),
    outline("pending", "plain", "M-4-4H4V4H-4Z", "waits to start"),
    outline(
        "stopped",
        "quiet",
        "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0M-4 4L4-4",
        "cancelled, superseded or skipped",
    ),
    outline("expected", "plain", CIRCLE, "expected"),
    Shape {
        is_dashed: true,
        ..outline("estimate", "plain", CIRCLE, "expected, the start is an estimate")
    },
];

/// The place of the shape for statuses that this version does not know.
const UNKNOWN: usize = 5;

/// Returns the shape of a mark.
pub(super) fn shape_of(mark: &Value) -> &'static Shape {
    let status = mark["status"].as_str().unwrap_or_default();
    let is_estimate = status == "expected" && mark["start_is_estimate"] == true;
    let fits = |shape: &&Shape| match shape.id {
        "stopped" => matches!(status, "cancelled" | "superseded" | "skipped"),
        _ if shape.is_dashed => is_estimate,
        id => id == status && !is_estimate,
    };
    SHAPES.iter().find(fits).unwrap_or(&SHAPES[UNKNOWN])
}

pub(super) fn draw(shape: &Shape) -> Markup {
    let fill = if shape.is_filled { "currentColor" } else { "none" };
    html! {
        path d=(shape.path) fill=(fill) stroke="currentColor" stroke-width="2"
            stroke-dasharray=[shape.is_dashed.then_some("2 2")] {}
    }
}

pub(super) fn legend() -> Markup {
    html! {
        ul.legend aria-label="Legend" {
            @for shape in &SHAPES {
                li { svg.(shape.class) width="16" height="16" viewBox="-8 -8 16 16" aria-hidden="true" { (draw(shape)) }
                    " " (shape.meaning) }
            }
        }
        p { small { "A bar shows how long a run took. A dashed bar is an estimate: the run ends after the average duration of "
            "its job. Expected starts come from the schedule of the job. They are estimates if the schedule depends on when "
            "the job ends (at least every …), or if the run is due and waits for a worker. Marks lead to their run, "
            "expected runs to their job. Past runs are those that the history still has." } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_status_has_a_shape() {
        for (status, id) in [
            ("pending", "pending"),
            ("running", "running"),
            ("completed", "completed"),
            ("failed", "failed"),
            ("cancelled", "stopped"),
            ("timed_out", "timed_out"),
            ("skipped", "stopped"),
            ("partly_failed", "partly_failed"),
            ("superseded", "stopped"),
            ("expected", "expected"),
            ("unheard-of", "pending"),
        ] {
            assert_eq!(shape_of(&json!({"status": status})).id, id, "{status}");
        }
        let periodic = json!({"status": "expected", "start_is_estimate": true});
        assert!(shape_of(&periodic).is_dashed);
    }
}
