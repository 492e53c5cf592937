//! From the JSON of a job to what it means. All that is wrong is said at once.

mod about;
mod executor;
mod expression;
mod fields;
pub mod limits;
mod policy;
mod schedule;
mod shape;
mod strangers;

use evenkeel_core::job::Bounds;
use evenkeel_core::{About, Definition, TenantNo};
use serde_json::Value;

use crate::fault::{Faults, shown};
use crate::{ExecutorCheck, Fault};
use fields::Fields;

pub use expression::read_schedule;
pub(crate) use schedule::zone;

/// What a document says about a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobSpec {
    /// What people know about it.
    pub about: About,
    /// What it does.
    pub definition: Definition,
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
    let mut fields = Fields::new(object, "", faults);
    let about = about::read(&mut fields);
    let schedule = schedule::read(&mut fields);
    let timezone = schedule::timezone(&mut fields);
    let payload = executor::payload(&mut fields);
    let executor = executor::read(&mut fields, tenant, about.url.as_deref(), &payload, executors);
    let policies = policy::read(&mut fields);
    let faults = fields.finish(strangers::reason);
    let spec = schedule.zip(executor).map(|(schedule, executor)| JobSpec {
        about,
        definition: Definition {
            schedule,
            bounds: Bounds::default(),
            timezone,
            executor,
            payload,
            ..policies
        },
    });
    faults.or(spec)
}

#[cfg(test)]
mod tests;
