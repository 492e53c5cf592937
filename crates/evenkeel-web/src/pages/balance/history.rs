//! The score of the past days.

use maud::{Markup, html};
use serde_json::Value;

use crate::backend::Answer;
use crate::pages::items;
use crate::{chart, text};

const HOUR: i64 = 3_600_000_000;

pub(super) fn section(scores: &Answer) -> Markup {
    html! {
        section.panel {
            h2 { "Score history" }
            @match scores {
                Ok(answer) if items(answer, "scores").is_empty() =>
                    p { "There is no score yet. The server measures one every hour." },
                Ok(answer) => (drawn(items(answer, "scores"))),
                Err(refused) => p role="alert" { "Unknown: " (refused.detail) },
            }
        }
    }
}

fn drawn(scores: &[Value]) -> Markup {
    let known: Vec<(i64, f64, &Value)> = scores
        .iter()
        .filter_map(|it| {
            Some((text::micros(&it["hour"])?, it["distribution_score"].as_f64()?, &it["hour"]))
        })
        .collect();
    let (Some(first), Some(last)) = (known.first(), known.last()) else { return html! {} };
    let low = known.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(first);
    let length = (last.0 - first.0).max(1) as f64;
    let mut points = Vec::new();
    let mut before = first.0;
    for (at, score, _) in &known {
        // No server measured the hours in between, so nothing is known about them.
        if at - before > HOUR {
            points.push((0.0, None));
        }
        points.push(((at - first.0) as f64 / length, Some(*score)));
        before = *at;
    }
    let [from, to] = [first, last].map(|it| chart::short(it.2));
    html! {
        p { "The score was " (format!("{:.2}", first.1)) " at " (from) " and is "
            strong { (format!("{:.2}", last.1)) } " at " (to) ". The lowest score was "
            (format!("{:.2}", low.1)) " at " (chart::short(low.2)) "." }
        (chart::line(&points, "Score of each hour", [&from, &to], ["0", "1"]))
        details {
            summary { "Scores as a table" }
            table aria-label="Scores" {
                thead { tr { th scope="col" { "Hour" } th scope="col" { "Score" } th scope="col" { "By cost" }
                    th scope="col" { "Fullest slot" } th scope="col" { "Jobs" } } }
                tbody {
                    @for it in scores.iter().rev() {
                        tr { th scope="row" { (chart::short(&it["hour"])) }
                            td { (text::score(&it["distribution_score"])) } td { (text::score(&it["cost_score"])) }
                            td { (text::plain(&it["peak"])) } td { (text::plain(&it["total_jobs"])) } }
                    }
                }
            }
        }
    }
}
