//! Plans the import of jobs from the table of a cron-based predecessor system.

use std::collections::HashMap;

use evenkeel_core::executor::ExecutorCatalog;
use evenkeel_core::{Span, Timestamp, Zone};
use serde_json::{Value, json};

use super::cron::{Converted, convert};
use super::row::Row;
use super::{Disposition, Planned};
use crate::Object;
use crate::limits::EXPONENTIAL_BACKOFF_SECONDS_MAX;

#[derive(Clone, Debug)]
pub struct LegacyOptions {
    /// Time zone of the predecessor system.
    pub zone: Zone,
    /// If true, jobs with intervals keep their next run time. If false, the scheduler may choose
    /// new start times for jobs with intervals.
    pub keep_phase: bool,
    /// If true, jobs whose schedule is disabled are created paused.
    pub include_disabled: bool,
    /// If true, jobs with a duplicate name, except the first one, get their old id as
    /// `configuration`. If false, jobs with a duplicate name are marked for review.
    pub rename_duplicates: bool,
    pub executors: ExecutorCatalog,
}

/// Plans the import of the predecessor system's jobs, row by row.
#[derive(Debug)]
pub struct LegacyImport {
    options: LegacyOptions,
    /// The job names of earlier rows, each with its row number.
    names: HashMap<String, u64>,
}

enum RowSchedule {
    Every { number: u64, unit: String },
    Cron(String),
    Once,
}

impl LegacyImport {
    pub fn new(options: LegacyOptions) -> Self {
        Self { options, names: HashMap::new() }
    }

    /// Plans the job of the row with the number `line`, at the time `now`. `columns` contains the
    /// columns of the row, or the reason why the row cannot be parsed.
    pub fn plan(&mut self, line: u64, columns: Result<&Object, &str>, now: Timestamp) -> Planned {
        let row = columns.map_err(str::to_owned).and_then(Row::read);
        let row = match row {
            Ok(row) => row,
            Err(why) => {
                let name = columns.ok().and_then(|columns| columns.get("source_name")?.as_str());
                let name = name.map_or_else(|| format!("row {line}"), Into::into);
                return Planned::for_review(line, name, "unreadable_row", why);
            }
        };
        let name = row.name().map_or_else(|| format!("row {line}"), Into::into);
        let schedule = schedule_of(&row);
        let was = match &schedule {
            RowSchedule::Every { number, unit } => Some(format!("every {number} {unit}")),
            RowSchedule::Cron(expression) => Some(expression.clone()),
            RowSchedule::Once => None,
        };
        let planned = match self.is_paused(&row, &schedule, &name, line) {
            Err(planned) => *planned,
            Ok(paused) => self.job(&row, &schedule, name, line, now, paused),
        };
        let planned = Planned { was, ..planned }.checked(self.options.executors);
        self.with_unique_name(planned, &row)
    }

