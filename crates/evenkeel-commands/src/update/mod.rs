//! Parses a change of a job: compares the sent fields with the job that the client saw.
//!
//! A client sends some fields of a job, or the whole job with edits. Fields whose values equal
//! those that the client saw do not count as changes. Changed fields replace those in the JSON
//! document of the present job. The changed document is parsed like the document of a new job, so
//! changed jobs follow the same rules as new jobs.

mod difference;
mod next_time;
mod overlay;

use evenkeel_core::executor::ExecutorCatalog;
use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::redact;
use evenkeel_core::retry::RetryPolicy;
use evenkeel_core::{Definition, TenantNo, Timestamp};
use evenkeel_store::{Job, JobChange};
use serde_json::Value;

use crate::document::{document_of, executor_config, without_start};
use crate::fault::{object_of, shown};
use crate::read::JobSpec;
use crate::{ExecutorCheck, Fault, Object, read_job};

use next_time::NextTimeChange;
pub(crate) use next_time::{new_next_time, schedule_state};

/// How the server interprets the fields of a change.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum EditMode {
    /// The client sends the whole job with edits; fields that only the server sets are ignored.
    Put,
    /// The client sends a JSON merge patch (RFC 7396), which also applies inside objects; fields
    /// that only the server sets are refused.
    Patch,
}

/// A parsed change of a job.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct JobEdit {
    /// The change for the store, without a newly chosen next run time.
    pub change: JobChange,
    /// The new definition of the job, if the job needs a new next run time; see [`new_next_time`].
    pub to_place: Option<Definition>,
    /// True if the changed job must get its URL and its executor from its target.
    pub applies_target: bool,
    /// True resumes the job, false pauses it, and `None` does neither.
    pub enabled: Option<bool>,
}

impl JobEdit {
    /// Creates an edit that only pauses or resumes the job.
    fn of_enabled(enabled: bool) -> Self {
        let change = JobChange::default();
        Self { change, to_place: None, applies_target: false, enabled: Some(enabled) }
    }
}

/// Parses a change of `job` at the time `now`; the client saw the job as `seen`. Returns `None` if
/// nothing changes.
pub(crate) fn read_change(
    job: &Job,
    seen: &Object,
    sent: &Value,
    mode: EditMode,
    now: Timestamp,
    executors: &dyn ExecutorCheck,
) -> Result<Option<JobEdit>, Vec<Fault>> {
    // Redacted values that a client sends back do not count as changes.
    let mut sent = object_of(sent, "a change is an object with fields of a job")?.clone();
    let catalog = executors.catalog();
    redact::restore(&mut sent, seen, catalog.fields(&job.definition.executor.kind));
    let mut changed = difference::difference(&sent, seen, mode)?;
    let enabled = changed.remove("enabled").map(read_enabled).transpose()?;
    if changed.is_empty() {
        return Ok(enabled.map(JobEdit::of_enabled));
    }
    let mut document = overlay::overlay(present_document(job, &changed, catalog), &changed, seen)?;
    if job.about.is_follower() && !document.contains_key("url") {
        // The client saw the job with the start URL of its target, so this start URL is removed
        // from the document.
        let config = document.remove("executor_config").unwrap_or_default();
        let start = catalog.for_urls().map(|(_, start)| start);
        let config = without_start(config, start, job.about.url.as_deref());
        if !config.is_null() {
            document.insert("executor_config".into(), config);
        }
    }
    let unchanged = UnchangedExecutor { job, executors };
    let mut spec = read_job(&Value::Object(document), job.tenant, &unchanged)?;
    let applies_target = spec.about.is_follower() && !keeps_target_values(job, &mut spec, catalog);
    let about = spec.about.clone();
    let definition = new_definition(job, spec, &changed, now);
    let next_time_change = next_time::next_time_change(job, &definition);
    let to_place = (next_time_change == NextTimeChange::Now).then(|| definition.clone());
    let about = (about != job.about).then_some(about);
    let definition = (definition != job.definition).then_some(definition);
    if about.is_none() && definition.is_none() {
        return Ok(enabled.map(JobEdit::of_enabled));
    }
    let next_at = (next_time_change == NextTimeChange::WhenResumed).then_some(None);
    let change = JobChange { about, definition, next_at };
    Ok(Some(JobEdit { change, to_place, applies_target, enabled }))
}

