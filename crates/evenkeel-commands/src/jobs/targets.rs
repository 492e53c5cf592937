//! Targets: what jobs are about. A job that names one and has no executor of its own crawls its
//! address, and follows it when that changes.

use std::collections::{BTreeSet, HashMap};

use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::{About, Definition, JobId, Timestamp};
use evenkeel_store::{
    ChangedTarget, DeletedTarget, Job, JobChange, MadeTarget, NewTarget, Now, ORDERS_MAX, Page,
    PageRequest, Scope, StoreError, Target, TargetFields,
};
use serde_json::{Map, Value, json};

use super::{Edit, Jobs};
use crate::fault::{Faults, shown};
use crate::read::limits::NUMBER_MAX;
use crate::read::{CRAWL, Fields, label, url, with_start};
use crate::{CommandError, Fault, Manner, document_of};

/// So often a change is made anew because somebody else changed the target meanwhile.
const TRIES: usize = 8;
/// Jobs that are told of another address in one go.
const FOLLOWERS: u32 = 100;

impl Jobs {
    /// Makes the target that `document` describes.
    pub async fn create_target(
        &self,
        scope: &Scope,
        document: &Value,
    ) -> Result<Target, CommandError> {
        let new = read_new(document).map_err(CommandError::InvalidTarget)?;
        let wanted = new.number;
        match self.store.make_target(scope, new, Now::Database).await? {
            MadeTarget::Created(target) => Ok(target),
            MadeTarget::Exists(target) => {
                let field = if wanted == Some(target.number) { "number" } else { "source_id" };
                Err(CommandError::TargetTaken { number: target.number, field })
            }
        }
    }

    /// The target with this number, which is made if there is none.
    pub async fn ensure_target(&self, scope: &Scope, number: i64) -> Result<Target, CommandError> {
        if !(1..=NUMBER_MAX.cast_signed()).contains(&number) {
            let message = format!("{number} is not a whole number from 1 to {NUMBER_MAX}");
            return Err(CommandError::InvalidTarget(vec![Fault::new("number", message)]));
        }
        if let Some(target) = self.find_target(scope, number).await? {
            return Ok(target);
        }
        let new = NewTarget { number: Some(number), fields: TargetFields::default() };
        match self.store.make_target(scope, new, Now::Database).await? {
            MadeTarget::Created(target) | MadeTarget::Exists(target) => Ok(target),
        }
    }

    /// One target.
    pub async fn get_target(&self, scope: &Scope, number: i64) -> Result<Target, CommandError> {
        self.find_target(scope, number).await?.ok_or(CommandError::NoTarget)
    }

    /// A part of all targets, by number.
    pub async fn list_targets(
        &self,
        scope: &Scope,
        page: PageRequest<i64>,
    ) -> Result<Page<Target, i64>, CommandError> {
        Ok(self.store.list_targets(scope, page).await?)
    }

    /// Changes a target: what is left out of `sent` stays, null takes away. Jobs that crawl its
    /// address because they name it crawl the new one from then on; without any, their runs fail.
    pub async fn update_target(
        &self,
        scope: &Scope,
        number: i64,
        sent: &Value,
        if_generation: Option<&[i32]>,
    ) -> Result<Target, CommandError> {
        for _ in 0..TRIES {
            let before = self.get_target(scope, number).await?;
            if if_generation.is_some_and(|wanted| !wanted.contains(&before.generation)) {
                return Err(CommandError::TargetStale { generation: before.generation });
            }
            let fields = read_change(&before, sent).map_err(CommandError::InvalidTarget)?;
            if fields == before.fields {
                return Ok(before);
            }
            let expected = Some(before.generation);
            let changed = self.store.change_target(scope, number, expected, fields, Now::Database);
            match changed.await? {
                ChangedTarget::Done(target) => {
                    self.lead_followers(scope, &before, &target).await?;
                    return Ok(target);
                }
                ChangedTarget::NotFound => return Err(CommandError::NoTarget),
                ChangedTarget::SourceTaken(number) => {
                    return Err(CommandError::TargetTaken { number, field: "source_id" });
                }
                // Read anew: what was asked for may fit what it is now.
                ChangedTarget::Stale(_) => {}
            }
        }
        let generation = self.get_target(scope, number).await?.generation;
        Err(CommandError::TargetStale { generation })
    }

    /// Deletes a target; with `force` even if jobs name it, which then name none. Says how many did.
    pub async fn delete_target(
        &self,
        scope: &Scope,
        number: i64,
        force: bool,
    ) -> Result<u64, CommandError> {
        match self.store.delete_target(scope, number, force).await? {
            DeletedTarget::Done { detached } => Ok(detached),
            DeletedTarget::NotFound => Err(CommandError::NoTarget),
            DeletedTarget::InUse(jobs) => Err(CommandError::TargetInUse { jobs }),
        }
    }

    async fn find_target(&self, scope: &Scope, number: i64) -> Result<Option<Target>, StoreError> {
        Ok(self.store.get_targets(scope, &[number]).await?.pop().flatten())
    }