    /// Returns the reason why the job of the row is created paused, or `None` for an active job.
    /// For a row that becomes no job, the error contains the import plan of the row.
    fn is_paused(
        &self,
        row: &Row,
        schedule: &RowSchedule,
        name: &str,
        line: u64,
    ) -> Result<Option<&'static str>, Box<Planned>> {
        let recurs = !matches!(schedule, RowSchedule::Once);
        let review = |code, why: &str| Err(Box::new(Planned::for_review(line, name, code, why)));
        let left_out = |code, why: &str| {
            Err(Box::new(Planned::without_job(line, name, Disposition::LeftOut, code, why)))
        };
        let status =
            if row.is_paused { "paused" } else { row.status.as_deref().unwrap_or("pending") };
        let status = if row.is_cancelled { "cancelled" } else { status };
        match (status, recurs) {
            ("cancelled", _) => left_out("cancelled", "it was cancelled in the old system"),
            _ if row.url.is_none() => review(
                "no_url",
                "it has no url, so there is nothing to crawl; give it one, or create a job with \
                 another executor yourself",
            ),
            ("pending" | "scheduled" | "completed" | "running" | "failed" | "paused", true)
                if is_disabled(row, schedule, status) =>
            {
                if !self.options.include_disabled {
                    return left_out("schedule_off", "its schedule is disabled in the old system");
                }
                Ok(Some(
                    "its schedule was disabled in the old system; resume it when it should run",
                ))
            }
            ("pending" | "scheduled", _) | ("completed" | "running", true) => Ok(None),
            ("failed", true) => {
                Ok(Some("it had failed in the old system; resume it when the cause is fixed"))
            }
            ("paused", true) => {
                Ok(Some("it was paused in the old system; resume it when it should run"))
            }
            ("completed", false) => {
                left_out("already_done", "it has already run once in the old system")
            }
            ("running", false) => review(
                "running_once",
                "it runs once and is running in the old system; wait for its end there, and create \
                 a job yourself if it fails",
            ),
            ("failed", false) => review(
                "failed_once",
                "it ran once and failed in the old system; create a job yourself if you still need \
                 it",
            ),
            ("paused", false) => review(
                "paused_once",
                "it should run once and is paused; here it would run at once, so create a job \
                 yourself when it should run",
            ),
            (other, _) => review("unknown_status", &format!("its status {other:?} is unknown")),
        }
    }

    fn job(
        &self,
        row: &Row,
        schedule: &RowSchedule,
        name: String,
        line: u64,
        now: Timestamp,
        paused: Option<&'static str>,
    ) -> Planned {
        let mut notes: Vec<String> = paused.map(Into::into).into_iter().collect();
        if row.status.as_deref() == Some("running") && !row.is_paused {
            notes.push("it is running in the old system; that run is not imported".into());
        }
        let mut document = document_without_schedule(row, &mut notes);
        let mut planned = Planned::without_job(line, name, Disposition::Once, "run_once", "");
        match schedule {
            RowSchedule::Every { number, unit } => {
                planned.disposition = Disposition::Interval;
                (planned.code, planned.why) = ("interval", "it had an interval".into());
                planned.becomes = Some(format!("every {number} {unit}"));
                document.insert("interval_minutes".into(), (*number).into());
                document.insert("interval_type".into(), unit.clone().into());
                if let Some(at) = row.next_run_at.filter(|_| self.options.keep_phase)
                    && let Some(every) = span_of(*number, unit)
                {
                    let converted = Converted::Interval { every, anchor: Some(at) };
                    planned.becomes = Some(add_schedule(&mut document, converted));
                }
                self.keep_former_cron(row, &mut document, now);
            }
            RowSchedule::Cron(expression) => match convert(expression, &self.options.zone, now) {
                Err(why) => {
                    let why = format!("{why}; rewrite the schedule");
                    return Planned::for_review(line, planned.name, "unreadable_schedule", why);
                }
                Ok(converted) => {
                    (planned.disposition, planned.code, planned.why) = converted.reason();
                    planned.becomes = Some(add_schedule(&mut document, converted));
                    if planned.disposition == Disposition::Interval || expression.contains("TZ=") {
                        self.keep_former_cron(row, &mut document, now);
                    }
                }
            },
            RowSchedule::Once => {
                planned.why = "it has not run in the old system yet".into();
                planned.becomes = Some("once, as soon as it is imported".into());
                match row.next_run_at.filter(|at| *at > now) {
                    Some(at) => {
                        planned.becomes = Some(format!("once, at {}", shown(at)));
                        document.insert("schedule".into(), json!({"kind": "once", "at": at}));
                    }
                    None => drop(document.insert("schedule_enabled".into(), false.into())),
                }
            }
        }
        Planned { notes, paused: paused.is_some(), document: Some(document.into()), ..planned }
    }

    /// Keeps the former cron expression of a row in the job, or in the job's metadata if the
    /// expression cannot be parsed or names a time zone.
    fn keep_former_cron(&self, row: &Row, document: &mut Object, now: Timestamp) {
        let Some(former) = &row.schedule_time else { return };
        let readable = convert(former, &self.options.zone, now).is_ok();
        if readable && !former.contains("TZ=") {
            document.insert("schedule_time".into(), former.clone().into());
        } else if let Some(metadata) =
            document.entry("metadata").or_insert_with(|| json!({})).as_object_mut()
        {
            metadata.entry("legacy_schedule_time").or_insert_with(|| former.clone().into());
        }
    }

    /// Makes the name of a job unique, or marks the job for review.
    fn with_unique_name(&mut self, mut planned: Planned, row: &Row) -> Planned {
        let Some(document) = &mut planned.document else { return planned };
        let Some(first) = self.names.get(&planned.name) else {
            self.names.insert(planned.name.clone(), planned.line);
            return planned;
        };
        let id = row.id.clone().unwrap_or_else(|| format!("row-{}", planned.line));
        if self.options.rename_duplicates {
            planned
                .notes
                .push(format!("line {first} has the same name, so its configuration is {id}"));
            document["configuration"] = id.into();
            return planned;
        }
        let why = format!(
            "line {first} has the same name {:?}; remove one of the two lines, or use --rename-duplicates",
            planned.name
        );
        Planned {
            was: planned.was,
            ..Planned::for_review(planned.line, planned.name, "duplicate_name", why)
        }
    }
}

