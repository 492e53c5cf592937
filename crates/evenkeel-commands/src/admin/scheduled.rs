//! Scheduled jobs of the admin API: jobs with a cron expression or an interval.

use evenkeel_core::status::Command;
use evenkeel_core::{JobId, Schedule, Timestamp};
use evenkeel_store::{Applied, EventKind, Job, JobChange, JobState, Now, Scope, Signal};
use serde_json::{Value, json};

use crate::fault::{Faults, shown};
use crate::jobs::{DeletedJob, Edit, change_command};
use crate::read::Fields;
use crate::read::limits::NUMBER_MAX;
use crate::update::{new_next_time, read_change};
use crate::{CommandError, ControlCommand, CreatedJob, EditMode, Fault, Jobs, Object, Result};

/// Metadata key under which the creator of a job is stored.
const CREATED_BY: &str = "created_by";
/// Fields that responses contain but clients cannot set.
const SET_BY_THE_SERVER: [&str; 8] = [
    "id", "uuid", CREATED_BY, "last_run_at", "next_run_at", "created_at", "updated_at",
    "deduplicated",
];

#[derive(Clone, PartialEq, Debug)]
pub struct ScheduledJob {
    pub job: Job,
    pub cron_expression: String,
}

impl ScheduledJob {
    pub fn is_one(job: &Job) -> bool {
        matches!(job.definition.schedule, Schedule::Cron(_) | Schedule::Interval(_))
    }

    /// Returns the job as a scheduled job, or `None` if its schedule is neither a cron expression
    /// nor an interval.
    pub fn of(job: Job) -> Option<Self> {
        cron_words(&job.definition.schedule).map(|cron_expression| Self { job, cron_expression })
    }

    pub fn enabled(&self) -> bool {
        self.job.state == JobState::Active
    }

    /// Returns the creator if the job was created through the admin API.
    pub fn created_by(&self) -> Option<&str> {
        self.job.about.metadata.get(CREATED_BY)?.as_str()
    }
}

/// Returns the cron expression of a schedule, or `@every` and the interval.
pub fn cron_words(schedule: &Schedule) -> Option<String> {
    match schedule {
        Schedule::Cron(by) => Some(by.cron.expression().into()),
        Schedule::Interval(interval) => {
            let every = interval.every().to_string().replace(' ', "");
            Some(format!("@every {every}"))
        }
        Schedule::Periodic(_) | Schedule::Calendar(_) | Schedule::Once(_) => None,
    }
}

/// A JSON document, split into the fields of the admin API and the other job fields.
struct ScheduledDocument {
    target: Option<Option<i64>>,
    enabled: Option<bool>,
    job: Object,
}

impl ScheduledDocument {
    fn read(document: &Value) -> Result<Self, Vec<Fault>> {
        let Some(object) = document.as_object() else {
            let message = format!("{} is not an object", shown(document));
            return Err(vec![Fault::new("", message)]);
        };
        let (mut own, mut job) = (Object::new(), Object::new());
        for (name, value) in object {
            match name.as_str() {
                "subreddit_id" | "enabled" => own.insert(name.clone(), value.clone()),
                name if SET_BY_THE_SERVER.contains(&name) => None,
                _ => job.insert(name.clone(), value.clone()),
            };
        }
        let mut fields = Fields::new(&own, "", Faults::default());
        let target = fields.number("subreddit_id", 1..=NUMBER_MAX);
        let target = target.and_then(|number| i64::try_from(number).ok());
        let enabled = fields.flag("enabled");
        if own.contains_key("subreddit_id") && job.contains_key("target") {
            fields.fault("target", "is the same as subreddit_id; leave one of them out");
        }
        let target = own.contains_key("subreddit_id").then_some(target);
        fields.finish(|_| None).or(Some(Self { target, enabled, job }))
    }
}

impl Jobs {
    pub async fn get_scheduled(&self, scope: &Scope, id: JobId) -> Result<ScheduledJob> {
        ScheduledJob::of(self.get(scope, id).await?).ok_or(CommandError::NotFound)
    }

