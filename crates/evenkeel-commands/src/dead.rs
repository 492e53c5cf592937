//! Runs that failed for good: looked at, taken up again, thrown away.

use evenkeel_core::{AttemptId, AttemptKey, RunId};
use evenkeel_store::{
    DEAD_LETTERS_MAX, DeadCursor, DeadFilter, DeadLetter, EventJob, EventKind, NewEvent, Now, Page,
    PageRequest, Redriven, Scope, Signal,
};
use serde_json::{Value, json};

use crate::fault::{Faults, shown};
use crate::read::Fields;
use crate::{CommandError, Conflict, Fault, Runs};

/// The ids of letters in a document: `{"ids": […]}`, each one once.
pub fn read_letter_ids(document: &Value) -> Result<Vec<AttemptId>, Vec<Fault>> {
    let mut faults = Faults::default();
    let Some(object) = document.as_object() else {
        faults.add("", format!("{} is not an object with ids", shown(document)));
        return faults.or(None);
    };
    let mut fields = Fields::new(object, "", faults);
    let is_said = fields.value("ids").is_some();
    let items = fields.items("ids", DEAD_LETTERS_MAX);
    if !is_said {
        fields.fault("ids", "is missing: a list of ids of dead letters");
    }
    let mut ids: Vec<AttemptId> = Vec::with_capacity(items.len());
    for item in items {
        match item.as_str().and_then(|text| text.parse::<AttemptId>().ok()) {
            Some(id) if ids.contains(&id) => {}
            Some(id) => ids.push(id),
            None => fields.fault("ids", format!("{} is not the id of a run", shown(item))),
        }
    }
    fields.finish(|_| None).or(Some(ids))
}

/// Jobs cannot fire while letters of theirs are taken up, and those fired with them wait.
const TAKEN_UP_AT_ONCE: usize = 50;

impl Runs {
    /// The scope's letters that pass the filter, newest first.
    pub async fn list_dead(
        &self,
        scope: &Scope,
        filter: DeadFilter,
        page: PageRequest<DeadCursor>,
    ) -> Result<Page<DeadLetter, DeadCursor>, CommandError> {
        Ok(self.store.list_dead(scope, filter, page).await?)
    }

    /// The letter of the run with this id.
    pub async fn get_dead(&self, scope: &Scope, id: RunId) -> Result<DeadLetter, CommandError> {
        self.store.get_dead(scope, self.run_ids.run_key(id)).await?.ok_or(CommandError::NotFound)
    }

    /// Takes letters up: each becomes a new run of its job, if that allows it. At most
    /// [`DEAD_LETTERS_MAX`]; each is answered on its own.
    pub async fn redrive(
        &self,
        scope: &Scope,
        ids: &[RunId],
    ) -> Result<Vec<Result<AttemptKey, CommandError>>, CommandError> {
        let keys: Vec<AttemptKey> = ids.iter().map(|id| self.run_ids.run_key(*id)).collect();
        let mut answers = Vec::with_capacity(keys.len());
        for some in keys.chunks(TAKEN_UP_AT_ONCE) {
            let taken_up = self.store.redrive(scope, some, Now::Database).await;
            let is_done = answers.iter().any(Result::is_ok);
            let taken_up = taken_up.map_err(|error| CommandError::from(error).after(is_done))?;
            answers.extend(taken_up.into_iter().map(|taken_up| self.accepted(taken_up)));
        }
        if answers.iter().any(Result::is_ok) {
            // The wake-up may be lost: schedulers also look every second.
            let _ = self.store.announce(Signal::Jobs).await;
        }
        if self.store.events().has_listeners() {
            let taken_up = ids.iter().zip(&answers);
            let begun = taken_up.filter_map(|(id, answer)| Some((id, *answer.as_ref().ok()?)));
            self.store.events().emit(begun.map(|(id, run)| NewEvent {
                kind: EventKind::RunRequested,
                tenant: scope.tenant,
                job: EventJob::No(run.job_no),
                run: Some(run),
                at: run.scheduled_at,
                data: json!({"dead_letter_id": id}).to_string(),
            }));
        }
        Ok(answers)
    }

    /// Throws letters away; their runs stay in the history. At most [`DEAD_LETTERS_MAX`]. Says which were
    /// there.
    pub async fn delete_dead(
        &self,
        scope: &Scope,
        ids: &[RunId],
    ) -> Result<Vec<bool>, CommandError> {
        let keys: Vec<AttemptKey> = ids.iter().map(|id| self.run_ids.run_key(*id)).collect();
        Ok(self.store.delete_dead(scope, &keys).await?)
    }

    fn accepted(&self, redriven: Redriven) -> Result<AttemptKey, CommandError> {
        match redriven {
            Redriven::Accepted(key) => Ok(key),
            Redriven::NotFound => Err(CommandError::NotFound),
            Redriven::Before(run) => {
                Err(CommandError::Conflict(Conflict::Redriven { run: self.run_ids.run_id(run) }))
            }
            Redriven::JobGone => Err(CommandError::Conflict(Conflict::JobGone)),
            Redriven::Busy => Err(CommandError::Conflict(Conflict::Busy)),
            Redriven::Duplicate(id) => Err(CommandError::Duplicate { id }),
            Redriven::NotAllowed(refusal) => Err(CommandError::NotAllowed(refusal)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_each_once() {
        let id = "0006442d-7b2b-8640-8000-000000040000";
        let read = read_letter_ids(&json!({"ids": [id, id]})).unwrap();
        assert_eq!(read.iter().map(ToString::to_string).collect::<Vec<_>>(), [id]);
        assert_eq!(read_letter_ids(&json!({"ids": []})).unwrap(), []);
    }

    #[test]
    fn what_is_not_a_list_of_ids_is_refused() {
        let many = vec!["x"; DEAD_LETTERS_MAX + 1];
        for document in [
            json!([]),
            json!({}),
            json!({"ids": "all"}),
            json!({"ids": ["0190163d-8694-739b-aea5-966c26f8ad91"]}),
            json!({"ids": [7]}),
            json!({"ids": [], "id": 1}),
            json!({"ids": many}),
        ] {
            assert!(read_letter_ids(&document).is_err(), "{document}");
        }
    }
}
