//! Progress, logs and checkpoints of running attempts, and messages to the nodes that run them.

use async_trait::async_trait;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, NodeNo, Timestamp};
use evenkeel_store::{
    Attempt, CheckpointDisposition, Finish, MessageKind, NodeMessage, Now, ProgressNote,
    ProgressStore, Running, Signal, StoreError, from_code,
};
use rusqlite::Connection;

use crate::SqliteStore;
use crate::attempts::owned::owned_from;
use crate::connection::Urgency::{Batch, Command};
use crate::connection::{Params, RunPrepared, RunSql, resolve, weight};
use crate::error::Answer;
use crate::rows::{json, key_from};

#[async_trait]
impl ProgressStore for SqliteStore {
    async fn save_progress(
        &self,
        node: NodeNo,
        batch: Vec<ProgressNote>,
        now: Now,
    ) -> Result<Vec<bool>, StoreError> {
        let rows = batch.iter().map(rows).sum();
        self.writer.write(Batch, rows, move |db| note(db, node, &batch, resolve(now))).await
    }

    async fn find_running(&self, key: AttemptKey) -> Result<Option<Running>, StoreError> {
        self.engine_readers.read(move |db| find_running(db, key)).await
    }

    async fn send_message(&self, node: NodeNo, message: NodeMessage) -> Result<(), StoreError> {
        self.writer.write(Batch, 1, move |db| send_message(db, node, message)).await?;
        if message.kind == MessageKind::Ended {
            self.signals.send(Signal::Messages);
        }
        Ok(())
    }

    async fn take_messages(
        &self,
        node: NodeNo,
        limit: u32,
    ) -> Result<Vec<NodeMessage>, StoreError> {
        // A reading connection checks first whether there are messages, because usually there are
        // none and the writer is not needed.
        let has_messages = move |db: &Connection| db.has_row(sql!("take_messages_find"), &[&node]);
        if !self.engine_readers.read(has_messages).await? {
            return Ok(Vec::new());
        }
        self.writer.write(Command, 1, move |db| take_messages(db, node, limit)).await
    }
}

/// Estimates the work of storing this progress note, as a number of rows.
fn rows(note: &ProgressNote) -> usize {
    let log = note.log.as_ref().map_or(0, String::len);
    let checkpoint = note.checkpoint.as_ref().map_or(0, Vec::len);
    weight(1, log + checkpoint)
}

fn note(
    connection: &Connection,
    node: NodeNo,
    batch: &[ProgressNote],
    now: Timestamp,
) -> Answer<Vec<bool>> {
    let mut is_running = connection.prepare_cached(sql!("save_progress_is_running"))?;
    let mut saved = Vec::with_capacity(batch.len());
    for note in batch {
        let runs = is_running.has_row(&[&note.key, &node, &note.fence])?;
        if runs {
            write_note(connection, note, now)?;
        }
        saved.push(runs);
    }
    Ok(saved)
}

fn write_note(connection: &Connection, note: &ProgressNote, now: Timestamp) -> Answer<()> {
    let ProgressNote { key, fence, progress, log, .. } = note;
    if progress.is_some() || log.is_some() {
        let progress = progress.as_ref().map(json).transpose()?;
        connection.run(sql!("save_progress"), &[key, fence, &now, &progress, log])?;
    }
    match &note.checkpoint {
        Some(data) => save_checkpoint(connection, note.key, data, now),
        None => Ok(()),
    }
}

fn save_checkpoint(
    connection: &Connection,
    key: AttemptKey,
    data: &[u8],
    now: Timestamp,
) -> Answer<()> {
    let row: Params<'_> = &[&key.scheduled_at, &key.job_no, &key.sequence, &now, &data];
    connection.run(sql!("finish_save_checkpoints"), row)
}

/// Deletes the progress and log of an attempt.
pub(crate) fn delete(connection: &Connection, key: AttemptKey) -> Answer<()> {
    connection.run(sql!("finish_delete_notes"), &[&key])
}

pub(crate) fn delete_checkpoint(connection: &Connection, key: AttemptKey) -> Answer<()> {
    let run: Params<'_> = &[&key.scheduled_at, &key.job_no, &key.sequence];
    connection.run(sql!("finish_delete_checkpoints"), run)
}

/// Deletes the progress and log of a finished attempt, and keeps, replaces or deletes its
/// checkpoint.
pub(crate) fn finish_attachments(connection: &Connection, finish: &Finish) -> Answer<()> {
    if finish.attachments.has_notes {
        delete(connection, finish.key)?;
    }
    match &finish.attachments.checkpoint {
        CheckpointDisposition::Keep => Ok(()),
        CheckpointDisposition::Replace(data) => {
            save_checkpoint(connection, finish.key, data, finish.finished_at)
        }
        CheckpointDisposition::Delete => delete_checkpoint(connection, finish.key),
    }
}

/// Adds the progress and the log of a running attempt to `shown`.
pub(crate) fn show(connection: &Connection, shown: &mut Attempt) -> Answer<()> {
    let found: Option<(Option<String>, Option<String>)> =
        connection.maybe_row(sql!("get_attempt_note"), &[&shown.key, &shown.fence], |row| {
            Ok((row.get("progress")?, row.get("log")?))
        })?;
    let Some((progress, log)) = found else { return Ok(()) };
    let progress = progress.map(|text| serde_json::from_str(&text)).transpose();
    shown.progress = progress.map_err(|cause| StoreError::corrupt(shown.key, "progress", cause))?;
    shown.log = log;
    Ok(())
}

fn find_running(connection: &Connection, key: AttemptKey) -> Answer<Option<Running>> {
    connection.maybe_row(sql!("find_running"), &[&key], |row| {
        Ok(Running { node: NodeNo(row.get("node_no")?), attempt: owned_from(row)? })
    })
}

pub(crate) fn send_message(
    connection: &Connection,
    node: NodeNo,
    message: NodeMessage,
) -> Answer<()> {
    connection.run(sql!("send_message"), &[&node, &message.key, &message.fence, &message.kind])
}

/// Returns and deletes the oldest messages to a node, oldest first.
fn take_messages(connection: &Connection, node: NodeNo, limit: u32) -> Answer<Vec<NodeMessage>> {
    let mut taken = connection.rows(sql!("take_messages"), &[&node, &limit], |row| {
        let kind = from_code(&MessageKind::ALL, row.get("kind")?, "node message", "kind")?;
        let message = NodeMessage { key: key_from(row)?, fence: Fence(row.get("fence")?), kind };
        Ok((row.get::<_, i64>("message_no")?, message))
    })?;
    taken.sort_unstable_by_key(|(no, _)| *no);
    Ok(taken.into_iter().map(|(_, message)| message).collect())
}
