//! Scheduled jobs: those that run by a cron expression or at an interval.

use evenkeel_core::{JobId, Schedule, Timestamp};
use evenkeel_store::{EventKind, Job, Now, Registered, Scope, Signal, Standing};
use serde_json::{Map, Value, json};

use crate::fault::{Faults, shown};
use crate::jobs::{Edit, Forgotten, settled};
use crate::read::Fields;
use crate::read::limits::NUMBER_MAX;
use crate::{Ask, CommandError, Fault, Jobs, Manner, read_job};

/// Who made a job, in its metadata.
const CREATED_BY: &str = "created_by";
/// What a scheduled job shows and only the server says.
const SAID_BY_THE_SERVER: [&str; 7] =
    ["id", "uuid", CREATED_BY, "last_run_at", "next_run_at", "created_at", "updated_at"];

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
        self.job.standing == Standing::Active
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
    /// is none with that number.
    pub async fn create_scheduled(
        &self,
        scope: &Scope,
        document: &Value,
        creator: &str,
    ) -> Result<ScheduledJob, CommandError> {
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
        let document = Value::Object(job);
        // Whatever is wrong is said before a target is made for nothing.
        read_job(&document, scope.tenant, self.executors()).map_err(CommandError::Invalid)?;
        if let Some(Some(number)) = target {
            self.ensure_target(scope, number).await?;
        }
        let job = if enabled == Some(false) {
            self.create_disabled(scope, &document).await?
        } else {
            self.create(scope, &document).await?
        };
        ScheduledJob::of(job).ok_or(CommandError::NotFound)
    }

    /// Makes a job that is paused from the start: without a next time it cannot fire before it is.
    async fn create_disabled(&self, scope: &Scope, document: &Value) -> Result<Job, CommandError> {
        let mut spec =
            read_job(document, scope.tenant, self.executors()).map_err(CommandError::Invalid)?;
        let targets = self.targets_of(scope, [&spec.about]).await?;
        self.aim(scope, &mut spec.about, &mut spec.definition, &targets)?;
        let now = self.store.now().await?;
        let id = self.fresh_id(now);
        let mut new = settled(spec, id, now, |job, after| job.timetable().first_after(after))?;
        new.next_at = None;
        match self.store.register(scope, vec![new], Now::At(now)).await?.pop() {
            Some(Registered::NameTaken(id)) => return Err(CommandError::NameTaken { id }),
            Some(Registered::Duplicate(id)) => return Err(CommandError::Duplicate { id }),
            Some(Registered::Created { .. }) | None => {}
        }
        self.tell(scope, EventKind::JobCreated, &[id]).await;
        let paused = self.ask_one(scope, id, Ask::Pause, None).await?;
        paused.job.ok_or(CommandError::NotFound)
    }

    /// Changes a scheduled job: what is left out stays. `show` is what people see of a job.
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
            if let Some(number) = number.filter(|number| before.job.about.target != Some(*number)) {
                self.ensure_target(scope, number).await?;
            }
            job.insert("target".into(), json!(number));
        }
        if !job.is_empty() {
            let sent = Value::Object(job);
            let edit = Edit { sent, manner: Manner::Put, if_generation: None };
            self.update(scope, id, &edit, show).await?;
        }
        match enabled {
            Some(enabled) => self.enable(scope, id, enabled).await,
            None => self.get_scheduled(scope, id).await,
        }
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
