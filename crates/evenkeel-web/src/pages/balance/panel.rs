//! The panel "Schedule Distribution".

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::{self, Bar, number};
use crate::layout::button;
use crate::pages::overview::hour;
use crate::session::Session;
use crate::text;

pub(crate) fn panel(session: &Session, distribution: &Value) -> Markup {
    let may_move = session.role >= evenkeel_store::Role::Operator;
    html! {
        section.panel {
            h2 { "Schedule Distribution" }
            p { "Score " strong { (text::score(&distribution["distribution_score"])) } " of 1. "
                (text::plain(&distribution["suggestion"])) }
            (hours(&distribution["hourly_distribution"], "Jobs per hour, next 24h"))
            @if may_move { (button(session, "/ui/rebalance", &[], "Rebalance Schedule")) }
            @else { p { "Moving jobs needs the role operator." } }
        }
    }
}

/// A bar per hour of the day. The peak hours are marked by a symbol and named in the text.
pub(super) fn hours(hours: &Value, title: &str) -> Markup {
    let hours = hours.as_array().map_or(&[][..], Vec::as_slice);
    let bars: Vec<Bar> = hours
        .iter()
        .enumerate()
        .map(|(nth, it)| Bar {
            name: hour(&it["hour"]),
            value: it["job_count"].as_f64().unwrap_or(0.0),
            label: (nth % 3 == 0).then(|| text::plain(&it["hour"])),
        })
        .collect();
    let peak = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let peaks: Vec<_> =
        bars.iter().filter(|bar| bar.value >= peak).map(|bar| bar.name.as_str()).collect();
    html! {
        figure {
            figcaption { (title) ". "
                @if peak > 0.0 { "▲ Peak: " (number(peak)) " runs in the hour from " (peaks.join(", ")) " UTC." }
                @else { "No run is expected." } }
            (chart::bars(&bars, title, "runs"))
        }
    }
}
