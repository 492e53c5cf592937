//! Scheduled jobs: those that run by a cron expression or at an interval.

use evenkeel_core::status::Command;
use evenkeel_core::{JobId, Schedule, Timestamp};
use evenkeel_store::{
    Action, Applied, EventKind, Job, JobChange, JobCommand, JobState, Now, Scope, Signal,
};
use serde_json::{Map, Value, json};

use crate::fault::{Faults, shown};
use crate::jobs::{Edit, Forgotten};
use crate::read::Fields;
use crate::read::limits::NUMBER_MAX;
use crate::update::{placed, read_change};
use crate::{Ask, CommandError, Fault, Jobs, Made, Manner, read_job};

/// Who made a job, in its metadata.
const CREATED_BY: &str = "created_by";
/// What a scheduled job shows and only the server says.
const SAID_BY_THE_SERVER: [&str; 8] = [
    "id",
    "uuid",
    CREATED_BY,
    "last_run_at",
    "next_run_at",
    "created_at",
    "updated_at",
    "deduplicated",
];

/// A job that runs by a cron expression or at an interval.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduledJob {
    /// The job.
    pub job: Job,
    /// When it runs.
    pub cron_expression: String,
}

impl ScheduledJob {
    /// Is it one?
    pub fn is_one(job: &Job) -> bool {
        matches!(job.definition.schedule, Schedule::Cron(_) | Schedule::Interval(_))
    }

    /// The job as one, if it is.
    pub fn of(job: Job) -> Option<Self> {
        cron_words(&job.definition.schedule).map(|cron_expression| Self { job, cron_expression })
    }

    /// Does it fire?
    pub fn enabled(&self) -> bool {
        self.job.state == JobState::Active
    }

    /// Who made it, if they did it through the admin API.
    pub fn created_by(&self) -> Option<&str> {
        self.job.about.metadata.get(CREATED_BY)?.as_str()
    }
}

/// The cron expression of a schedule; an interval is `@every` so long.
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

/// What a document says besides what a job's does.
struct Said {
    target: Option<Option<i64>>,
    enabled: Option<bool>,
    /// The rest: fields of a job.
    job: Map<String, Value>,
}

