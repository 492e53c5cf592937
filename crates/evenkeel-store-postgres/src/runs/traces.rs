//! What becomes of what attempts said, once they have ended.

use evenkeel_store::{CheckpointDisposition, Finish, FinishResult};
use futures::future::try_join3;

use crate::columns::KeyColumns;
use crate::error::Tried;
use crate::pool::Connection;

/// For those of a batch that took effect, in the transaction of their end. A statement is sent
/// only if there is something for it to do: mostly there is not.
pub(super) async fn settle(
    connection: &Connection,
    batch: &[Finish],
    results: &[FinishResult],
) -> Tried<()> {
    let is_done = |(_, result): &(&Finish, &FinishResult)| **result == FinishResult::Done;
    let done = || batch.iter().zip(results).filter(is_done).map(|(finish, _)| finish);
    let noted: KeyColumns =
        done().filter(|finish| finish.traces.noted).map(|finish| finish.key).collect();
    let forgotten: KeyColumns = done()
        .filter(|finish| finish.traces.checkpoint == CheckpointDisposition::Forget)
        .map(|finish| finish.key)
        .collect();
    let mut saved = SavedColumns::default();
    for finish in done() {
        if let CheckpointDisposition::Save(data) = &finish.traces.checkpoint {
            saved.keys.push(finish.key);
            saved.saved_at.push(finish.finished_at.as_micros());
            saved.data.push(data);
        }
    }
    try_join3(
        forget_notes(connection, &noted),
        forget_checkpoints(connection, &forgotten),
        saved.save(connection),
    )
    .await?;
    Ok(())
}

async fn forget_notes(connection: &Connection, keys: &KeyColumns) -> Tried<()> {
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = keys;
    if !job_no.is_empty() {
        let sql = sql!("finish_delete_notes");
        connection.change(sql, &[job_no, scheduled_at, sequence, attempt]).await?;
    }
    Ok(())
}

async fn forget_checkpoints(connection: &Connection, keys: &KeyColumns) -> Tried<()> {
    let KeyColumns { job_no, scheduled_at, sequence, .. } = keys;
    if !job_no.is_empty() {
        let sql = sql!("finish_delete_checkpoints");
        connection.change(sql, &[job_no, scheduled_at, sequence]).await?;
    }
    Ok(())
}

/// Checkpoints as arrays.
#[derive(Default)]
struct SavedColumns<'a> {
    keys: KeyColumns,
    saved_at: Vec<i64>,
    data: Vec<&'a [u8]>,
}

impl SavedColumns<'_> {
    async fn save(&self, connection: &Connection) -> Tried<()> {
        let KeyColumns { job_no, scheduled_at, sequence, .. } = &self.keys;
        if !job_no.is_empty() {
            let sql = sql!("finish_save_checkpoints");
            let Self { saved_at, data, .. } = self;
            connection.change(sql, &[job_no, scheduled_at, sequence, saved_at, data]).await?;
        }
        Ok(())
    }
}
