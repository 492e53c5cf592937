//! Prunes history in bounded steps.
//!
//! A reader finds the attempts to delete, so the writer only deletes. A reader can safely find
//! these attempts, because a finished attempt stays finished, and an attempt outside the retention
//! limits stays outside. Progress notes and checkpoints can be found by a reader as well, because a
//! finished attempt no longer changes them.

use evenkeel_core::AttemptKey;
use evenkeel_store::{Prune, Pruned};
use rusqlite::{Connection, params};

use crate::error::Answer;
use crate::notes;
use crate::rows::{key_from, key_params};

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
    let (scheduled_at, job_no, sequence, attempt) = prune.after.map_or((-1, 0, 0, 0), key_params);
    let mut statement = connection.prepare_cached(sql!("prune_find"))?;
    let mut rows = statement.query(params![
        scheduled_at,
        job_no,
        sequence,
        attempt,
        prune.limit,
        prune.keep_per_job,
        prune.keep_since.as_micros(),
    ])?;
    let (delete, with_note, with_checkpoint) = (Vec::new(), Vec::new(), Vec::new());
    let mut step = PruneStep { seen: 0, delete, with_note, with_checkpoint, next: None };
    while let Some(row) = rows.next()? {
        let key = key_from(row)?;
        step.seen += 1;
        step.next = Some(key);
        if row.get("prune_attempt")? {
            step.delete.push(key);
        }
        if row.get("prune_note")? {
            step.with_note.push(key);
        }
        if row.get("prune_checkpoint")? {
            step.with_checkpoint.push(key);
        }
    }
    if step.seen < u64::from(prune.limit) {
        step.next = None;
    }
    Ok(step)
}

pub(crate) fn delete(connection: &Connection, step: &PruneStep) -> Answer<u64> {
    let mut delete = connection.prepare_cached(sql!("prune_delete"))?;
    let mut deleted = 0;
    for key in &step.delete {
        deleted += delete.execute(key_params(*key))? as u64;
    }
    for key in &step.with_note {
        notes::delete(connection, *key)?;
    }
    for key in &step.with_checkpoint {
        notes::delete_checkpoint(connection, *key)?;
    }
    Ok(deleted)
}
