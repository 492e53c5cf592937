//! Parses the JSON document of a bulk command, and its filter.

use std::collections::BTreeSet;

use evenkeel_core::condition::Level;
use evenkeel_core::order::Priority;
use evenkeel_core::status::JobStatus;
use evenkeel_core::{JobId, JobSearch};
use evenkeel_store::{JobCursor, JobFilter};
use serde_json::Value;

use super::fields::Fields;
use super::job_fields::LANES;
use super::limits::{BULK_IDS_MAX, FILTER_LABELS_MAX, NUMBER_MAX};
use crate::fault::shown;
use crate::filter::read_search;
use crate::{BulkAction, BulkCommand, ControlCommand, Fault, JobSelection};

/// Parses a bulk command. `cursor` decodes the position at which an earlier bulk request stopped.
pub fn read_bulk_command(
    document: &Value,
    cursor: impl Fn(&str) -> Option<JobCursor>,
) -> Result<BulkCommand, Vec<Fault>> {
    Fields::read_object(document, "a command is an object", |fields| {
        let (action, selection) = (action(fields), selection(fields, cursor));
        let dry_run = fields.flag("dry_run").unwrap_or(false);
        Some(BulkCommand { action: action?, selection: selection?, dry_run })
    })
}

fn action(fields: &mut Fields<'_>) -> Option<BulkAction> {
    let priority = fields.priority("priority");
    let has_priority = fields.value("priority").is_some();
    let words = [
        ("pause", Some(ControlCommand::Pause)),
        ("resume", Some(ControlCommand::Resume)),
        ("cancel", Some(ControlCommand::Cancel)),
        ("retry", Some(ControlCommand::Retry)),
        ("delete", Some(ControlCommand::Delete)),
        ("set_priority", None),
    ];
    fields.require("action", &format!("write one of {}", words.map(|(word, _)| word).join(", ")));
    match fields.word("action", &words)? {
        Some(_) if has_priority => {
            fields.refuse("priority", "is for the action set_priority only; leave it out")
        }
        Some(command) => Some(BulkAction::Control(command)),
        None => {
            let way_out = format!("write a number from 0 to {}", Priority::MAX.get());
            fields.require("priority", &way_out);
            priority.map(BulkAction::SetPriority)
        }
    }
}

fn selection(
    fields: &mut Fields<'_>,
    cursor: impl Fn(&str) -> Option<JobCursor>,
) -> Option<JobSelection> {
    let has_ids = fields.value("ids").is_some();
    let ids = ids(fields);
    let filter = fields.value("filter");
    let place = fields.text("cursor").map(cursor);
    if place == Some(None) {
        fields.fault("cursor", "is not a cursor; send the next_cursor of an answer unchanged");
    }
    match (has_ids, filter) {
        (true, None) => {
            if place.is_some() {
                fields.fault("cursor", "is for a filter only; leave it out");
            }
            ids.map(JobSelection::Ids)
        }
        (false, Some(filter)) => read_filter_document(fields, filter)
            .map(|filter| JobSelection::Filter(filter, place.flatten())),
        (true, Some(_)) => {
            fields.refuse("filter", "and ids exclude each other; leave one of them out")
        }
        (false, None) => {
            let message = "is missing; name jobs by ids, or by a filter like {\"status\": \
                           \"scheduled\"}; an empty filter means all jobs";
            fields.refuse("ids", message)
        }
    }
}

/// Reads the job ids of a bulk command, and drops repeated ids.
fn ids(fields: &mut Fields<'_>) -> Option<Vec<JobId>> {
    let faults_before = fields.faults.count();
    let mut ids = fields.each("ids", BULK_IDS_MAX, |item| {
        let id = item.as_str().and_then(|text| text.parse::<JobId>().ok());
        id.ok_or_else(|| format!("{} is not the id of a job", shown(item)))
    });
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(*id));
    (fields.faults.count() == faults_before).then_some(ids)
}

/// Parses the job filter in the field `filter`.
pub(crate) fn read_filter_document(fields: &mut Fields<'_>, filter: &Value) -> Option<JobFilter> {
    let Some(object) = filter.as_object() else {
        return fields.refuse("filter", format!("{} is not an object", shown(filter)));
    };
    let faults_before = fields.faults.count();
    let mut inner = Fields::new(object, "filter.", std::mem::take(&mut fields.faults));
    let text = |inner: &mut Fields<'_>, name| inner.text(name).map(str::to_owned);
    let statuses = JobStatus::ALL.map(|status| (status.as_str(), status));
    let levels = Level::ALL.map(|level| (level.as_str(), level));
    let filter = JobFilter {
        name_prefix: text(&mut inner, "name_prefix"),
        source_id: text(&mut inner, "source_id"),
        source_prefix: text(&mut inner, "source_prefix"),
        status: inner.word("status", &statuses),
        condition: inner.word("condition", &levels),
        executor: text(&mut inner, "executor"),
        lane: inner.word("lane", &LANES),
        metadata: labels(&mut inner),
        next_from: inner.moment("next_run_after"),
        next_before: inner.moment("next_run_before"),
        target: inner.whole("target", 1..=NUMBER_MAX),
        active_attempts: None,
        search: search(&mut inner),
    };
    fields.faults = inner.finish(|_| None);
    (fields.faults.count() == faults_before).then_some(filter)
}

fn search(fields: &mut Fields<'_>) -> Option<JobSearch> {
    match read_search(fields.text("q")?) {
        Ok(search) => Some(search),
        Err(message) => fields.refuse("q", message),
    }
}

/// Reads the metadata that the filter requires; values that are not strings are converted to JSON
/// text.
fn labels(fields: &mut Fields<'_>) -> Vec<(String, String)> {
    let object = fields.convert("metadata", "is not an object", Value::as_object);
    let Some(object) = object else { return Vec::new() };
    if object.len() > FILTER_LABELS_MAX {
        let message = format!("has {} keys; at most {FILTER_LABELS_MAX} are allowed", object.len());
        fields.fault("metadata", message);
    }
    let mut labels = Vec::new();
    for (key, value) in object {
        match value {
            Value::String(text) => labels.push((key.clone(), text.clone())),
            Value::Number(_) | Value::Bool(_) => labels.push((key.clone(), value.to_string())),
            _ => {
                let message =
                    format!("{key} is {}; write a text, a number, true or false", shown(value));
                fields.fault("metadata", message);
            }
        }
    }
    labels
}