/// Returns the schedule of a row. If a row has an interval and a cron expression, the interval is
/// used.
fn schedule_of(row: &Row) -> RowSchedule {
    match (row.interval_minutes, &row.schedule_time) {
        (Some(number), _) => {
            let unit = row.interval_type.clone().unwrap_or_else(|| "minutes".into());
            RowSchedule::Every { number, unit }
        }
        (None, Some(expression)) => RowSchedule::Cron(expression.clone()),
        (None, None) => RowSchedule::Once,
    }
}

/// True if the schedule of a row is disabled. A row with an interval runs if its status is
/// `scheduled`, `running` or `paused`, even if `schedule_enabled` is false.
fn is_disabled(row: &Row, schedule: &RowSchedule, status: &str) -> bool {
    let runs_by_interval = matches!(schedule, RowSchedule::Every { .. })
        && matches!(status, "scheduled" | "running" | "paused");
    row.schedule_enabled == Some(false) && !runs_by_interval
}

fn document_without_schedule(row: &Row, notes: &mut Vec<String>) -> Object {
    let mut document = Object::new();
    let mut put = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            document.insert(field.into(), value);
        }
    };
    put("name", row.name().map(Value::from));
    put("source_id", row.source_id.clone().map(Value::from));
    put("source_name", row.source_name.clone().map(Value::from));
    put("url", row.url.clone().map(Value::from));
    put("max_retries", row.max_retries.map(Value::from));
    let backoff = row.retry_backoff_seconds;
    if backoff.is_some_and(|secs| secs > EXPONENTIAL_BACKOFF_SECONDS_MAX) {
        notes.push("the delay before a retry is limited to an hour, as in the old system".into());
    }
    let backoff = backoff.map(|secs| secs.min(EXPONENTIAL_BACKOFF_SECONDS_MAX));
    put("retry_backoff_seconds", backoff.map(Value::from));
    let mut metadata = row.metadata.clone();
    if let Some(id) = &row.id {
        // Clients that know the old id can find the job by `legacy_id`.
        metadata.entry("legacy_id").or_insert_with(|| id.clone().into());
    }
    put("metadata", (!metadata.is_empty()).then(|| metadata.into()));
    document
}

/// Adds the schedule to a job document, and returns the description of the schedule.
fn add_schedule(document: &mut Object, converted: Converted) -> String {
    match converted {
        Converted::Interval { every, anchor } => {
            let mut schedule = json!({"kind": "interval", "every": every});
            let mut description = format!("every {every}");
            if let Some(anchor) = anchor {
                schedule["anchor"] = json!(anchor);
                description.push_str(&format!(" from {} on", shown(anchor)));
            }
            document.insert("schedule".into(), schedule);
            description
        }
        Converted::Cron { expression, zone, .. } => {
            document.insert("schedule".into(), json!({"kind": "cron", "expression": expression}));
            if !zone.is_utc() {
                document.insert("timezone".into(), zone.name().into());
            }
            format!("{expression} ({zone})")
        }
    }
}

/// Formats a timestamp; a fraction of zero is left out.
fn shown(moment: Timestamp) -> String {
    moment.to_string().replace(".000000Z", "Z")
}

fn span_of(number: u64, unit: &str) -> Option<Span> {
    let secs = match unit {
        "minutes" => 60,
        "hours" => 3600,
        "days" => 86_400,
        _ => return None,
    };
    Some(Span::from_secs(secs).saturating_mul(number))
}

#[cfg(test)]
mod tests;
