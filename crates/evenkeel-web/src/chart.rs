//! Charts as SVG. Colours are set by the style sheet, sizes by attributes, because the content
//! security policy forbids styles in elements.

use jiff::Timestamp as Instant;
use maud::{Markup, html};
use serde_json::Value;

use crate::zone;

/// Width of a bar, and height of all bars, in units of the drawing.
const BAR: u64 = 28;
const HEIGHT: u64 = 140;
/// Width of a line chart, and of the texts of its vertical axis, in units of the drawing.
const WIDTH: f64 = 720.0;
const LEFT: u64 = 48;

/// One bar: its name, its value, and the text below it.
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) label: Option<String>,
}

/// Returns a number with at most one digit after the point.
pub(crate) fn number(value: f64) -> String {
    if value.fract().abs() < 0.05 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// Returns a time of the API to the minute, in the zone of the page.
pub(crate) fn short(time: &Value) -> String {
    let instant = time.as_str().and_then(|text| text.parse::<Instant>().ok());
    instant.map_or_else(String::new, |instant| {
        instant.to_zoned(zone::current()).strftime("%Y-%m-%d %H:%M %Z").to_string()
    })
}

/// A bar for each value. The highest bars are marked by a symbol. `unit` is the plural of the unit.
pub(crate) fn bars(bars: &[Bar], title: &str, unit: &str) -> Markup {
    let peak = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let width = LEFT + BAR * bars.len() as u64;
    let height = |bar: &Bar| if peak > 0.0 { bar.value / peak * HEIGHT as f64 } else { 0.0 };
    html! {
        svg viewBox={ "0 0 " (width) " " (HEIGHT + 38) } role="img" aria-label=(title) {
            (scale(width, 14, HEIGHT, [&number(peak), "0"]))
            @for (nth, bar) in bars.iter().enumerate() {
                @let x = LEFT + nth as u64 * BAR;
                @let top = (HEIGHT + 14) as f64 - height(bar);
                rect x=(x + 3) y=(format!("{top:.1}")) width=(BAR - 6) height=(format!("{:.1}", height(bar))) rx="2" {
                    title { (bar.name) ": " (number(bar.value)) " " (unit) }
                }
                @if bar.value >= peak && peak > 0.0 {
                    text x=(x + BAR / 2) y=(format!("{:.1}", top - 4.0)) text-anchor="middle" { "▲" }
                }
                @if let Some(label) = &bar.label {
                    text x=(x + BAR / 2) y=(HEIGHT + 32) text-anchor="middle" { (label) }
                }
            }
        }
    }
}

/// The lines of the vertical axis: its upper and lower end with their texts, and the middle.
pub(crate) fn scale(width: u64, top: u64, height: u64, texts: [&str; 2]) -> Markup {
    html! {
        @for y in [top, top + height / 2, top + height] {
            path.grid d={ "M" (LEFT) " " (y) "H" (width) } fill="none" stroke="currentColor" {}
        }
        text x=(LEFT - 6) y=(top + 4) text-anchor="end" { (texts[0]) }
        text x=(LEFT - 6) y=(top + height + 4) text-anchor="end" { (texts[1]) }
    }
}

/// A place between 0 and 1 on the horizontal axis, and its value between 0 and 1, if it is known.
pub(crate) type Point = (f64, Option<f64>);

/// A line through points, with texts at the ends of both axes. A missing value interrupts the line.
pub(crate) fn line(points: &[Point], title: &str, x: [&str; 2], y: [&str; 2]) -> Markup {
    lines(&[points.to_vec()], title, x, y)
}

/// Several lines in one chart. All lines but the first are dashed.
pub(crate) fn lines(lines: &[Vec<Point>], title: &str, x: [&str; 2], y: [&str; 2]) -> Markup {
    html! {
        svg.line viewBox={ "0 0 " (WIDTH) " " (HEIGHT + 38) } role="img" aria-label=(title) {
            (scale(WIDTH as u64, 10, HEIGHT, [y[1], y[0]]))
            @for (nth, points) in lines.iter().enumerate() {
                @for part in parts(points) {
                    // A single point is drawn as a line of no length, which its round ends show.
                    polyline points=(if part.len() == 1 { format!("{0} {0}", part[0]) } else { part.join(" ") })
                        fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round"
                        stroke-dasharray=[(nth > 0).then_some("6 4")] {}
                }
            }
            text x=(LEFT) y=(HEIGHT + 32) { (x[0]) }
            text x=(WIDTH) y=(HEIGHT + 32) text-anchor="end" { (x[1]) }
        }
    }
}

/// Returns the places in the drawing of each part of a line that nothing interrupts.
fn parts(points: &[Point]) -> Vec<Vec<String>> {
    let place = |(at, value): (f64, f64)| {
        let x = LEFT as f64 + at * (WIDTH - LEFT as f64);
        format!("{x:.1},{:.1}", 10.0 + (1.0 - value) * HEIGHT as f64)
    };
    let parts = points.split(|(_, value)| value.is_none()).map(|part| {
        let known = part.iter().filter_map(|(at, value)| Some((*at, (*value)?)));
        known.map(place).collect::<Vec<_>>()
    });
    parts.filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_bar_is_marked_once() {
        let bar = |value| Bar { name: "x".to_owned(), value, label: None };
        let drawn = bars(&[bar(1.0), bar(2.0), bar(0.0)], "title", "runs").into_string();
        assert_eq!(drawn.matches('▲').count(), 1, "{drawn}");
        let empty = bars(&[bar(0.0)], "title", "runs").into_string();
        assert!(!empty.contains('▲') && !empty.contains("NaN"), "{empty}");
    }

    #[test]
    fn missing_value_interrupts_a_line() {
        let points = [(0.0, Some(0.5)), (0.5, None), (1.0, Some(1.0))];
        let drawn = line(&points, "title", ["a", "b"], ["0", "1"]).into_string();
        assert_eq!(drawn.matches("<polyline").count(), 2, "{drawn}");
    }

    #[test]
    fn lines_differ_by_their_dashes() {
        let points = vec![(0.0, Some(0.5)), (1.0, Some(1.0))];
        let drawn = lines(&[points.clone(), points], "title", ["a", "b"], ["0", "1"]).into_string();
        assert_eq!(drawn.matches("<polyline").count(), 2, "{drawn}");
        assert_eq!(drawn.matches("stroke-dasharray").count(), 1, "{drawn}");
    }
}
