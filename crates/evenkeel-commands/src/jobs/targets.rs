//! Targets: sites or systems that several jobs may process.

use evenkeel_core::redact;
use evenkeel_store::{
    ChangedTarget, CreatedTarget, DeletedTarget, NewTarget, Now, Scope, StoreError, Target,
    TargetFields,
};
use serde_json::{Value, json};

use super::{FollowerUpdate, Jobs, TRIES};
use crate::read::Fields;
use crate::read::limits::NUMBER_MAX;
use crate::{CommandError, EditMode, Fault, Object, Result};

/// Fields of a target that responses contain but clients cannot set.
const SET_BY_THE_SERVER: [&str; 9] = [
    "number", "generation", "jobs", "last_success_at", "created_at", "updated_at", "followed_jobs",
    "refused_jobs", "goes_on",
];

impl Jobs {
    pub async fn create_target(&self, scope: &Scope, document: &Value) -> Result<Target> {
        let new = read_new(document).map_err(CommandError::InvalidTarget)?;
        let wanted = new.number;
        match self.store.create_target(scope, new, Now::Database).await? {
            CreatedTarget::Created(target) => Ok(target),
            CreatedTarget::Exists(target) => {
                let field = if wanted == Some(target.number) { "number" } else { "source_id" };
                Err(CommandError::TargetTaken { number: target.number, field })
            }
        }
    }

    /// Returns the target with this number. Creates the target if it does not exist.
    pub async fn ensure_target(&self, scope: &Scope, number: i64) -> Result<Target> {
        if !(1..=NUMBER_MAX.cast_signed()).contains(&number) {
            let message = format!("{number} is not a whole number from 1 to {NUMBER_MAX}");
            return Err(CommandError::InvalidTarget(vec![Fault::new("number", message)]));
        }
        if let Some(target) = self.find_target(scope, number).await? {
            return Ok(target);
        }
        let new = NewTarget { number: Some(number), fields: TargetFields::default() };
        match self.store.create_target(scope, new, Now::Database).await? {
            CreatedTarget::Created(target) | CreatedTarget::Exists(target) => Ok(target),
        }
    }

    pub async fn get_target(&self, scope: &Scope, number: i64) -> Result<Target> {
        self.find_target(scope, number).await?.ok_or(CommandError::NoTarget)
    }

    /// Changes the given fields of a target; null clears a field. Updates the jobs that follow the
    /// target even if the target does not change, so that an interrupted update can be repeated.
    pub async fn update_target(
        &self,
        scope: &Scope,
        number: i64,
        (sent, mode): (&Value, EditMode),
        if_generation: Option<&[i32]>,
    ) -> Result<(Target, FollowerUpdate)> {
        for _ in 0..TRIES {
            let before = self.get_target(scope, number).await?;
            if if_generation.is_some_and(|wanted| !wanted.contains(&before.generation)) {
                return Err(CommandError::TargetStale { generation: before.generation });
            }
            let fields = read_change(&before, sent, mode).map_err(CommandError::InvalidTarget)?;
            if fields == before.fields {
                return Ok((before, self.update_followers(scope, number).await?));
            }
            let expected = Some(before.generation);
            let changed = self.store.change_target(scope, number, expected, fields, Now::Database);
            match changed.await? {
                ChangedTarget::Done(target) => {
                    let update = self.update_followers(scope, number).await;
                    return Ok((target, update.map_err(|error| error.after(true))?));
                }
                ChangedTarget::NotFound => return Err(CommandError::NoTarget),
                ChangedTarget::SourceTaken(number) => {
                    return Err(CommandError::TargetTaken { number, field: "source_id" });
                }
                // The target has changed in the meantime, so it is read again and the change is
                // tried again.
                ChangedTarget::Stale(_) => {}
            }
        }
        let generation = self.get_target(scope, number).await?.generation;
        Err(CommandError::TargetStale { generation })
    }

    /// Deletes a target. With `force`, deletes the target even if jobs refer to it. Returns the
    /// number of jobs that lost their target.
    pub async fn delete_target(&self, scope: &Scope, number: i64, force: bool) -> Result<u64> {
        match self.store.delete_target(scope, number, force).await? {
            DeletedTarget::Done { detached } => Ok(detached),
            DeletedTarget::NotFound => Err(CommandError::NoTarget),
            DeletedTarget::InUse(jobs) => Err(CommandError::TargetInUse { jobs }),
        }
    }

    async fn find_target(&self, scope: &Scope, number: i64) -> Result<Option<Target>, StoreError> {
        Ok(self.store.get_targets(scope, &[number]).await?.pop().flatten())
    }
}

fn read_new(document: &Value) -> Result<NewTarget, Vec<Fault>> {
    read(document, |fields| {
        let number = fields.number("number", 1..=NUMBER_MAX).map(u64::cast_signed);
        NewTarget { number, fields: read_fields(fields) }
    })
}

/// Applies the fields that a client sent to the fields of a target.
fn read_change(before: &Target, sent: &Value, mode: EditMode) -> Result<TargetFields, Vec<Fault>> {
    let TargetFields { source_id, name, url } = &before.fields;
    let own = [("source_id", json!(source_id)), ("name", json!(name)), ("url", json!(url))];
    let mut whole: Object =
        own.into_iter().map(|(field, value)| (field.to_owned(), value)).collect();
    let Some(sent) = sent.as_object() else { return read(sent, read_fields) };
    let mut sent = sent.clone();
    redact::restore(&mut sent, &whole, &[]);
    let shown = json!({
        "number": before.number,
        "generation": before.generation,
        "jobs": before.jobs,
        "last_success_at": before.last_success_at,
        "created_at": before.created_at,
        "updated_at": before.updated_at,
    });
    let mut faults = Vec::new();
    for (field, value) in &sent {
        match (SET_BY_THE_SERVER.contains(&field.as_str()), mode) {
            (false, _) => drop(whole.insert(field.clone(), value.clone())),
            // With PUT, fields that only the server sets are ignored, because clients send back
            // whole targets.
            (true, EditMode::Put) => {}
            (true, EditMode::Patch) if shown.get(field) == Some(value) => {}
            (true, EditMode::Patch) => {
                let message = "is set by the server and can't be changed; leave it out";
                faults.push(Fault::new(field, message));
            }
        }
    }
    if faults.is_empty() { read(&Value::Object(whole), read_fields) } else { Err(faults) }
}

fn read_fields(fields: &mut Fields<'_>) -> TargetFields {
    TargetFields {
        source_id: fields.label("source_id"),
        name: fields.label("name"),
        url: fields.url("url"),
    }
}

fn read<T>(document: &Value, read: impl FnOnce(&mut Fields<'_>) -> T) -> Result<T, Vec<Fault>> {
    Fields::read_object(document, "a target is an object", |fields| Some(read(fields)))
}
