//! Parses the JSON document of a bulk command, and its filter.

use std::collections::BTreeSet;

use evenkeel_core::JobId;
use evenkeel_core::condition::Level;
use evenkeel_core::order::Priority;
use evenkeel_core::status::JobStatus;
use evenkeel_store::{JobCursor, JobFilter};
use serde_json::{Map, Value};

use super::fields::Fields;
use super::job_fields::LANES;
use super::limits::{BULK_IDS_MAX, FILTER_LABELS_MAX, NUMBER_MAX};
use crate::fault::shown;
use crate::{BulkAction, BulkCommand, ControlCommand, Fault, JobSelection};

/// Parses a bulk command. `cursor` decodes the position at which an earlier request stopped.
pub fn read_bulk_command(
    document: &Value,
    cursor: impl Fn(&str) -> Option<JobCursor>,
) -> Result<BulkCommand, Vec<Fault>> {
    Fields::read_object(document, "a command", |fields| {
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
    if fields.value("action").is_none() {
        let known = words.map(|(word, _)| word).join(", ");
        fields.fault("action", format!("is missing; write one of {known}"));
    }
    let action = fields.word("action", &words)?;
    match (action, priority) {
        (Some(_), _) if has_priority => {
            fields.fault("priority", "is for the action set_priority only; leave it out");
            None
        }
        (Some(command), _) => Some(BulkAction::Control(command)),
        (None, Some(priority)) => Some(BulkAction::SetPriority(priority)),
        (None, None) => {
            if !has_priority {
                let message =
                    format!("is missing; write a number from 0 to {}", Priority::MAX.get());
                fields.fault("priority", message);
            }
            None
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
            fields.fault("filter", "and ids exclude each other; leave one of them out");
            None
        }
        (false, None) => {
            let message = "is missing; name jobs by ids, or by a filter like {\"status\": \
                           \"scheduled\"}; an empty filter means all jobs";
            fields.fault("ids", message);
            None
        }
    }
}

/// Reads the job ids and drops repeated ids.
fn ids(fields: &mut Fields<'_>) -> Option<Vec<JobId>> {
    let faults_before = fields.faults.count();
    let (mut seen, mut ids) = (BTreeSet::new(), Vec::new());
    for (index, item) in fields.items("ids", BULK_IDS_MAX).iter().enumerate() {
        match item.as_str().and_then(|text| text.parse::<JobId>().ok()) {
            Some(id) => {
                if seen.insert(id) {
                    ids.push(id);
                }
            }
            None => {
                let message = format!("{} is not the id of a job", shown(item));
                fields.fault(&format!("ids[{index}]"), message);
            }
        }
    }
    (fields.faults.count() == faults_before).then_some(ids)
}

/// Parses the value of the field `filter`.
pub(crate) fn read_filter_document(fields: &mut Fields<'_>, filter: &Value) -> Option<JobFilter> {
    let Some(object) = filter.as_object() else {
        let message = format!("{} is not an object", shown(filter));
        fields.fault("filter", message);
        return None;
    };
    let faults_before = fields.faults.count();
    let faults = std::mem::take(&mut fields.faults);
    let mut inner = Fields::new(object, "filter.", faults);
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
    };
    fields.faults = inner.finish(|_| None);
    (fields.faults.count() == faults_before).then_some(filter)
}

/// Reads `{"key": value}`, and writes values that are not strings as JSON text.
fn labels(fields: &mut Fields<'_>) -> Vec<(String, String)> {
    let Some(value) = fields.value("metadata") else { return Vec::new() };
    let empty = Map::new();
    let object = value.as_object().unwrap_or(&empty);
    if !value.is_object() {
        fields.fault("metadata", format!("{} is not an object", shown(value)));
    }
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
