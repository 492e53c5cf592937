//! Prunes history in bounded steps.
//!
//! A reading connection finds the attempts to delete, so the writer only deletes. A reading
//! connection can safely find attempts to delete, because a finished attempt stays finished, and an
//! attempt outside the retention limits stays outside. A reading connection can also find progress
//! notes and checkpoints to delete, because a finished attempt no longer changes them.

use evenkeel_core::AttemptKey;
use evenkeel_store::{Prune, Pruned};
use rusqlite::Connection;

use crate::connection::{Params, RunPrepared, RunSql};
use crate::error::Answer;
use crate::notes;
use crate::rows::{FIRST_KEY, key_from, next_after};

/// The rows that one pruning step read, and which of these rows to delete.
pub(crate) struct PruneStep {
    seen: u64,
    delete: Vec<AttemptKey>,
    with_note: Vec<AttemptKey>,
    with_checkpoint: Vec<AttemptKey>,
    next: Option<AttemptKey>,
}

impl PruneStep {
    pub(crate) fn rows(&self) -> usize {
        self.delete.len() + self.with_note.len() + self.with_checkpoint.len()
    }

    pub(crate) fn pruned(&self, deleted: u64) -> Pruned {
        Pruned { seen: self.seen, deleted, next: self.next }
    }
}

pub(crate) fn find(connection: &Connection, prune: Prune) -> Answer<PruneStep> {
    let Prune { after, limit, keep_per_job, keep_since } = prune;
    let after = after.unwrap_or(FIRST_KEY);
    let (mut delete, mut with_note, mut with_checkpoint) = (Vec::new(), Vec::new(), Vec::new());
    let which: Params<'_> = &[&after, &limit, &keep_per_job, &keep_since];
    let seen = connection.rows(sql!("prune_find"), which, |row| {
        let key = key_from(row)?;
        for (column, keys) in [
            ("prune_attempt", &mut delete),
            ("prune_note", &mut with_note),
            ("prune_checkpoint", &mut with_checkpoint),
        ] {
            if row.get(column)? {
                keys.push(key);
            }
        }
        Ok(key)
    })?;
    let next = next_after(&seen, limit).copied();
    Ok(PruneStep { seen: seen.len() as u64, delete, with_note, with_checkpoint, next })
}

pub(crate) fn delete(connection: &Connection, step: &PruneStep) -> Answer<u64> {
    let mut delete = connection.prepare_cached(sql!("prune_delete"))?;
    let mut deleted = 0;
    for key in &step.delete {
        deleted += delete.change(&[key])?;
    }
    for key in &step.with_note {
        notes::delete(connection, *key)?;
    }
    for key in &step.with_checkpoint {
        notes::delete_checkpoint(connection, *key)?;
    }
    Ok(deleted)
}
