//! Forgets the past, a bounded step at a time.
//!
//! What may be forgotten is found by a reader: an ended attempt stays ended, and one that is
//! neither young nor among the newest never becomes so again, so the writer only has to delete. So
//! it is with what attempts said: nobody adds to it once they have ended.

use evenkeel_core::AttemptKey;
use evenkeel_store::{Prune, Pruned};
use rusqlite::{Connection, params};

use crate::error::Answer;
use crate::notes;
use crate::rows::{key_from, key_params};

/// What a step looked at, and which of it may go.
pub(crate) struct Looked {
    seen: u64,
    forget: Vec<AttemptKey>,
    /// Ended attempts that left notes.
    noted: Vec<AttemptKey>,
    /// Runs that are over and left a checkpoint.
    saved: Vec<AttemptKey>,
    next: Option<AttemptKey>,
}

impl Looked {
    /// How many rows are to go.
    pub(crate) fn rows(&self) -> usize {
        self.forget.len() + self.noted.len() + self.saved.len()
    }

    pub(crate) fn pruned(&self, forgotten: u64) -> Pruned {
        Pruned { seen: self.seen, forgotten, next: self.next }
    }
}

pub(crate) fn look(connection: &Connection, prune: Prune) -> Answer<Looked> {
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
    let (forget, noted, saved) = (Vec::new(), Vec::new(), Vec::new());
    let mut looked = Looked { seen: 0, forget, noted, saved, next: None };
    while let Some(row) = rows.next()? {
        let key = key_from(row)?;
        looked.seen += 1;
        looked.next = Some(key);
        if row.get("prune_attempt")? {
            looked.forget.push(key);
        }
        if row.get("prune_note")? {
            looked.noted.push(key);
        }
        if row.get("prune_checkpoint")? {
            looked.saved.push(key);
        }
    }
    if looked.seen < u64::from(prune.limit) {
        looked.next = None;
    }
    Ok(looked)
}

pub(crate) fn forget(connection: &Connection, looked: &Looked) -> Answer<u64> {
    let mut forget = connection.prepare_cached(sql!("prune_delete"))?;
    let mut forgotten = 0;
    for key in &looked.forget {
        forgotten += forget.execute(key_params(*key))? as u64;
    }
    for key in &looked.noted {
        notes::forget(connection, *key)?;
    }
    for key in &looked.saved {
        notes::forget_checkpoint(connection, *key)?;
    }
    Ok(forgotten)
}
