//! What a job will do with its schedule: its next times, where the scheduler places it, and what an
//! edit changes.

use std::sync::Arc;

use evenkeel_core::Timestamp;
use jiff::Timestamp as Instant;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::items;
use crate::backend::{Answer, Refused, escape};
use crate::session::Session;
use crate::{Web, text};

/// Start times that a preview shows.
pub(super) const TIMES: usize = 10;
/// Slots with the fewest runs that a preview lists.
const SLOTS: usize = 5;

/// Fields that say when a job runs. A new value of one of them replaces the whole schedule.
const SCHEDULE: [&str; 8] = [
    "schedule", "interval_minutes", "interval_type", "schedule_enabled", "schedule_time",
    "cron_expression", "cron_schedule", "scheduling_period",
];
/// Fields that change the times of a schedule.
const REFINEMENTS: [&str; 13] = [
    "cron_max_schedule_duration", "cooldown_duration", "timezone", "tz", "dst_gap", "dst_overlap",
    "start_at", "end_at", "max_runs", "blackout_periods", "avoid_blackout", "prefer_window",
    "average_duration_override",
];

/// The preview of a job that is not saved yet.
pub(super) struct Preview {
    times: Arc<Value>,
    /// Load of the next day, for a job whose start time the scheduler chooses.
    distribution: Option<Answer>,
    changes: Option<Vec<Change>>,
}

pub(super) struct Change {
    field: String,
    before: Value,
    after: Value,
}

/// Returns the fields of `document` that differ from `job`.
fn changes(job: &Value, document: &Value) -> Vec<Change> {
    let fields = document.as_object().into_iter().flatten();
    let changed = fields.filter(|(name, after)| job[name.as_str()] != **after);
    let change = |(field, after): (&String, &Value)| Change {
        field: field.clone(),
        before: job[field.as_str()].clone(),
        after: after.clone(),
    };
    changed.map(change).collect()
}

/// Asks the API when a job with these fields would run.
pub(super) async fn load(
    web: &Web,
    session: &Session,
    document: &Value,
    job: Option<&Value>,
) -> Result<Preview, Refused> {
    let credential = &session.credential;
    let changes = job.map(|job| changes(job, document));
    let is_about_times = |name: &str| SCHEDULE.contains(&name) || REFINEMENTS.contains(&name);
    let keeps_times = |changes: &Vec<Change>| !changes.iter().any(|it| is_about_times(&it.field));
    if let Some(job) = job.filter(|_| changes.as_ref().is_some_and(keeps_times)) {
        let id = escape(&text::plain(&job["id"]));
        let path = format!("/api/v1/jobs/{id}/next?count={TIMES}");
        let times = web.backend.get(credential, &path).await?;
        return Ok(Preview { times, distribution: None, changes });
    }
    let body = question(document, job);
    let times = web.backend.post(credential, "/api/v1/schedules/preview", Some(&body)).await?;
    let is_placed = times["kind"] == "interval" && times["exact_times"] == false;
    let distribution = match is_placed {
        true => Some(web.backend.get(credential, "/api/v1/scheduler/distribution").await),
        false => None,
    };
    Ok(Preview { times, distribution, changes })
}

/// The fields about which the preview asks: of the job, replaced by those of the edit.
fn question(document: &Value, job: Option<&Value>) -> Value {
    let mut body = Map::new();
    let mut take = |from: &Value, names: &[&str]| {
        for name in names {
            if let Some(value) = from.get(*name) {
                body.insert((*name).to_owned(), value.clone());
            }
        }
    };
    if let Some(job) = job {
        // The job shows its schedule in several forms, of which one is enough.
        take(job, &REFINEMENTS[2..]);
        if !SCHEDULE.iter().any(|name| document.get(*name).is_some()) {
            take(job, &["schedule", "exact"]);
        }
    }
    take(document, &SCHEDULE);
    take(document, &REFINEMENTS);
    take(document, &["exact"]);
    if document.get("timezone").is_some() {
        body.remove("tz");
    }
    body.insert("count".into(), json!(TIMES));
    Value::Object(body)
}

impl Preview {
    pub(super) fn render(&self, now: Timestamp) -> Markup {
        html! {
            section.panel id="preview" role="status" {
                h2 { "Preview" }
                @if let Some(changes) = &self.changes { (list_changes(changes)) }
                p { (text::plain(&self.times["description"])) }
                @match &self.distribution {
                    Some(Ok(distribution)) => (placement(distribution, &self.times, now)),
                    Some(Err(refused)) => p role="alert" { (refused.detail) },
                    None if self.times["exact_times"] == false => p {
                        "The times are the latest ones: the job may start earlier." },
                    None => {},
                }
                (times(&self.times))
            }
        }
    }
}

