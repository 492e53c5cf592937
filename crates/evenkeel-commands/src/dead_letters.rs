//! Lists, redrives and deletes dead letters: runs that failed and have no retry left.

use evenkeel_core::{AttemptId, AttemptKey, RunId};
use evenkeel_store::{
    DEAD_LETTERS_MAX, DeadLetter, EventJob, EventKind, NewEvent, Now, Redriven, Scope, Signal,
};
use serde_json::{Value, json};

use crate::fault::shown;
use crate::read::Fields;
use crate::{CommandError, Conflict, Fault, Result, Runs};

/// Reads the ids of dead letters from `{"ids": […]}`, and drops repeated ids.
pub fn read_letter_ids(document: &Value) -> Result<Vec<AttemptId>, Vec<Fault>> {
    Fields::read_object(document, "the body is an object", |fields| {
        fields.require("ids", "give a list of ids of dead letters");
        let mut ids: Vec<AttemptId> = Vec::new();
        for item in fields.items("ids", DEAD_LETTERS_MAX) {
            match item.as_str().and_then(|text| text.parse::<AttemptId>().ok()) {
                Some(id) if ids.contains(&id) => {}
                Some(id) => ids.push(id),
                None => fields.fault("ids", format!("{} is not the id of a run", shown(item))),
            }
        }
        Some(ids)
    })
}

/// Number of dead letters that are redriven per transaction. The store locks the jobs of these dead
/// letters, so the jobs cannot start runs during the transaction.
const REDRIVE_BATCH: usize = 50;

impl Runs {
    pub async fn get_dead(&self, scope: &Scope, id: RunId) -> Result<DeadLetter> {
        self.store.get_dead(scope, self.run_ids.run_key(id)).await?.ok_or(CommandError::NotFound)
    }

    /// Redrives up to [`DEAD_LETTERS_MAX`] dead letters: each dead letter becomes a new run of its
    /// job, if the job allows that. Returns one result per dead letter.
    pub async fn redrive(&self, scope: &Scope, ids: &[RunId]) -> Result<Vec<Result<AttemptKey>>> {
        let keys: Vec<AttemptKey> = ids.iter().map(|id| self.run_ids.run_key(*id)).collect();
        let mut answers = Vec::with_capacity(keys.len());
        for some in keys.chunks(REDRIVE_BATCH) {
            let redriven = self.store.redrive(scope, some, Now::Database).await;
            let is_done = answers.iter().any(Result::is_ok);
            let redriven = redriven.map_err(|error| CommandError::from(error).after(is_done))?;
            answers.extend(redriven.into_iter().map(|redriven| self.result_of(redriven)));
        }
        if answers.iter().any(Result::is_ok) {
            // The signal about redriven jobs may be lost, because schedulers also poll every
            // second.
            let _ = self.store.announce(Signal::Jobs).await;
        }
        if self.store.events().has_listeners() {
            let redriven = ids.iter().zip(&answers);
            let begun = redriven.filter_map(|(id, answer)| Some((id, *answer.as_ref().ok()?)));
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

    /// Deletes up to [`DEAD_LETTERS_MAX`] dead letters. The runs of the dead letters stay in the
    /// history. Returns for each dead letter whether it existed.
    pub async fn delete_dead(&self, scope: &Scope, ids: &[RunId]) -> Result<Vec<bool>> {
        let keys: Vec<AttemptKey> = ids.iter().map(|id| self.run_ids.run_key(*id)).collect();
        Ok(self.store.delete_dead(scope, &keys).await?)
    }

    fn result_of(&self, redriven: Redriven) -> Result<AttemptKey> {
        match redriven {
            Redriven::Accepted(key) => Ok(key),
            Redriven::NotFound => Err(CommandError::NotFound),
            Redriven::AlreadyRedriven(run) => {
                Err(Conflict::Redriven { run: self.run_ids.run_id(run) }.into())
            }
            Redriven::JobGone => Err(Conflict::JobDeleted.into()),
            Redriven::Busy => Err(Conflict::Busy.into()),
            Redriven::Duplicate(id) => Err(CommandError::Duplicate { id }),
            Redriven::NotAllowed(refusal) => Err(refusal.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_without_repetitions() {
        let id = "0006442d-7b2b-8640-8000-000000040000";
        let read = read_letter_ids(&json!({"ids": [id, id]})).unwrap();
        assert_eq!(read.iter().map(ToString::to_string).collect::<Vec<_>>(), [id]);
        assert_eq!(read_letter_ids(&json!({"ids": []})).unwrap(), []);
    }

    #[test]
    fn documents_without_a_list_of_ids_are_refused() {
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