/// Reads `enabled`; null means the default, which is true.
fn read_enabled(sent: Value) -> Result<bool, Vec<Fault>> {
    match sent {
        Value::Bool(enabled) => Ok(enabled),
        Value::Null => Ok(true),
        other => {
            let message = format!("must be true or false, not {}", shown(&other));
            Err(vec![Fault::new("enabled", message)])
        }
    }
}

/// Returns the JSON document of the present job. A job that loses its target keeps the URL and the
/// executor from that target.
fn present_document(job: &Job, changed: &Object, catalog: ExecutorCatalog) -> Object {
    let loses_target = changed.get("target").is_some_and(Value::is_null);
    let mut about = job.about.clone();
    about.follows_target &= !loses_target || job.definition.executor.is_none();
    document_of(&about, &job.definition, catalog)
}

/// Keeps the URL and the executor that a job has from its target, if the change affects neither.
/// Returns true if the URL and the executor were kept.
fn keeps_target_values(job: &Job, spec: &mut JobSpec, catalog: ExecutorCatalog) -> bool {
    let (old, new) = (&job.definition, &mut spec.definition);
    let keeps_target_values = job.about.is_follower()
        && spec.about.target == job.about.target
        && new.executor.config == executor_config(&job.about, old, catalog)
        && new.payload == old.payload;
    if keeps_target_values {
        spec.about.url.clone_from(&job.about.url);
        new.executor.clone_from(&old.executor);
    }
    keeps_target_values
}

/// Returns the definition of the job after the change. Job fields that the change does not mention
/// keep their values, even values that no JSON document could express.
fn new_definition(job: &Job, spec: JobSpec, changed: &Object, now: Timestamp) -> Definition {
    let mentions = |fields: &[&str]| fields.iter().any(|field| changed.contains_key(*field));
    let JobSpec { definition: new, exact, .. } = spec;
    let old = &job.definition;
    let schedule = if mentions(&overlay::SCHEDULE_FIELDS) || mentions(&["exact"]) {
        new.schedule.resolved(job.id, now, exact)
    } else {
        old.schedule.clone()
    };
    let retry = new_retry(&old.retry, new.retry.clone(), &mentions);
    Definition { schedule, retry, ..new }
}

/// Returns the old retry policy with the changed fields of the new retry policy.
fn new_retry(
    old: &RetryPolicy,
    new: RetryPolicy,
    mentions: &impl Fn(&[&str]) -> bool,
) -> RetryPolicy {
    const BACKOFF: [&str; 4] =
        ["retry_backoff", "retry_backoff_seconds", "retry_backoff_cap_seconds", "retry_stages"];
    if mentions(&["retry_policy"]) {
        return new;
    }
    let jitter = mentions(&["retry_jitter", "retry_jitter_percent"]);
    RetryPolicy {
        max_retries: if mentions(&["max_retries"]) { new.max_retries } else { old.max_retries },
        backoff: if mentions(&BACKOFF) { new.backoff } else { old.backoff.clone() },
        jitter: if jitter { new.jitter } else { old.jitter },
    }
}

/// An executor check that accepts the unchanged executor of a job. The other fields of a job whose
/// executor was disabled can therefore still be changed.
struct UnchangedExecutor<'a> {
    job: &'a Job,
    executors: &'a dyn ExecutorCheck,
}

impl ExecutorCheck for UnchangedExecutor<'_> {
    fn check(
        &self,
        tenant: TenantNo,
        kind: &str,
        config: &Value,
        payload: &Value,
    ) -> Result<(), (String, String)> {
        let old = &self.job.definition;
        let is_same =
            old.executor.kind == kind && old.executor.config == *config && old.payload == *payload;
        if is_same { Ok(()) } else { self.executors.check(tenant, kind, config, payload) }
    }

    fn kinds(&self) -> Vec<String> {
        let mut kinds = self.executors.kinds();
        let kind = &self.job.definition.executor.kind;
        // The executor `none` is accepted only if the job already has it and has lost its target.
        let is_kept = *kind != ExecutorSpec::NONE || self.job.about.target.is_none();
        if is_kept && !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
        kinds
    }

    fn catalog(&self) -> ExecutorCatalog {
        self.executors.catalog()
    }
}

#[cfg(test)]
mod tests;
