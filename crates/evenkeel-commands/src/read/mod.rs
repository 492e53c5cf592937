//! From the JSON of a job to what it means. All that is wrong is said at once.

mod about;
mod bulk;
mod dedup;
mod executor;
mod expression;
mod fields;
mod hours;
mod kinds;
mod length;
pub mod limits;
mod merge;
mod misread;
mod nodes;
mod policy;
mod retry;
mod schedule;
mod shape;
mod strangers;
mod timing;
mod trigger;

use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::redact;
use evenkeel_core::{About, Definition, Schedule, TenantNo};
use serde_json::Value;

use crate::fault::{Faults, shown};
use crate::{ExecutorCheck, Fault};

pub(crate) use about::{label, url};
pub use bulk::read_bulk_command;
pub(crate) use bulk::read_filter_document;
pub(crate) use executor::{CRAWL, with_start};
pub(crate) use expression::read_cron;
pub use expression::{Said, read_schedule};
pub(crate) use fields::Fields;
pub use misread::Misread;
pub(crate) use strangers::is_set_by_the_server;
pub(crate) use timing::{Timing, read as read_timing};
pub use trigger::read_trigger;

/// What a document says about a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobSpec {
    /// What people know about it.
    pub about: About,
    /// What it does.
    pub definition: Definition,
    /// Does it run at the very times its cron expression names, or with the start of the slot that
    /// its interval is placed in? Otherwise some seconds later.
    pub exact: Option<bool>,
    /// Does it fire? Otherwise it is paused from the start.
    pub enabled: bool,
}

/// Reads the document of a new job of `tenant`.
pub fn read_job(
    document: &Value,
    tenant: TenantNo,
    executors: &dyn ExecutorCheck,
) -> Result<JobSpec, Vec<Fault>> {
    let mut faults = Faults::default();
    let Some(object) = document.as_object() else {
        faults.add("", format!("a job is an object, not {}", shown(document)));
        return Err(faults.or::<()>(None).err().unwrap_or_default());
    };
    shape::check(object, &mut faults);
    if let Some(field) = redact::redacted_in(object) {
        let message = "holds a hidden value, not a value: {\"redacted\": true} or *** is what viewers \
                       see; give the value itself, or {\"secret\": \"name\"}";
        faults.add(field, message);
        return Err(faults.or::<()>(None).err().unwrap_or_default());
    }
    let mut fields = Fields::new(object, "", faults);
    let mut about = about::read(&mut fields);
    let timing = timing::read(&mut fields);
    about.schedule_time = former_cron(&mut fields, timing.as_ref());
    let payload = executor::payload(&mut fields);
    let executor = executor::read(&mut fields, tenant, &about, &payload, executors);
    about.dedup = dedup::read(&mut fields, &about, executor.as_ref());
    about.follows_target =
        about.target.is_some() && executor.as_ref().is_some_and(ExecutorSpec::is_none);
    let by_deadline = timing.as_ref().is_some_and(|timing| timing.by_deadline);
    let policies = policy::read(&mut fields, by_deadline);
    let dont_run_on_nodes = nodes::read(&mut fields);
    if let Some(timing) = &timing {
        policy::check_effects(&mut fields, &timing.schedule, &policies);
    }
    let enabled = fields.flag("enabled").unwrap_or(true);
    let faults = fields.finish(strangers::reason);
    let spec = timing.zip(executor).map(|(timing, executor)| {
        let exact = timing.exact;
        let job = Definition { executor, payload, dont_run_on_nodes, ..policies };
        JobSpec { about, definition: timing.of(job), exact, enabled }
    });
    faults.or(spec)
}

/// The cron expression that an interval has taken the place of.
fn former_cron(fields: &mut Fields<'_>, timing: Option<&Timing>) -> Option<String> {
    let replaced = matches!(timing?.schedule, Schedule::Interval(_));
    let former = fields.value("schedule_time")?.as_str()?.trim();
    // `@every 30m` was the interval itself.
    (replaced && !former.to_ascii_lowercase().starts_with("@every")).then(|| former.into())
}

#[cfg(test)]
mod tests;
