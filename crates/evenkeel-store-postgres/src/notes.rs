//! Progress, logs and checkpoints of running attempts, and messages to the nodes that run them.

use std::collections::HashSet;

use async_trait::async_trait;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, NodeNo};
use evenkeel_store::{
    CheckpointDisposition, Finish, FinishResult, MessageKind, NodeMessage, Now, ProgressNote,
    ProgressStore, Running, Signal, Store as _, StoreError, from_code,
};
use futures::future::try_join3;
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::attempts::owned::read_owned;
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{KeyColumns, column, fence, get, json, key, key_columns, micros, text};

#[async_trait]
impl ProgressStore for PostgresStore {
    async fn save_progress(
        &self,
        node: NodeNo,
        batch: Vec<ProgressNote>,
        now: Now,
    ) -> Result<Vec<bool>, StoreError> {
        let (node, now) = (node.0, micros(now.literal()));
        run!(self.hot, batch, |connection, batch| note(connection, node, batch, now).await)
    }

    async fn find_running(&self, key: AttemptKey) -> Result<Option<Running>, StoreError> {
        let read =
            |row: &Row| Ok(Running { node: NodeNo(get(row, 10)?), attempt: read_owned(row)? });
        let (at, job, run, nth) = key_columns(key);
        self.api.maybe_row(sql!("find_running"), params![at, job, run, nth], read).await
    }

    async fn send_message(&self, node: NodeNo, message: NodeMessage) -> Result<(), StoreError> {
        let NodeMessage { key, fence: under, kind } = message;
        let (at, job, run, nth) = key_columns(key);
        let params = params![node.0, at, job, run, nth, fence(under), kind as i16];
        self.api.change(sql!("send_message"), params).await?;
        if kind == MessageKind::Ended
            && let Err(error) = self.announce(Signal::Messages).await
        {
            // Nodes also poll for messages, so the receiving node finds this message later.
            tracing::debug!(%error, "notification not sent; receivers also poll");
        }
        Ok(())
    }

    async fn take_messages(
        &self,
        node: NodeNo,
        limit: u32,
    ) -> Result<Vec<NodeMessage>, StoreError> {
        let params = params![node.0, i64::from(limit)];
        self.hot.rows(sql!("take_messages"), params, read_message).await
    }
}

async fn note(
    connection: &Connection,
    node: i32,
    batch: &[ProgressNote],
    now: Option<i64>,
) -> Tried<Vec<bool>> {
    // Notes are sorted in the order in which `finish` locks attempts, so that `finish` and
    // `save_progress` cannot deadlock.
    let mut sorted: Vec<&ProgressNote> = batch.iter().collect();
    sorted.sort_unstable_by_key(|note| (note.key.job_no, note.key));
    let keys: KeyColumns = sorted.iter().map(|note| note.key).collect();
    let fences = column(&sorted, |note| fence(note.fence));
    // Progress is sent as text, because a jsonb column cannot hold a NUL character, not even an
    // escaped one.
    let progress = sorted
        .iter()
        .map(|note| note.progress.as_ref().map(json).transpose())
        .collect::<Result<Vec<Option<String>>, _>>()?;
    let log = column(&sorted, |note| text(&note.log));
    let checkpoint = column(&sorted, |note| note.checkpoint.as_deref());
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
    let params: Params<'_> = &[
        &now, &node, job_no, scheduled_at, sequence, attempt, &fences, &progress, &log, &checkpoint,
    ];
    let rows = connection.rows(sql!("save_progress"), params).await?;
    let running = rows.iter().map(key).collect::<Tried<HashSet<AttemptKey>>>()?;
    Ok(batch.iter().map(|note| running.contains(&note.key)).collect())
}

fn read_message(row: &Row) -> Tried<NodeMessage> {
    Ok(NodeMessage {
        key: key(row)?,
        fence: Fence(get::<i32>(row, "fence")?.cast_unsigned()),
        kind: from_code(&MessageKind::ALL, get(row, "kind")?, "node message", "kind")?,
    })
}

/// Deletes the notes and writes or deletes the checkpoints of finished attempts, in the same
/// transaction. Usually finished attempts have no notes or checkpoints, so no statement is sent.
pub(crate) async fn apply_attachments(
    connection: &Connection,
    batch: &[Finish],
    results: &[FinishResult],
) -> Tried<()> {
    let is_done = |(_, result): &(&Finish, &FinishResult)| **result == FinishResult::Done;
    let done = || batch.iter().zip(results).filter(is_done).map(|(finish, _)| finish);
    let noted: KeyColumns =
        done().filter(|finish| finish.attachments.has_notes).map(|finish| finish.key).collect();
    let obsolete: KeyColumns = done()
        .filter(|finish| finish.attachments.checkpoint == CheckpointDisposition::Delete)
        .map(|finish| finish.key)
        .collect();
    let saved = done().filter_map(|finish| match &finish.attachments.checkpoint {
        CheckpointDisposition::Replace(data) => Some((finish, data)),
        CheckpointDisposition::Keep | CheckpointDisposition::Delete => None,
    });
    let saved: Vec<(&Finish, &Vec<u8>)> = saved.collect();
    try_join3(
        delete_notes(connection, &noted),
        delete_checkpoints(connection, &obsolete),
        save_checkpoints(connection, &saved),
    )
    .await?;
    Ok(())
}

async fn delete_notes(connection: &Connection, keys: &KeyColumns) -> Tried<()> {
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = keys;
    if !job_no.is_empty() {
        let params: Params<'_> = &[job_no, scheduled_at, sequence, attempt];
        connection.change(sql!("finish_delete_notes"), params).await?;
    }
    Ok(())
}

async fn delete_checkpoints(connection: &Connection, keys: &KeyColumns) -> Tried<()> {
    let KeyColumns { job_no, scheduled_at, sequence, .. } = keys;
    if !job_no.is_empty() {
        let params: Params<'_> = &[job_no, scheduled_at, sequence];
        connection.change(sql!("finish_delete_checkpoints"), params).await?;
    }
    Ok(())
}

async fn save_checkpoints(connection: &Connection, saved: &[(&Finish, &Vec<u8>)]) -> Tried<()> {
    let keys: KeyColumns = saved.iter().map(|(finish, _)| finish.key).collect();
    let KeyColumns { job_no, scheduled_at, sequence, .. } = &keys;
    if !job_no.is_empty() {
        let saved_at = column(saved, |(finish, _)| finish.finished_at.as_micros());
        let data = column(saved, |(_, data)| *data);
        let params: Params<'_> = &[job_no, scheduled_at, sequence, &saved_at, &data];
        connection.change(sql!("finish_save_checkpoints"), params).await?;
    }
    Ok(())
}
