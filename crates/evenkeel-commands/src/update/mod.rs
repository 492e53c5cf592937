//! Changes of jobs that exist, read as a difference to what they are.
//!
//! Whoever changes a job sends some fields of it, or all that was shown, edited. What equals what
//! is shown is no change. The rest is laid over the document that would make the job as it is, and
//! that is read like the document of any new job, so that both have the same rules.

mod difference;
mod overlay;
mod place;

use evenkeel_core::executor::ExecutorCatalog;
use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::redact;
use evenkeel_core::retry::RetryPolicy;
use evenkeel_core::{Definition, TenantNo, Timestamp};
use evenkeel_store::{Job, JobChange};
use serde_json::{Map, Value};

use crate::document::{document_of, executor_config, without_start};
use crate::fault::shown;
use crate::read::JobSpec;
use crate::{ExecutorCheck, Fault, read_job};

use place::Moves;
pub(crate) use place::placed;

/// How what is sent is meant.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Manner {
    /// What was shown, edited: what only the server can say is not heeded.
    Put,
    /// Changes and nothing else, as RFC 7396 has them: inside objects as well, and saying what only
    /// the server can say is a mistake.
    Patch,
}

/// What was read of a change.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Read {
    /// The change, without the next time that it needs.
    pub change: JobChange,
    /// What the job is afterwards, if it needs another next time for that: see [`placed`].
    pub to_place: Option<Definition>,
    /// Does it follow a target of which it is not known yet what it says?
    pub to_aim: bool,
    /// Is it to fire, or to be paused, other than now?
    pub enabled: Option<bool>,
}

impl Read {
    /// Nothing is changed but whether it fires.
    fn turned(enabled: bool) -> Self {
        let change = JobChange::default();
        Self { change, to_place: None, to_aim: false, enabled: Some(enabled) }
    }
}

/// What is to be changed of `job`, which is shown to people as `seen`, at `now`; `None` if nothing
/// is.
pub(crate) fn read_change(
    job: &Job,
    seen: &Map<String, Value>,
    sent: &Value,
    manner: Manner,
    now: Timestamp,
    executors: &dyn ExecutorCheck,
) -> Result<Option<Read>, Vec<Fault>> {
    let Some(sent) = sent.as_object() else {
        let message = format!("a change is an object with fields of a job, not {}", shown(sent));
        return Err(vec![Fault::new("", message)]);
    };
    // What was shown to a viewer may come back with hidden values: those are no change.
    let mut sent = sent.clone();
    let catalog = executors.catalog();
    redact::restore(&mut sent, seen, catalog.fields(&job.definition.executor.kind));
    let mut changed = difference::difference(&sent, seen, manner)?;
    let enabled = changed.remove("enabled").map(read_enabled).transpose()?;
    if changed.is_empty() {
        return Ok(enabled.map(Read::turned));
    }
    let mut document = overlay::overlay(base_of(job, &changed, catalog), &changed, seen)?;
    if job.about.is_follower() && !document.contains_key("url") {
        // Shown, it has the start that the target said.
        let config = document.remove("executor_config").unwrap_or_default();
        let start = catalog.for_urls().map(|(_, start)| start);
        let config = without_start(config, start, job.about.url.as_deref());
        if !config.is_null() {
            document.insert("executor_config".into(), config);
        }
    }
    let as_before = AsBefore { job, executors };
    let mut spec = read_job(&Value::Object(document), job.tenant, &as_before)?;
    let to_aim = spec.about.is_follower() && !follows_on(job, &mut spec, catalog);
    let about = spec.about.clone();
    let definition = redefined(job, spec, &changed, now);
    let moves = place::moves(job, &definition);
    let to_place = (moves == Moves::Now).then(|| definition.clone());
    let about = (about != job.about).then_some(about);
    let definition = (definition != job.definition).then_some(definition);
    if about.is_none() && definition.is_none() {
        return Ok(enabled.map(Read::turned));
    }
    let next_at = (moves == Moves::WhenResumed).then_some(None);
    let change = JobChange { about, definition, next_at };
    Ok(Some(Read { change, to_place, to_aim, enabled }))
}

/// Taken away, it is what it is by default.
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

/// The document that would make the job as it is. One that is taken from its target keeps what it
/// has from that, as its own, if that is anything.
fn base_of(
    job: &Job,
    changed: &Map<String, Value>,
    catalog: ExecutorCatalog,
) -> Map<String, Value> {
    let is_left = changed.get("target").is_some_and(Value::is_null);
    let mut about = job.about.clone();
    about.follows_target &= !is_left || job.definition.executor.is_none();
    document_of(&about, &job.definition, catalog)
}

/// A job that follows the same target as before, in the same way, has from it what it had. Says
/// whether this is one.
fn follows_on(job: &Job, spec: &mut JobSpec, catalog: ExecutorCatalog) -> bool {
    let (old, new) = (&job.definition, &mut spec.definition);
    let follows_on = job.about.is_follower()
        && spec.about.target == job.about.target
        && new.executor.config == executor_config(&job.about, old, catalog)
        && new.payload == old.payload;
    if follows_on {
        spec.about.url.clone_from(&job.about.url);
        new.executor.clone_from(&old.executor);
    }
    follows_on
}

/// What was read, but that what was not spoken of stays as it is, also where no document could have
/// said it.
fn redefined(job: &Job, spec: JobSpec, changed: &Map<String, Value>, now: Timestamp) -> Definition {
    let speaks_of = |fields: &[&str]| fields.iter().any(|field| changed.contains_key(*field));
    let JobSpec { definition: new, exact, .. } = spec;
    let old = &job.definition;
    let schedule = if speaks_of(&overlay::SCHEDULE_FIELDS) || speaks_of(&["exact"]) {
        new.schedule.settled(job.id, now, exact)
    } else {
        old.schedule.clone()
    };
    let retry = retried(&old.retry, new.retry.clone(), &speaks_of);
    Definition { schedule, retry, ..new }
}

/// When a failed run is tried again, from what was and what was read.
fn retried(
    old: &RetryPolicy,
    new: RetryPolicy,
    speaks_of: &impl Fn(&[&str]) -> bool,
) -> RetryPolicy {
    const BACKOFF: [&str; 4] =
        ["retry_backoff", "retry_backoff_seconds", "retry_backoff_cap_seconds", "retry_stages"];
    if speaks_of(&["retry_policy"]) {
        return new;
    }
    let jitter = speaks_of(&["retry_jitter", "retry_jitter_percent"]);
    RetryPolicy {
        max_retries: if speaks_of(&["max_retries"]) { new.max_retries } else { old.max_retries },
        backoff: if speaks_of(&BACKOFF) { new.backoff } else { old.backoff.clone() },
        jitter: if jitter { new.jitter } else { old.jitter },
    }
}

/// An executor that a job has is not checked again as long as nothing about it changes: a server
/// that has it no more must not keep anybody from changing the rest.
struct AsBefore<'a> {
    job: &'a Job,
    executors: &'a dyn ExecutorCheck,
}

impl ExecutorCheck for AsBefore<'_> {
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
        // One that has none has it for the target's sake, or has lost its target already.
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
