//! Parses JSON documents of jobs, changes, commands and triggers, and reports all faults together.

mod bulk;
mod dedup;
mod executor;
mod expression;
mod fields;
mod hours;
pub(crate) mod job_fields;
mod length;
pub mod limits;
mod merge;
mod policy;
mod retry;
mod schedule;
mod schedule_object;
mod shape;
mod syntax_error;
mod texts;
mod timing;
mod trigger;
mod unknown_fields;

use evenkeel_core::executor::ExecutorCatalog;
use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::redact;
use evenkeel_core::schedule::Once;
use evenkeel_core::{About, Definition, Schedule, TenantNo};
use serde_json::{Map, Value};

use crate::fault::{Faults, object_of};
use crate::{ExecutorCheck, Fault};

pub use bulk::read_bulk_command;
pub(crate) use bulk::read_filter_document;
pub(crate) use expression::read_cron;
pub use expression::{ParsedSchedule, read_schedule};
pub(crate) use fields::Fields;
pub use syntax_error::SyntaxError;
pub(crate) use timing::{Timing, read as read_timing};
pub use trigger::read_trigger;
pub use unknown_fields::is_set_by_the_server;

/// A job as its JSON document describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobSpec {
    pub about: About,
    pub definition: Definition,
    /// For a job with a cron schedule, false starts each run up to a minute after its scheduled
    /// time. For a job with an interval, true starts each run at the beginning of its time slot.
    pub exact: Option<bool>,
    /// False if the job is created paused.
    pub enabled: bool,
}

/// Parses the JSON document of a new job of `tenant`.
pub fn read_job(
    document: &Value,
    tenant: TenantNo,
    executors: &dyn ExecutorCheck,
) -> Result<JobSpec, Vec<Fault>> {
    let object = object_of(document, "a job is an object")?;
    let mut faults = Faults::default();
    shape::check(object, &mut faults);
    let kind = object.get("executor_type").and_then(Value::as_str).unwrap_or(ExecutorSpec::NONE);
    if let Some(field) = redact::redacted_in(object, executors.catalog().fields(kind)) {
        let message = "holds a redacted value: {\"redacted\": true} and *** are what viewers see; \
                       write the value itself, or {\"secret\": \"name\"}";
        faults.add(field, message);
        return faults.or(None);
    }
    let mut fields = Fields::new(object, "", faults);
    let spec = read_fields(&mut fields, tenant, executors);
    let reason = |field: &str| {
        is_set_by_the_server(field).then(|| "is set by the server; leave it out".into())
    };
    fields.finish(reason).or(spec)
}

/// Returns the sorted names of all fields that [`read_job`] accepts.
pub fn job_field_names() -> Vec<&'static str> {
    // `read_fields` asks for every field even if it is absent, so an empty document is enough to
    // collect all names.
    let empty = Map::new();
    let mut fields = Fields::new(&empty, "", Faults::default());
    let _ = read_fields(&mut fields, TenantNo(0), &ExecutorCatalog::EMPTY);
    fields.known_names()
}

fn read_fields(
    fields: &mut Fields<'_>,
    tenant: TenantNo,
    executors: &dyn ExecutorCheck,
) -> Option<JobSpec> {
    let mut about = About::default();
    job_fields::read(job_fields::ABOUT, fields, &mut about);
    let timing = timing::read(fields);
    about.schedule_time = replaced_cron(fields, timing.as_ref());
    let payload = fields.json("payload", limits::PAYLOAD_BYTES_MAX).unwrap_or_default();
    let executor = executor::read(fields, tenant, &about, &payload, executors);
    about.dedup = dedup::read(fields, &about, executor.as_ref(), executors.catalog());
    about.follows_target =
        about.target.is_some() && executor.as_ref().is_some_and(ExecutorSpec::is_none);
    let by_deadline = timing.as_ref().is_some_and(|timing| timing.by_deadline);
    let (is_timed, exact, mut job) = match timing {
        Some(timing) => (true, timing.exact, timing.definition),
        None => (false, None, Definition::noop(Schedule::Once(Once::NOW))),
    };
    policy::read(fields, by_deadline, &mut job);
    if is_timed {
        policy::check_effects(fields, &job);
    }
    let enabled = fields.flag("enabled").unwrap_or(true);
    let definition = Definition { executor: executor?, payload, ..job };
    is_timed.then_some(JobSpec { about, definition, exact, enabled })
}

/// Returns the cron expression that the interval of the job has replaced, if any.
fn replaced_cron(fields: &mut Fields<'_>, timing: Option<&Timing>) -> Option<String> {
    let is_interval = matches!(timing?.definition.schedule, Schedule::Interval(_));
    let former = fields.value("schedule_time")?.as_str()?.trim();
    // An expression such as `@every 30m` is an interval itself, so no interval has replaced it.
    (is_interval && !former.to_ascii_lowercase().starts_with("@every")).then(|| former.into())
}

#[cfg(test)]
mod tests;
