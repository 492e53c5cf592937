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
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{KeyColumns, attempt, fence, get, key, micros, sequence, text};

#[async_trait]
impl ProgressStore for PostgresStore {
    async fn save_progress(
        &self,
        node: NodeNo,
        batch: Vec<ProgressNote>,
        now: Now,
    ) -> Result<Vec<bool>, StoreError> {
        let args = (node.0, batch, micros(now.literal()));
        self.hot
            .run(args, |connection, args| async move {
                let (node, batch, now) = &*args;
                note(&connection, *node, batch, *now).await
            })
            .await
    }

    async fn find_running(&self, key: AttemptKey) -> Result<Option<Running>, StoreError> {
        self.api
            .run(key, |connection, key| async move {
                let sql = sql!("find_running");
                let (at, job) = (key.scheduled_at.as_micros(), key.job_no.0);
                let which = (sequence(key.sequence), attempt(*key));
                let row = connection.maybe_row(sql, &[&at, &job, &which.0, &which.1]).await?;
                let Some(row) = row else { return Ok(None) };
                Ok(Some(Running { node: NodeNo(get(&row, 10)?), attempt: read_owned(&row)? }))
            })
            .await
    }

    async fn send_message(&self, node: NodeNo, message: NodeMessage) -> Result<(), StoreError> {
        self.api
            .run((node.0, message), |connection, args| async move {
                let (node, NodeMessage { key, fence: under, kind }) = &*args;
                let sql = sql!("send_message");
                let (at, job) = (key.scheduled_at.as_micros(), key.job_no.0);
                let (nth, bits) = (attempt(*key), sequence(key.sequence));
                let (under, kind) = (fence(*under), *kind as i16);
                connection.change(sql, &[node, &at, &job, &bits, &nth, &under, &kind]).await
            })
            .await?;
        if message.kind == MessageKind::Ended
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
        self.hot
            .run((node.0, i64::from(limit)), |connection, args| async move {
                let sql = sql!("take_messages");
                let rows = connection.rows(sql, &[&args.0, &args.1]).await?;
                rows.iter().map(read_message).collect()
            })
            .await
    }
}

async fn note(
    connection: &Connection,
    node: i32,
    batch: &[ProgressNote],
    now: Option<i64>,
) -> Tried<Vec<bool>> {
    // Notes are sorted in the order in which `finish` locks attempts, so that the two cannot
    // deadlock.
    let mut sorted: Vec<&ProgressNote> = batch.iter().collect();
    sorted.sort_unstable_by_key(|note| (note.key.job_no, note.key));
    let all = || sorted.iter();
    let keys: KeyColumns = all().map(|note| note.key).collect();
    let fences: Vec<i32> = all().map(|note| fence(note.fence)).collect();
    // Progress is sent as text, because a jsonb column cannot hold a NUL character, not even an
    // escaped one.
    let progress = all()
        .map(|note| note.progress.as_ref().map(serde_json::to_string).transpose())
        .collect::<Result<Vec<Option<String>>, _>>()
        .map_err(|error| StoreError::Refused(error.into()))?;
    let log: Vec<Option<String>> = all().map(|note| text(&note.log)).collect();
    let checkpoint: Vec<Option<&[u8]>> = all().map(|note| note.checkpoint.as_deref()).collect();
    let rows = connection
        .rows(
            sql!("save_progress"),
            &[
                &now, &node, &keys.job_no, &keys.scheduled_at, &keys.sequence, &keys.attempt,
                &fences, &progress, &log, &checkpoint,
            ],
        )
        .await?;
    let running = rows.iter().map(|row| Ok(key(row)?)).collect::<Tried<HashSet<AttemptKey>>>()?;
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
    let mut saved = SavedColumns::default();
    for finish in done() {
        if let CheckpointDisposition::Replace(data) = &finish.attachments.checkpoint {
            saved.keys.push(finish.key);
            saved.saved_at.push(finish.finished_at.as_micros());
            saved.data.push(data);
        }
    }
    try_join3(
        delete_notes(connection, &noted),
        delete_checkpoints(connection, &obsolete),
        saved.save(connection),
    )
    .await?;
    Ok(())
}

async fn delete_notes(connection: &Connection, keys: &KeyColumns) -> Tried<()> {
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = keys;
    if !job_no.is_empty() {
        let sql = sql!("finish_delete_notes");
        connection.change(sql, &[job_no, scheduled_at, sequence, attempt]).await?;
    }
    Ok(())
}

async fn delete_checkpoints(connection: &Connection, keys: &KeyColumns) -> Tried<()> {
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
