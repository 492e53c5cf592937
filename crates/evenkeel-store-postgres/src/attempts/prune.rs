//! Prunes old attempts in bounded steps.

use std::collections::{BTreeSet, HashMap};

use evenkeel_store::{Prune, Pruned};
use tokio_postgres::Row;

use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{array, count, get, key, key_columns};

pub(super) async fn prune(connection: &Connection, prune: &Prune) -> Tried<Pruned> {
    // The sizes of the tables for notes, checkpoints, queued and delayed attempts vary a lot, so a
    // query plan made for small tables must also suit large tables.
    connection.batch_execute("SET LOCAL enable_seqscan = off").await?;
    // Without a cursor, pruning starts at a key that sorts before every attempt key.
    let (at, job, run, nth) = prune.after.map_or((i64::MIN, 0, 0, 0), key_columns);
    let (limit, keep) = (i64::from(prune.limit), i64::from(prune.keep_per_job));
    let keep_since = prune.keep_since.as_micros();
    let params: Params<'_> = &[&at, &job, &run, &nth, &limit, &keep, &keep_since];
    let row = connection.row(sql!("prune"), params).await?;
    relink(connection, DeletedRuns::read(&row)?).await?;
    let seen = count(&row, "scanned")?;
    let is_end =
        seen < u64::from(prune.limit) || get::<Option<i64>>(&row, "scheduled_at")?.is_none();
    Ok(Pruned {
        seen,
        deleted: count(&row, "deleted")?,
        next: if is_end { None } else { Some(key(&row)?) },
    })
}

/// Job number, scheduled time and sequence of a run.
type RunKey = (i64, i64, i32);

/// Deleted runs, each with its link to the previous run. Contains only runs of jobs whose remaining
/// runs need new links.
struct DeletedRuns(HashMap<RunKey, Option<(i64, i32)>>);

impl DeletedRuns {
    fn read(row: &Row) -> Tried<Self> {
        let jobs: Vec<i64> = array(row, "link_job_nos")?;
        let at: Vec<i64> = array(row, "link_ats")?;
        let sequences: Vec<i32> = array(row, "link_sequences")?;
        let prev_at: Vec<Option<i64>> = array(row, "link_prev_ats")?;
        let prev_sequences: Vec<Option<i32>> = array(row, "link_prev_sequences")?;
        let runs = jobs.into_iter().zip(at).zip(sequences);
        let prevs = prev_at.into_iter().zip(prev_sequences);
        let links = runs.zip(prevs).map(|(((job, at), sequence), (prev_at, prev_sequence))| {
            ((job, at, sequence), prev_at.zip(prev_sequence))
        });
        Ok(Self(links.collect()))
    }

    /// Follows a link past deleted runs. Returns `None` if the link does not point at a run that
    /// this step deleted.
    fn past_deleted(&self, job: i64, link: (i64, i32)) -> Option<Option<(i64, i32)>> {
        let mut past_deleted = *self.0.get(&(job, link.0, link.1))?;
        while let Some((at, sequence)) = past_deleted
            && let Some(next) = self.0.get(&(job, at, sequence))
        {
            past_deleted = *next;
        }
        Some(past_deleted)
    }
}

/// Changes links to deleted runs so that they lead to runs that are kept. Few pruning steps change
/// links, because pruning mostly deletes the oldest runs.
async fn relink(connection: &Connection, deleted: DeletedRuns) -> Tried<()> {
    let jobs: BTreeSet<i64> = deleted.0.keys().map(|(job, _, _)| *job).collect();
    for job in jobs {
        let sql = sql!("prune_end_of_links");
        while let Some(last) = connection.maybe_row(sql, &[&job]).await? {
            let (at, sequence): (i64, i32) = (get(&last, "scheduled_at")?, get(&last, "sequence")?);
            let prev_at: Option<i64> = get(&last, "prev_at")?;
            let prev = prev_at.zip(get(&last, "prev_sequence")?);
            let Some(past_deleted) = prev.and_then(|prev| deleted.past_deleted(job, prev)) else {
                break;
            };
            let (prev_at, prev_sequence) = past_deleted.unzip();
            let params: Params<'_> = &[&job, &at, &sequence, &prev_at, &prev_sequence];
            connection.change(sql!("prune_relink"), params).await?;
        }
    }
    Ok(())
}