fn list_changes(changes: &[Change]) -> Markup {
    html! {
        @if changes.is_empty() {
            p { "Nothing changes." }
        } @else {
            h3 { "What changes" }
            table aria-label="What changes" {
                thead { tr { th scope="col" { "Field" } th scope="col" { "Before" } th scope="col" { "After" } } }
                tbody {
                    @for change in changes {
                        tr { th scope="row" { code { (change.field) } }
                            td { code { (change.before) } } td { code { (change.after) } } }
                    }
                }
            }
        }
    }
}

/// Says where an interval job would be placed: the scheduler chooses when the job is saved.
fn placement(distribution: &Value, times: &Value, now: Timestamp) -> Markup {
    let last = items(times, "times").first().and_then(|time| text::micros(&time["utc"]));
    let mut slots: Vec<&Value> = items(distribution, "slots").iter().collect();
    slots.retain(|slot| text::micros(&slot["start"]) < last);
    let count = |slot: &Value| slot["job_count"].as_u64().unwrap_or(0);
    slots.sort_by_key(|slot| count(slot));
    html! {
        p { "The scheduler chooses the start time when you save the job, among the time slots with "
            "the fewest runs. The first run is not later than the first time below." }
        @if !slots.is_empty() {
            p { "Time slots with the fewest runs until then:" }
            ul {
                @for slot in slots.iter().take(SLOTS) {
                    li { (text::time(&slot["start"], now)) ": " (count(slot)) " runs" }
                }
            }
        }
    }
}

/// The next times in the zone of the job. `load` has the number of other jobs, if it is known.
pub(super) fn times(answer: &Value) -> Markup {
    let zone = answer["timezone"].as_str().unwrap_or("UTC");
    let notes = oddities(answer);
    let loads = items(answer, "load");
    html! {
        @if items(answer, "times").is_empty() {
            p { "It has no next run." }
        } @else {
            p { "The next " (notes.len()) " times in " (zone) ":" }
            ol.times {
                @for (time, notes) in items(answer, "times").iter().zip(&notes) {
                    li {
                        time datetime=(text::plain(&time["utc"])) { (text::local(&time["local"])) }
                        @for note in notes { " " strong.oddity { span aria-hidden="true" { "⚠" } " " (note) } }
                        @if let Some(jobs) = load_at(loads, time) {
                            " " small { (jobs) " other jobs in this quarter hour" }
                        }
                    }
                }
            }
        }
    }
}

fn load_at<'a>(loads: &'a [Value], time: &Value) -> Option<&'a Value> {
    let quarter = 15 * 60 * 1_000_000;
    let at = text::micros(&time["utc"])?.div_euclid(quarter);
    let slot = loads.iter().find(|load| {
        text::micros(&load["slot"]).is_some_and(|slot| slot.div_euclid(quarter) == at)
    })?;
    Some(&slot["jobs"])
}

/// What is unusual about each time: moved by a blackout, or near a change of the clocks.
fn oddities(answer: &Value) -> Vec<Vec<String>> {
    let zone = TimeZone::get(answer["timezone"].as_str().unwrap_or("UTC")).ok();
    let mut before = None;
    let mut notes = Vec::new();
    for time in items(answer, "times") {
        let mut of_time = Vec::new();
        match time["moved_by"].as_str() {
            Some("daylight_saving") => {
                of_time.push("moved: daylight saving skips the scheduled time".into());
            }
            Some(cause) => of_time.push(format!("moved by {cause}")),
            None => {}
        }
        let instant = time["utc"].as_str().and_then(|utc| utc.parse::<Instant>().ok());
        if let (Some(zone), Some(instant)) = (&zone, instant) {
            let offset = zone.to_offset(instant);
            if before.is_some_and(|before| before != offset) {
                of_time.push(format!("the clocks change before this time, to UTC{offset}"));
            }
            before = Some(offset);
            let local = instant.to_zoned(zone.clone()).datetime();
            if zone.to_ambiguous_timestamp(local).is_ambiguous() {
                of_time.push("this local time occurs twice".into());
            }
        }
        notes.push(of_time);
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_near_a_change_of_the_clocks_are_marked() {
        let times = |utc: &[&str]| {
            let times: Vec<Value> = utc.iter().map(|utc| json!({"utc": utc})).collect();
            oddities(&json!({"timezone": "Europe/Berlin", "times": times}))
        };
        let autumn =
            times(&["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        assert_eq!(autumn[0], Vec::<String>::new());
        assert_eq!(autumn[1], ["this local time occurs twice"]);
        assert_eq!(autumn[2], ["the clocks change before this time, to UTC+01"]);
    }

    #[test]
    fn edit_lists_only_fields_that_change() {
        let job = json!({"priority": 1, "lane": "batch"});
        let changes = changes(&job, &json!({"priority": 2, "lane": "batch", "pool": "a"}));
        let names: Vec<&str> = changes.iter().map(|change| change.field.as_str()).collect();
        assert_eq!(names, ["pool", "priority"]);
    }
}