    /// Creates the scheduled job that `document` describes, with `creator` as its creator. Also
    /// creates the target of the job if this target does not exist. The returned flag is true if a
    /// job with the same deduplication key already existed and was left unchanged, and `None` if
    /// the document has no deduplication key.
    pub async fn create_scheduled(
        &self,
        scope: &Scope,
        document: &Value,
        creator: &str,
    ) -> Result<(ScheduledJob, Option<bool>)> {
        let ScheduledDocument { target, enabled, mut job } =
            ScheduledDocument::read(document).map_err(CommandError::Invalid)?;
        let mut missing = Vec::new();
        for (name, example) in [("name", "\"daily-askreddit\""), ("cron_expression", "\"@daily\"")]
        {
            if job.get(name).is_none_or(Value::is_null) {
                missing.push(Fault::new(name, format!("is missing; write {example}")));
            }
        }
        if !missing.is_empty() {
            return Err(CommandError::Invalid(missing));
        }
        if let Some(Some(number)) = target {
            job.insert("target".into(), number.into());
        }
        if !creator.is_empty() {
            let metadata = job.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.entry(CREATED_BY).or_insert_with(|| creator.into());
            }
        }
        if let Some(enabled) = enabled {
            job.insert("enabled".into(), enabled.into());
        }
        let document = Value::Object(job);
        // The job document is checked before the target is created, so that an invalid document
        // creates no target.
        self.read(scope, &document).map_err(CommandError::Invalid)?;
        if let Some(Some(number)) = target {
            self.ensure_target(scope, number).await?;
        }
        let CreatedJob { job, deduplicated, .. } = self.create_or_find(scope, &document).await?;
        // An existing job with the same deduplication key may be a one-time job, which cannot be
        // shown as a scheduled job.
        let id = job.id;
        let made = ScheduledJob::of(job).ok_or(CommandError::Duplicate { id })?;
        Ok((made, deduplicated))
    }

    /// Changes the given fields of a scheduled job. `show` builds the JSON object in which the
    /// client saw the job; only fields that differ from this object count as changes.
    ///
    /// The change is checked as far as possible before a missing target is created, so that a
    /// refused change creates no target.
    pub async fn update_scheduled(
        &self,
        scope: &Scope,
        id: JobId,
        document: &Value,
        show: &(dyn Fn(&Job, Timestamp) -> Object + Send + Sync),
    ) -> Result<ScheduledJob> {
        let before = self.get_scheduled(scope, id).await?;
        let ScheduledDocument { target, enabled, mut job } =
            ScheduledDocument::read(document).map_err(CommandError::Invalid)?;
        let same = Value::from(before.cron_expression.as_str());
        // A cron expression that the client sends back unchanged is not a change, even if the job
        // stores the schedule in another form.
        if job.get("cron_expression") == Some(&same) {
            job.remove("cron_expression");
        }
        if let Some(number) = target {
            job.insert("target".into(), json!(number));
        }
        let turned = enabled.filter(|enabled| *enabled != before.enabled());
        let turn = turned.map(|enabled| if enabled { Command::Resume } else { Command::Pause });
        for command in turn.into_iter().chain((!job.is_empty()).then_some(Command::Update)) {
            before.job.facts().apply(command)?;
        }
        let edit = (!job.is_empty()).then(|| {
            let sent = Value::Object(job);
            Edit { sent, mode: EditMode::Put, if_generation: None }
        });
        if let Some(Edit { sent, mode, .. }) = &edit {
            let now = self.store.now().await?;
            let seen = show(&before.job, now);
            // A job can be resumed only if its schedule has a run left.
            let mut after = before.job.clone();
            if turned == Some(true) {
                after.state = JobState::Active;
            }
            let read = read_change(&after, &seen, sent, *mode, now, self.executors())
                .map_err(CommandError::Invalid)?;
            if let Some(new) = read.and_then(|read| read.to_place) {
                new_next_time(&after, &new, now, |after| new.timetable().first_after(after))
                    .map_err(CommandError::Invalid)?;
            }
        }
        let new_target = target.flatten().filter(|number| before.job.about.target != Some(*number));
        if let Some(number) = new_target {
            self.ensure_target(scope, number).await?;
        }
        let mut edited = None;
        if let Some(edit) = &edit {
            edited = Some(self.update(scope, id, edit, show).await?.0);
        }
        let Some(enabled) = turned else { return self.get_scheduled(scope, id).await };
        // The job is paused or resumed after all other changes. A pause withdraws waiting runs,
        // which cannot be undone. A resume checks the deduplication key that the job has after the
        // edit.
        match (self.enable(scope, id, enabled).await, edited) {
            (Err(refusal), Some(edited)) if enabled => {
                self.restore(scope, before.job, &edited).await?;
                Err(refusal)
            }
            (turned, _) => turned,
        }
    }

    /// Reverts the edit of a paused job to its state `before` the edit, unless another command has
    /// changed the job since the edit. A paused job has no next run time that would have to be
    /// restored.
    pub(crate) async fn restore(&self, scope: &Scope, before: Job, edited: &Job) -> Result<()> {
        let id = edited.id;
        // Every command increases the generation of a job. If the generation of the job has not
        // increased, the edit changed nothing. If the generation has increased by two or more,
        // reverting the edit would lose the change of another client.
        if edited.generation != before.generation + 1 {
            return Ok(());
        }
        let (about, definition) = (Some(before.about), Some(before.definition));
        let command = change_command(edited, JobChange { about, definition, next_at: None });
        let applied = self.store.apply_commands(scope, vec![command], Now::Database).await?;
        if let Some(Applied::Done(_)) = applied.first() {
            self.announce(Signal::Jobs).await;
            self.publish(scope, EventKind::JobUpdated, &[id]).await;
        }
        Ok(())
    }

    /// Pauses or resumes a scheduled job. Does nothing if the job is already paused or already
    /// active.
    pub async fn enable(&self, scope: &Scope, id: JobId, enabled: bool) -> Result<ScheduledJob> {
        let job = self.get_scheduled(scope, id).await?;
        if job.enabled() != enabled {
            let command = if enabled { ControlCommand::Resume } else { ControlCommand::Pause };
            let result = self.control(scope, id, command, None).await;
            let now = self.get_scheduled(scope, id).await?;
            match result {
                // The command is refused because another client has already paused or resumed the
                // job.
                Err(CommandError::NotAllowed(_)) if now.enabled() == enabled => {}
                other => drop(other?),
            }
            return Ok(now);
        }
        Ok(job)
    }

    pub async fn delete_scheduled(&self, scope: &Scope, id: JobId) -> Result<(Job, DeletedJob)> {
        let ScheduledJob { job, .. } = self.get_scheduled(scope, id).await?;
        let deleted = self.delete(scope, id, false, None).await?;
        self.announce(Signal::Jobs).await;
        Ok((job, deleted))
    }
}
