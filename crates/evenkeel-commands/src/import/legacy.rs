//! Jobs of the cron-based predecessor.

use std::collections::HashMap;

use evenkeel_core::executor::ExecutorCatalog;
use evenkeel_core::{Span, Timestamp, Zone};
use serde_json::{Map, Value, json};

use super::check::checked;
use super::cron::{Converted, convert};
use super::row::Row;
use super::{Disposition, Planned};
use crate::limits::EXPONENTIAL_BACKOFF_SECONDS_MAX;

/// What whoever imports has decided.
#[derive(Clone, Debug)]
pub struct LegacyOptions {
    /// The zone whose clocks the predecessor went by.
    pub zone: Zone,
    /// Jobs that had intervals keep their next time. Otherwise they may be placed anew.
    pub keep_phase: bool,
    /// Jobs whose schedule is switched off are made too, paused.
    pub include_disabled: bool,
    /// Of several jobs with one name, all but the first get their old id as `configuration`.
    /// Otherwise a person decides about them.
    pub rename_duplicates: bool,
    /// The executors of the program.
    pub executors: ExecutorCatalog,
}

/// Decides what becomes of the predecessor's jobs, one by one.
#[derive(Debug)]
pub struct LegacyImport {
    options: LegacyOptions,
    /// The names that were given, and in which row.
    names: HashMap<String, u64>,
}

/// When a job ran there.
enum Rhythm {
    /// Again and again, every so many units.
    Every { number: u64, unit: String },
    /// By an expression.
    Cron(String),
    /// Once.
    Once,
}

impl LegacyImport {
    /// Nothing is decided yet.
    pub fn new(options: LegacyOptions) -> Self {
        Self { options, names: HashMap::new() }
    }

    /// What becomes of row number `line` at `now`. A row that could not be read says why.
    pub fn plan(
        &mut self,
        line: u64,
        columns: Result<&Map<String, Value>, &str>,
        now: Timestamp,
    ) -> Planned {
        let row = columns.map_err(str::to_owned).and_then(Row::read);
        let row = match row {
            Ok(row) => row,
            Err(why) => {
                let name = columns.ok().and_then(|columns| columns.get("source_name")?.as_str());
                let name = name.map_or_else(|| format!("row {line}"), Into::into);
                return Planned::for_a_person(line, name, "unreadable_row", why);
            }
        };
        let name = row.name().map_or_else(|| format!("row {line}"), Into::into);
        let rhythm = rhythm_of(&row);
        let was = match &rhythm {
            Rhythm::Every { number, unit } => Some(format!("every {number} {unit}")),
            Rhythm::Cron(expression) => Some(expression.clone()),
            Rhythm::Once => None,
        };
        let planned = match self.fate(&row, &rhythm, &name, line) {
            Err(planned) => *planned,
            Ok(paused) => self.job(&row, &rhythm, name, line, now, paused),
        };
        let planned = checked(Planned { was, ..planned }, self.options.executors);
        self.named(planned, &row)
    }

