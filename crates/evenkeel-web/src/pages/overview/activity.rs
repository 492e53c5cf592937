//! What ran in the last day: how much was fired, and how late it started.

use evenkeel_core::Timestamp;
use maud::{Markup, html};
use serde_json::Value;

use crate::backend::Answer;
use crate::chart::{self, Point};
use crate::pages::items;
use crate::pages::lists::count;
use crate::text;

const SLOT: i64 = 900_000_000;
/// Slots per row of the tables: an hour.
const SLOTS_PER_ROW: usize = 4;
/// The shortest lateness that the chart distinguishes, in milliseconds.
const LEAST_MS: f64 = 1.0;
const BEGINS_SOON: &str =
    "The chart shows whole quarter hours. It begins when the present one has ended.";

pub(super) fn sections(activity: &Answer, now: Timestamp) -> Markup {
    html! {
        @match activity {
            Err(refused) => section.panel {
                h2 { "The last 24 hours" }
                (super::unknown(refused))
            },
            Ok(activity) => {
                // The present slot is not over, so that its figures would look like a drop.
                @let is_over = |slot: &&Value| text::micros(&slot["start"]).is_some_and(|start| start + SLOT <= now.as_micros());
                @let slots: Vec<&Value> = items(activity, "slots").iter().filter(is_over).collect();
                div.side-by-side {
                    section.panel {
                        h2 { "Firing rate, last 24 hours" }
                        (fired(&slots, &activity["totals"], now))
                    }
                    section.panel {
                        h2 { "Lateness, last 24 hours" }
                        (late(&slots, &activity["totals"]["lateness"]))
                    }
                }
            }
        }
    }
}

fn fired_in(slot: &Value) -> f64 {
    slot["fired"].as_f64().unwrap_or_default()
}

fn ends_of_axis(slots: &[&Value]) -> [String; 2] {
    let at =
        |slot: Option<&&Value>| slot.map_or_else(String::new, |slot| chart::short(&slot["start"]));
    [at(slots.first()), at(slots.last())]
}

fn points(slots: &[&Value], value: impl Fn(&Value) -> Option<f64>) -> Vec<Point> {
    let length = slots.len().saturating_sub(1).max(1) as f64;
    let place = |(nth, slot): (usize, &&Value)| (nth as f64 / length, value(slot));
    slots.iter().enumerate().map(place).collect()
}

fn fired(slots: &[&Value], totals: &Value, now: Timestamp) -> Markup {
    if totals["fired"] == 0 {
        return html! { p { "Nothing was fired in the last 24 hours." } };
    }
    html! {
        p { (count(totals["fired"].as_u64().unwrap_or_default(), "run")) " fired. Of the attempts that ended, "
            (totals["completed"]) " succeeded, " (totals["failed"]) " failed and " (totals["timed_out"])
            " timed out. Skipped scheduled times: " (skipped(totals)) "." }
        @match slots.iter().copied().max_by(|a, b| fired_in(a).total_cmp(&fired_in(b))) {
            Some(peak) if fired_in(peak) > 0.0 => (fired_chart(slots, peak, now)),
            _ => p { small { (BEGINS_SOON) } },
        }
    }
}

fn fired_chart(slots: &[&Value], peak: &Value, now: Timestamp) -> Markup {
    let most = fired_in(peak);
    let [from, to] = ends_of_axis(slots);
    html! {
        figure {
            figcaption { "Runs per quarter hour. The most, " (chart::number(most)) ", were fired from "
                (text::time(&peak["start"], now)) " on." }
            (chart::line(&points(slots, |slot| Some(fired_in(slot) / most)), "Runs fired per quarter hour",
                [&from, &to], ["0", &chart::number(most)]))
        }
        details {
            summary { "Firing rate as a table" }
            table aria-label="Firing rate by hour" {
                thead { tr { th scope="col" { "From" } th scope="col" { "Fired" } th scope="col" { "Succeeded" }
                    th scope="col" { "Failed" } th scope="col" { "Timed out" } th scope="col" { "Skipped" } } }
                tbody {
                    @for hour in slots.rchunks(SLOTS_PER_ROW).map(<[&Value]>::to_vec) {
                        @let sum = |name: &str| hour.iter().filter_map(|slot| slot[name].as_u64()).sum::<u64>();
                        tr { th scope="row" { (chart::short(&hour[0]["start"])) }
                            td { (sum("fired")) } td { (sum("completed")) } td { (sum("failed")) }
                            td { (sum("timed_out")) }
                            td { (hour.iter().map(|slot| skipped(slot)).sum::<u64>()) } }
                    }
                }
            }
        }
    }
}

fn skipped(figures: &Value) -> u64 {
    let by_reason = figures["skipped"].as_object();
    by_reason.into_iter().flatten().filter_map(|(_, number)| number.as_u64()).sum()
}

fn millis(value: &Value) -> String {
    value.as_f64().map_or_else(|| "–".to_owned(), |millis| text::duration(millis.round() as u64))
}

