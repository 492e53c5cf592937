//! Forgetting, a bounded step at a time.

use std::collections::{BTreeSet, HashMap};

use evenkeel_core::AttemptKey;
use evenkeel_store::{Prune, Pruned, StoreError};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{attempt, count, get, key, sequence};

pub(super) async fn prune(store: &PostgresStore, prune: Prune) -> Result<Pruned, StoreError> {
    store
        .api
        .run(prune, |connection, prune| async move {
            connection.transaction(run(&connection, &prune)).await
        })
        .await
}

async fn run(connection: &Connection, prune: &Prune) -> Tried<Pruned> {
    // Notes, checkpoints, the queue and wakes come and go: a plan made while they are few must
    // serve when they are many.
    connection.batch_execute("SET LOCAL enable_seqscan = off").await?;
    // Before every key there is.
    let (at, job, bits, nth) = prune.after.map_or((i64::MIN, 0, 0, 0), columns);
    let row = connection
        .row(
            sql!("prune"),
            &[
                &at,
                &job,
                &bits,
                &nth,
                &i64::from(prune.limit),
                &i64::from(prune.keep_per_job),
                &prune.keep_since.as_micros(),
            ],
        )
        .await?;
    relink(connection, Forgotten::read(&row)?).await?;
    let seen = count(&row, "scanned")?;
    let is_end =
        seen < u64::from(prune.limit) || get::<Option<i64>>(&row, "scheduled_at")?.is_none();
    Ok(Pruned {
        seen,
        forgotten: count(&row, "deleted")?,
        next: if is_end { None } else { Some(key(&row)?) },
    })
}

fn columns(key: AttemptKey) -> (i64, i64, i32, i16) {
    (key.scheduled_at.as_micros(), key.job_no.0, sequence(key.sequence), attempt(key))
}

/// A chain: its job, time and sequence.
type Chain = (i64, i64, i32);

/// Chains that were forgotten although older ones stay, and where their links pointed.
struct Forgotten(HashMap<Chain, Option<(i64, i32)>>);

impl Forgotten {
    fn read(row: &Row) -> Tried<Self> {
        let jobs: Vec<i64> = get::<Option<_>>(row, "link_job_nos")?.unwrap_or_default();
        let at: Vec<i64> = get::<Option<_>>(row, "link_ats")?.unwrap_or_default();
        let sequences: Vec<i32> = get::<Option<_>>(row, "link_sequences")?.unwrap_or_default();
        let prev_at: Vec<Option<i64>> = get::<Option<_>>(row, "link_prev_ats")?.unwrap_or_default();
        let prev_sequences: Vec<Option<i32>> =
            get::<Option<_>>(row, "link_prev_sequences")?.unwrap_or_default();
        let chains = jobs.into_iter().zip(at).zip(sequences);
        let prevs = prev_at.into_iter().zip(prev_sequences);
        let links = chains.zip(prevs).map(|(((job, at), sequence), (prev_at, prev_sequence))| {
            ((job, at, sequence), prev_at.zip(prev_sequence))
        });
        Ok(Self(links.collect()))
    }

    /// Where a link leads once what is forgotten is left out; `None` if it points at nothing
    /// that was forgotten here.
    fn beyond(&self, job: i64, link: (i64, i32)) -> Option<Option<(i64, i32)>> {
        let mut beyond = *self.0.get(&(job, link.0, link.1))?;
        while let Some((at, sequence)) = beyond
            && let Some(next) = self.0.get(&(job, at, sequence))
        {
            beyond = *next;
        }
        Some(beyond)
    }
}

/// Makes the links of jobs lead past what was forgotten to what stays. That is seldom needed:
/// mostly what is forgotten is the oldest there is.
async fn relink(connection: &Connection, forgotten: Forgotten) -> Tried<()> {
    let jobs: BTreeSet<i64> = forgotten.0.keys().map(|(job, _, _)| *job).collect();
    for job in jobs {
        let sql = sql!("prune_end_of_links");
        while let Some(last) = connection.maybe_row(sql, &[&job]).await? {
            let (at, sequence): (i64, i32) = (get(&last, "scheduled_at")?, get(&last, "sequence")?);
            let prev_at: Option<i64> = get(&last, "prev_at")?;
            let prev = prev_at.zip(get(&last, "prev_sequence")?);
            let Some(beyond) = prev.and_then(|prev| forgotten.beyond(job, prev)) else { break };
            let (prev_at, prev_sequence) = beyond.unzip();
            connection
                .change(sql!("prune_relink"), &[&job, &at, &sequence, &prev_at, &prev_sequence])
                .await?;
        }
    }
    Ok(())
}
