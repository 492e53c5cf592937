//! Forgets the past, a bounded step at a time.
//!
//! What may be forgotten is found by a reader: an ended attempt stays ended, and one that is
//! neither young nor among the newest never becomes so again, so the writer only has to delete.

use evenkeel_core::RunKey;
use evenkeel_store::{Prune, Pruned};
use rusqlite::{Connection, params};

use crate::error::Answer;
use crate::rows::{key_from, key_params};

/// What a step looked at, and which of it may go.
pub(crate) struct Looked {
    seen: u64,
    pub(crate) forget: Vec<RunKey>,
    next: Option<RunKey>,
}

impl Looked {
    pub(crate) fn pruned(&self, forgotten: u64) -> Pruned {
        Pruned { seen: self.seen, forgotten, next: self.next }
    }
}

pub(crate) fn look(connection: &Connection, prune: Prune) -> Answer<Looked> {
    let (scheduled_at, job_no, sequence, attempt) = prune.after.map_or((-1, 0, 0, 0), key_params);
    let mut statement = connection.prepare_cached(include_str!("../../queries/prune_look.sql"))?;
    let mut rows = statement.query(params![
        scheduled_at,
        job_no,
        sequence,
        attempt,
        prune.limit,
        prune.keep_per_job,
        prune.keep_since.as_micros(),
    ])?;
    let mut looked = Looked { seen: 0, forget: Vec::new(), next: None };
    while let Some(row) = rows.next()? {
        let key = key_from(row)?;
        looked.seen += 1;
        looked.next = Some(key);
        if row.get("forget")? {
            looked.forget.push(key);
        }
    }
    if looked.seen < u64::from(prune.limit) {
        looked.next = None;
    }
    Ok(looked)
}

pub(crate) fn forget(connection: &Connection, keys: &[RunKey]) -> Answer<u64> {
    let mut forget = connection.prepare_cached(include_str!("../../queries/prune_forget.sql"))?;
    let mut forget_saved =
        connection.prepare_cached(include_str!("../../queries/prune_checkpoint.sql"))?;
    let mut forgotten = 0;
    for key in keys {
        let (scheduled_at, job_no, sequence, attempt) = key_params(*key);
        forgotten += forget.execute(params![scheduled_at, job_no, sequence, attempt])? as u64;
        if attempt == 0 {
            forget_saved.execute(params![scheduled_at, job_no, sequence])?;
        }
    }
    Ok(forgotten)
}