    /// Those targets that these jobs name.
    pub(crate) async fn targets_of<'a>(
        &self,
        scope: &Scope,
        abouts: impl IntoIterator<Item = &'a About>,
    ) -> Result<HashMap<i64, Target>, StoreError> {
        let numbers: BTreeSet<i64> = abouts.into_iter().filter_map(|about| about.target).collect();
        let numbers: Vec<i64> = numbers.into_iter().collect();
        let mut found = HashMap::new();
        for some in numbers.chunks(ORDERS_MAX) {
            let targets = self.store.get_targets(scope, some).await?;
            found.extend(targets.into_iter().flatten().map(|target| (target.number, target)));
        }
        Ok(found)
    }

    /// Lets a job that has no executor of its own crawl the address of its target.
    pub(crate) fn aim(
        &self,
        scope: &Scope,
        about: &mut About,
        definition: &mut Definition,
        targets: &HashMap<i64, Target>,
    ) -> Result<(), CommandError> {
        let Some(number) = about.target else { return Ok(()) };
        let of = |field: &str, message: String| {
            Err(CommandError::Invalid(vec![Fault::new(field, message)]))
        };
        let Some(target) = targets.get(&number) else {
            let message = format!("there is no target {number}; POST /api/v1/targets makes one");
            return of("target", message);
        };
        let Some(url) = target.fields.url.as_ref().filter(|_| definition.executor.is_none()) else {
            return Ok(());
        };
        let config = with_start(definition.executor.config.clone(), Some(url));
        let checked = self.executors.check(scope.tenant, CRAWL, &config, &definition.payload);
        if let Err((field, message)) = checked {
            return of(&field, message);
        }
        definition.executor = ExecutorSpec { kind: CRAWL.into(), config };
        about.url = Some(url.clone());
        Ok(())
    }

    /// The same for a job that is changed.
    pub(super) async fn aim_change(
        &self,
        scope: &Scope,
        job: &Job,
        change: &mut JobChange,
    ) -> Result<(), CommandError> {
        let about = change.about.as_ref().unwrap_or(&job.about);
        // What is named already need not be there any more.
        if about.target.is_none() || about.target == job.about.target {
            return Ok(());
        }
        let targets = self.targets_of(scope, [about]).await?;
        let mut about = about.clone();
        let mut definition = change.definition.clone().unwrap_or_else(|| job.definition.clone());
        self.aim(scope, &mut about, &mut definition, &targets)?;
        change.definition = (definition != job.definition).then_some(definition);
        change.about = Some(about);
        Ok(())
    }

    /// Tells the jobs that follow a target of its new address.
    async fn lead_followers(
        &self,
        scope: &Scope,
        before: &Target,
        target: &Target,
    ) -> Result<(), CommandError> {
        let (old, new) = (&before.fields.url, &target.fields.url);
        if old == new {
            return Ok(());
        }
        let mut after = None;
        loop {
            let some = self.store.jobs_of_target(scope, target.number, after, FOLLOWERS).await?;
            let Some((last, _)) = some.last() else { return Ok(()) };
            after = Some(*last);
            let ids: Vec<JobId> = some.iter().map(|(_, id)| *id).collect();
            for job in self.store.get_jobs(scope, &ids).await? {
                let follows = job.definition.executor.is_none()
                    || job.definition.executor.kind == CRAWL && job.about.url == *old;
                if follows {
                    self.lead(scope, job.id, new.as_deref()).await?;
                }
            }
        }
    }

    async fn lead(&self, scope: &Scope, id: JobId, url: Option<&str>) -> Result<(), CommandError> {
        let sent = match url {
            Some(url) => json!({"url": url}),
            None => json!({"url": null, "executor_type": ExecutorSpec::NONE}),
        };
        let edit = Edit { sent, manner: Manner::Patch, if_generation: None };
        let show = |job: &Job, _: Timestamp| -> Map<String, Value> {
            document_of(&job.about, &job.definition)
        };
        match self.update(scope, id, &edit, &show).await {
            Ok(_) => Ok(()),
            // One that is gone or over needs no address; one that does not take this one keeps its
            // own.
            Err(
                CommandError::NotFound
                | CommandError::NotAllowed(_)
                | CommandError::Duplicate { .. }
                | CommandError::Invalid(_),
            ) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn read_new(document: &Value) -> Result<NewTarget, Vec<Fault>> {
    read(document, |fields| {
        let number = fields.number("number", 1..=NUMBER_MAX).map(u64::cast_signed);
        NewTarget { number, fields: said(fields) }
    })
}

/// What a target is to be, if `sent` is laid over it.
fn read_change(before: &Target, sent: &Value) -> Result<TargetFields, Vec<Fault>> {
    let mut whole = Map::new();
    let TargetFields { source_id, name, url } = &before.fields;
    for (field, value) in [("source_id", source_id), ("name", name), ("url", url)] {
        whole.insert(field.into(), json!(value));
    }
    if let Some(sent) = sent.as_object() {
        // As it was shown, the server's own fields are there; they change nothing.
        let shown = ["number", "generation", "jobs", "last_success_at", "created_at", "updated_at"];
        let own = sent.iter().filter(|(field, _)| !shown.contains(&field.as_str()));
        whole.extend(own.map(|(field, value)| (field.clone(), value.clone())));
        return read(&Value::Object(whole), said);
    }
    read(sent, said)
}

fn said(fields: &mut Fields<'_>) -> TargetFields {
    TargetFields {
        source_id: label(fields, "source_id"),
        name: label(fields, "name"),
        url: url(fields),
    }
}

fn read<T>(document: &Value, read: impl FnOnce(&mut Fields<'_>) -> T) -> Result<T, Vec<Fault>> {
    let Some(object) = document.as_object() else {
        let message = format!("a target is an object, not {}", shown(document));
        return Err(vec![Fault::new("", message)]);
    };
    let mut fields = Fields::new(object, "", Faults::default());
    let read = read(&mut fields);
    fields.finish(|_| None).or(Some(read))
}