impl Said {
    fn read(document: &Value) -> Result<Self, Vec<Fault>> {
        let Some(object) = document.as_object() else {
            let message = format!("{} is not an object", shown(document));
            return Err(vec![Fault::new("", message)]);
        };
        let (mut own, mut job) = (Map::new(), Map::new());
        for (name, value) in object {
            match name.as_str() {
                "subreddit_id" | "enabled" => own.insert(name.clone(), value.clone()),
                said if SAID_BY_THE_SERVER.contains(&said) => None,
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
    /// The scheduled job with this id.
    pub async fn get_scheduled(
        &self,
        scope: &Scope,
        id: JobId,
    ) -> Result<ScheduledJob, CommandError> {
        ScheduledJob::of(self.get(scope, id).await?).ok_or(CommandError::NotFound)
    }

    /// Makes the scheduled job that `document` describes, for `creator`. Its target is made if there
    /// is none with that number. Says whether one with the same key was there already, which is then
    /// left as it is; `None` if nobody wanted that looked at.
    pub async fn create_scheduled(
        &self,
        scope: &Scope,
        document: &Value,
        creator: &str,
    ) -> Result<(ScheduledJob, Option<bool>), CommandError> {
        let Said { target, enabled, mut job } =
            Said::read(document).map_err(CommandError::Invalid)?;
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
        // Whatever is wrong is said before a target is made for nothing.
        read_job(&document, scope.tenant, self.executors()).map_err(CommandError::Invalid)?;
        if let Some(Some(number)) = target {
            self.ensure_target(scope, number).await?;
        }
        let Made { job, deduplicated, .. } = self.create_or_find(scope, &document).await?;
        // One that runs once, say, keeps it out just as well, but cannot be shown as one of these.
        let id = job.id;
        let made = ScheduledJob::of(job).ok_or(CommandError::Duplicate { id })?;
        Ok((made, deduplicated))
    }

    /// Changes a scheduled job: what is left out stays. `show` is what people see of a job.
    ///
    /// What can be known to be refused is refused before anything is changed, and no target is made
    /// for it.
    pub async fn update_scheduled(
        &self,
        scope: &Scope,
        id: JobId,
        document: &Value,
        show: &(dyn Fn(&Job, Timestamp) -> Map<String, Value> + Send + Sync),
    ) -> Result<ScheduledJob, CommandError> {
        let before = self.get_scheduled(scope, id).await?;
        let Said { target, enabled, mut job } =
            Said::read(document).map_err(CommandError::Invalid)?;
        let same = Value::from(before.cron_expression.as_str());
        // Said as it is shown it is no change, though a job shows it in other words.
        if job.get("cron_expression") == Some(&same) {
            job.remove("cron_expression");
        }
        if let Some(number) = target {
            job.insert("target".into(), json!(number));
        }
        let turned = enabled.filter(|enabled| *enabled != before.enabled());
        let turn = turned.map(|enabled| if enabled { Command::Resume } else { Command::Pause });
        for command in turn.into_iter().chain((!job.is_empty()).then_some(Command::Update)) {
            before.job.facts().obey(command).map_err(CommandError::NotAllowed)?;
        }
        let edit = (!job.is_empty()).then(|| {
            let sent = Value::Object(job);
            Edit { sent, manner: Manner::Put, if_generation: None }
        });
        if let Some(Edit { sent, manner, .. }) = &edit {
            let now = self.store.now().await?;
            let seen = show(&before.job, now);
            // One that is to fire must have a time left to do so, which is not asked of one at rest.
            let mut after = before.job.clone();
            if turned == Some(true) {
                after.state = JobState::Active;
            }
            let read = read_change(&after, &seen, sent, *manner, now, self.executors())
                .map_err(CommandError::Invalid)?;
            if let Some(new) = read.and_then(|read| read.to_place) {
                placed(&after, &new, now, |after| new.timetable().first_after(after))
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
        // Last, because it cannot be taken back: a pause withdraws what waits. And it asks for the
        // key that the job has by then.
        match (self.enable(scope, id, enabled).await, edited) {
            (Err(refusal), Some(edited)) if enabled => {
                self.put_back(scope, before.job, &edited).await?;
                Err(refusal)
            }
            (turned, _) => turned,
        }
    }

    /// Makes a paused job that was `edited` what it was before, unless somebody else has changed it,
    /// too. Paused it has no next time, so there is none to give back.
    pub(crate) async fn put_back(
        &self,
        scope: &Scope,
        before: Job,
        edited: &Job,
    ) -> Result<(), CommandError> {
        let id = edited.id;
        // Every command raises it: if it is the same nothing was edited, and if it is higher there
        // is a change in between that must not be lost.
        if edited.generation != before.generation + 1 {
            return Ok(());
        }
        let (about, definition) = (Some(before.about), Some(before.definition));
        let order = JobCommand {
            id,
            if_generation: Some(edited.generation),
            if_fired: None,
            action: Action::Change(Box::new(JobChange { about, definition, next_at: None })),
        };
        let obeyed = self.store.apply_commands(scope, vec![order], Now::Database).await?;
        if let Some(Applied::Done(_)) = obeyed.first() {
            self.announce(Signal::Jobs).await;
            self.tell(scope, EventKind::JobUpdated, &[id]).await;
        }
        Ok(())
    }

    /// Lets a scheduled job fire, or not.
    pub async fn enable(
        &self,
        scope: &Scope,
        id: JobId,
        enabled: bool,
    ) -> Result<ScheduledJob, CommandError> {
        let job = self.get_scheduled(scope, id).await?;
        if job.enabled() != enabled {
            let ask = if enabled { Ask::Resume } else { Ask::Pause };
            let asked = self.ask_one(scope, id, ask, None).await;
            let now = self.get_scheduled(scope, id).await?;
            match asked {
                // Somebody else was quicker, which is as good.
                Err(CommandError::NotAllowed(_)) if now.enabled() == enabled => {}
                other => drop(other?),
            }
            return Ok(now);
        }
        Ok(job)
    }

    /// Deletes a scheduled job.
    pub async fn delete_scheduled(
        &self,
        scope: &Scope,
        id: JobId,
    ) -> Result<(Job, Forgotten), CommandError> {
        let ScheduledJob { job, .. } = self.get_scheduled(scope, id).await?;
        let gone = self.delete(scope, id, false, None).await?;
        self.announce(Signal::Jobs).await;
        Ok((job, gone))
    }
}