    /// Is a job to be made? Then whether it is to be paused, and why.
    fn fate(
        &self,
        row: &Row,
        rhythm: &Rhythm,
        name: &str,
        line: u64,
    ) -> Result<Option<&'static str>, Box<Planned>> {
        let recurs = !matches!(rhythm, Rhythm::Once);
        let person = |code, why: String| Planned::for_a_person(line, name, code, why);
        let out =
            |code, why: &str| Planned::without_job(line, name, Disposition::LeftOut, code, why);
        let status =
            if row.is_paused { "paused" } else { row.status.as_deref().unwrap_or("pending") };
        let status = if row.is_cancelled { "cancelled" } else { status };
        let not = match (status, recurs) {
            ("cancelled", _) => out("cancelled", "it was cancelled there, for good"),
            (_, _) if row.url.is_none() => {
                let why = "it has no url, so there is nothing to crawl; give it one, or make a job \
                           of another kind by hand";
                person("no_url", why.into())
            }
            ("pending" | "scheduled" | "completed" | "running" | "failed" | "paused", true)
                if is_switched_off(row, rhythm, status) =>
            {
                if self.options.include_disabled {
                    return Ok(Some(
                        "its schedule was switched off there; resume it when it is to run",
                    ));
                }
                out("schedule_off", "its schedule is switched off there")
            }
            ("pending" | "scheduled" | "completed" | "running", true) => return Ok(None),
            ("failed", true) => {
                return Ok(Some(
                    "it had failed for good there; resume it when its cause is mended",
                ));
            }
            ("paused", true) => {
                return Ok(Some("it was paused there; resume it when it is to run"));
            }
            ("pending" | "scheduled", false) => return Ok(None),
            ("completed", false) => out("already_done", "it has run there, once as it should"),
            ("running", false) => {
                let why = "it runs there just now, once; see to its end there, and make a job by \
                           hand if it fails";
                person("running_once", why.into())
            }
            ("failed", false) => person(
                "failed_once",
                "it ran there once and failed; make a job by hand if it is still wanted".into(),
            ),
            ("paused", false) => {
                let why = "it was to run once and is paused; here it would run at once, so make a \
                           job by hand when it is to run";
                person("paused_once", why.into())
            }
            (other, _) => person(
                "unknown_status",
                format!("its status {other:?} is none of the predecessor's"),
            ),
        };
        Err(Box::new(not))
    }

    /// The job that is made of a row.
    fn job(
        &self,
        row: &Row,
        rhythm: &Rhythm,
        name: String,
        line: u64,
        now: Timestamp,
        paused: Option<&'static str>,
    ) -> Planned {
        let mut notes: Vec<String> = paused.map(Into::into).into_iter().collect();
        if row.status.as_deref() == Some("running") && !row.is_paused {
            notes.push("it runs there just now; that run stays there".into());
        }
        let mut document = about(row, &mut notes);
        let mut planned = Planned::without_job(line, name, Disposition::Once, "run_once", "");
        match rhythm {
            Rhythm::Every { number, unit } => {
                planned.fate = Disposition::Interval;
                (planned.code, planned.why) = ("interval", "it had an interval there".into());
                planned.becomes = Some(format!("every {number} {unit}"));
                document.insert("interval_minutes".into(), (*number).into());
                document.insert("interval_type".into(), unit.clone().into());
                if let Some(at) = row.next_run_at.filter(|_| self.options.keep_phase)
                    && let Some(every) = span_of(*number, unit)
                {
                    document.insert("schedule".into(), anchored(every, Some(at)));
                    planned.becomes = Some(format!("every {every} from {} on", shown(at)));
                }
                self.keep_former(row, &mut document, now);
            }
            Rhythm::Cron(expression) => match convert(expression, &self.options.zone, now) {
                Err(why) => {
                    let why = format!("{why}; write the schedule anew");
                    return Planned::for_a_person(line, planned.name, "unreadable_schedule", why);
                }
                Ok(converted) => {
                    planned.fate = converted.fate();
                    (planned.code, planned.why) = converted.reason();
                    planned.becomes = Some(timed(&mut document, converted));
                    if planned.fate == Disposition::Interval || expression.contains("TZ=") {
                        self.keep_former(row, &mut document, now);
                    }
                }
            },
            Rhythm::Once => {
                planned.why = "it has not run there yet".into();
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

    /// The expression stays with the job as it was; in its metadata, if no server could read it.
    fn keep_former(&self, row: &Row, document: &mut Map<String, Value>, now: Timestamp) {
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

    /// The same under a name that no other has.
    fn named(&mut self, mut planned: Planned, row: &Row) -> Planned {
        let Some(document) = &mut planned.document else { return planned };
        let Some(first) = self.names.get(&planned.name) else {
            self.names.insert(planned.name.clone(), planned.line);
            return planned;
        };
        let id = row.id.clone().unwrap_or_else(|| format!("row-{}", planned.line));
        if self.options.rename_duplicates {
            planned.notes.push(format!("line {first} has its name, so its configuration is {id}"));
            document["configuration"] = id.into();
            return planned;
        }
        let why = format!(
            "line {first} is called {:?}, too; leave one of them out, or tell them apart with \
             --rename-duplicates",
            planned.name
        );
        Planned {
            was: planned.was,
            ..Planned::for_a_person(planned.line, planned.name, "duplicate_name", why)
        }
    }
}

/// An interval takes the place of the cron column that came before it.
fn rhythm_of(row: &Row) -> Rhythm {
    match (row.interval_minutes, &row.schedule_time) {
        (Some(number), _) => {
            let unit = row.interval_type.clone().unwrap_or_else(|| "minutes".into());
            Rhythm::Every { number, unit }
        }
        (None, Some(expression)) => Rhythm::Cron(expression.clone()),
        (None, None) => Rhythm::Once,
    }
}

/// The predecessor's newer rows are run by their interval and their status alone; its older ones
/// only if their schedule is switched on.
fn is_switched_off(row: &Row, rhythm: &Rhythm, status: &str) -> bool {
    let runs_by_interval = matches!(rhythm, Rhythm::Every { .. })
        && matches!(status, "scheduled" | "running" | "paused");
    row.schedule_enabled == Some(false) && !runs_by_interval
}

/// All but the schedule.
fn about(row: &Row, notes: &mut Vec<String>) -> Map<String, Value> {
    let mut document = Map::new();
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
        notes.push("it never waited longer than an hour before a retry, and does not here".into());
    }
    let backoff = backoff.map(|secs| secs.min(EXPONENTIAL_BACKOFF_SECONDS_MAX));
    put("retry_backoff_seconds", backoff.map(Value::from));
    let mut metadata = row.metadata.clone();
    if let Some(id) = &row.id {
        // Whoever knows the job by its old id finds it by this.
        metadata.entry("legacy_id").or_insert_with(|| id.clone().into());
    }
    put("metadata", (!metadata.is_empty()).then(|| metadata.into()));
    document
}

/// Puts the schedule into a document. Says it for people.
fn timed(document: &mut Map<String, Value>, converted: Converted) -> String {
    match converted {
        Converted::Interval { every, anchor } => {
            document.insert("schedule".into(), anchored(every, anchor));
            anchor.map_or_else(
                || format!("every {every}"),
                |anchor| format!("every {every} from {} on", shown(anchor)),
            )
        }
        Converted::Cron { expression, zone, .. } => {
            let said = format!("{expression} ({zone})");
            document.insert("schedule".into(), json!({"kind": "cron", "expression": expression}));
            if !zone.is_utc() {
                document.insert("timezone".into(), zone.name().into());
            }
            said
        }
    }
}

/// A moment for people, who do not count microseconds.
fn shown(moment: Timestamp) -> String {
    moment.to_string().replace(".000000Z", "Z")
}

fn anchored(every: Span, anchor: Option<Timestamp>) -> Value {
    let mut schedule = json!({"kind": "interval", "every": every});
    if let Some(anchor) = anchor {
        schedule["anchor"] = json!(anchor);
    }
    schedule
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