fn late(slots: &[&Value], totals: &Value) -> Markup {
    if totals["count"] == 0 {
        return html! { p { "No run has started in the last 24 hours." } };
    }
    html! {
        p { "Of " (count(totals["count"].as_u64().unwrap_or_default(), "start")) ", half were at most "
            strong { (millis(&totals["p50_ms"])) } " late and 99 % at most " strong { (millis(&totals["p99_ms"])) }
            ". The latest was " (millis(&totals["max_ms"])) " late." }
        @match slots.iter().filter_map(|slot| late_in(slot, "p99_ms")).reduce(f64::max) {
            Some(most) => (late_chart(slots, most)),
            None => p { small { (BEGINS_SOON) } },
        }
    }
}

fn late_in(slot: &Value, name: &str) -> Option<f64> {
    slot["lateness"][name].as_f64()
}

fn late_chart(slots: &[&Value], most: f64) -> Markup {
    let top = most.max(10.0 * LEAST_MS);
    let height = |name: &'static str| {
        points(slots, move |slot| Some(logarithmic(late_in(slot, name)?, top)))
    };
    let [from, to] = ends_of_axis(slots);
    html! {
        figure {
            figcaption { "Lateness of half of the starts (solid line) and of 99 % (dashed line) per quarter hour, "
                "on a logarithmic scale." }
            (chart::lines(&[height("p50_ms"), height("p99_ms")], "Lateness per quarter hour", [&from, &to],
                [&text::duration(LEAST_MS as u64), &text::duration(top as u64)]))
        }
        details {
            summary { "Lateness as a table" }
            table aria-label="Lateness by quarter hour" {
                thead { tr { th scope="col" { "From" } th scope="col" { "Starts" } th scope="col" { "Half" }
                    th scope="col" { "99 %" } th scope="col" { "Latest" } } }
                tbody {
                    @for slot in slots.iter().rev().filter(|slot| slot["lateness"]["count"] != 0) {
                        @let late = &slot["lateness"];
                        tr { th scope="row" { (chart::short(&slot["start"])) } td { (late["count"]) }
                            td { (millis(&late["p50_ms"])) } td { (millis(&late["p99_ms"])) }
                            td { (millis(&late["max_ms"])) } }
                    }
                }
            }
        }
    }
}

/// Returns the height of a value between 0 and 1 on a logarithmic scale that ends at `top`.
fn logarithmic(millis: f64, top: f64) -> f64 {
    ((millis.max(LEAST_MS) / LEAST_MS).ln() / (top / LEAST_MS).ln()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slot(minute: u32, fired: u64, p99: Option<f64>) -> Value {
        json!({
            "start": format!("2026-11-18T09:{minute:02}:00Z"), "fired": fired, "completed": fired,
            "skipped": {"misfire": 1, "overlap": 2},
            "lateness": {"count": fired, "p50_ms": p99.map(|it| it / 2.0), "p99_ms": p99},
        })
    }

    fn drawn(slots: &[Value], now: &str) -> String {
        let fired = slots.iter().filter_map(|slot| slot["fired"].as_u64()).sum();
        let totals = slot(0, fired, Some(20.0));
        let answer = json!({"slots": slots, "totals": totals});
        sections(&Ok(answer.into()), now.parse().unwrap()).into_string()
    }

    #[test]
    fn present_slot_is_left_out_because_it_is_not_over() {
        let slots = [slot(0, 3, Some(10.0)), slot(15, 4, Some(40.0)), slot(30, 99, Some(900.0))];
        let page = drawn(&slots, "2026-11-18T09:40:00Z");
        assert!(page.contains("The most, 4, were fired from"), "{page}");
        assert!(page.contains("<td>6</td>"), "the hour has 6 skipped times: {page}");
        assert!(!page.contains("<td>900 ms</td>"), "{page}");
        assert!(drawn(&slots, "2026-11-18T09:45:00Z").contains("The most, 99, were fired"));
    }

    #[test]
    fn first_quarter_hour_has_no_chart() {
        let page = drawn(&[slot(0, 0, None), slot(15, 7, Some(20.0))], "2026-11-18T09:20:00Z");
        assert!(page.contains("7 runs fired.") && page.contains("Of 7 starts, half"), "{page}");
        assert_eq!(page.matches(BEGINS_SOON).count(), 2, "{page}");
        assert!(!page.contains("<svg"), "{page}");
    }

    #[test]
    fn day_without_runs_is_said_in_words() {
        let page = drawn(&[slot(0, 0, None)], "2026-11-18T09:40:00Z");
        assert!(
            page.contains("Nothing was fired") && page.contains("No run has started"),
            "{page}"
        );
        assert!(!page.contains("<svg"), "{page}");
    }

    #[test]
    fn lateness_grows_with_its_logarithm() {
        assert_eq!(logarithmic(0.0, 1000.0), 0.0);
        assert!((logarithmic(10.0, 1000.0) - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(logarithmic(5000.0, 1000.0), 1.0);
    }
}
