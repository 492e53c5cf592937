//! Progress, logs and checkpoints of running attempts, and messages to the nodes that run them.

use async_trait::async_trait;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, NodeNo, Timestamp};
use evenkeel_store::{
    Attempt, CheckpointDisposition, Finish, MessageKind, NodeMessage, Now, ProgressNote,
    ProgressStore, Running, Signal, StoreError, from_code,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::attempts::owned::owned_from;
use crate::connection::clock::resolve;
use crate::connection::urgency::Urgency::{Batch, Command};
use crate::connection::urgency::weight;
use crate::error::Answer;
use crate::rows::{collect, key_from, key_params};

#[async_trait]
impl ProgressStore for SqliteStore {
    async fn save_progress(
        &self,
        node: NodeNo,
        batch: Vec<ProgressNote>,
        now: Now,
    ) -> Result<Vec<bool>, StoreError> {
        self.writer
            .write(Batch, batch.iter().map(rows).sum(), move |session| {
                note(session.connection(), node, &batch, resolve(now))
            })
            .await
    }

    async fn find_running(&self, key: AttemptKey) -> Result<Option<Running>, StoreError> {
        self.engine_readers.read(move |db| find_running(db, key)).await
    }

    async fn send_message(&self, node: NodeNo, message: NodeMessage) -> Result<(), StoreError> {
        self.writer
            .write(Batch, 1, move |session| send_message(session.connection(), node, message))
            .await?;
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
        // A reader checks first whether there are messages, because usually there are none and the
        // writer is not needed.
        if !self.engine_readers.read(move |db| has_messages(db, node)).await? {
            return Ok(Vec::new());
        }
        self.writer
            .write(Command, 1, move |session| take_messages(session.connection(), node, limit))
            .await
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
        let (scheduled_at, job_no, sequence, attempt) = key_params(note.key);
        let which = params![scheduled_at, job_no, sequence, attempt, node.0, note.fence.0];
        let runs = is_running.exists(which)?;
        if runs {
            write_note(connection, note, now)?;
        }
        saved.push(runs);
    }
    Ok(saved)
}

fn write_note(connection: &Connection, note: &ProgressNote, now: Timestamp) -> Answer<()> {
    if note.progress.is_some() || note.log.is_some() {
        let (scheduled_at, job_no, sequence, attempt) = key_params(note.key);
        let progress = note.progress.as_ref().map(serde_json::to_string).transpose();
        let progress = progress.map_err(|cause| StoreError::Refused(cause.into()))?;
        connection.prepare_cached(sql!("save_progress"))?.execute(params![
            scheduled_at,
            job_no,
            sequence,
            attempt,
            note.fence.0,
            now.as_micros(),
            progress,
            note.log,
        ])?;
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
    let (scheduled_at, job_no, sequence, _) = key_params(key);
    connection.prepare_cached(sql!("finish_save_checkpoints"))?.execute(params![
        scheduled_at,
        job_no,
        sequence,
        now.as_micros(),
        data
    ])?;
    Ok(())
}

/// Deletes the progress and log of an attempt.
pub(crate) fn delete(connection: &Connection, key: AttemptKey) -> Answer<()> {
    connection.prepare_cached(sql!("finish_delete_notes"))?.execute(key_params(key))?;
    Ok(())
}

pub(crate) fn delete_checkpoint(connection: &Connection, key: AttemptKey) -> Answer<()> {
    let (scheduled_at, job_no, sequence, _) = key_params(key);
    connection
        .prepare_cached(sql!("finish_delete_checkpoints"))?
        .execute((scheduled_at, job_no, sequence))?;
    Ok(())
}

/// Deletes or saves the attachments of an attempt that has finished.
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
    let (scheduled_at, job_no, sequence, attempt) = key_params(shown.key);
    let found: Option<(Option<String>, Option<String>)> = connection
        .prepare_cached(sql!("get_attempt_note"))?
        .query_row(params![scheduled_at, job_no, sequence, attempt, shown.fence.0], |row| {
            Ok((row.get("progress")?, row.get("log")?))
        })
        .optional()?;
    let Some((progress, log)) = found else { return Ok(()) };
    let progress = progress.map(|text| serde_json::from_str(&text)).transpose();
    shown.progress = progress.map_err(|cause| StoreError::corrupt(shown.key, "progress", cause))?;
    shown.log = log;
    Ok(())
}

fn find_running(connection: &Connection, key: AttemptKey) -> Answer<Option<Running>> {
    let mut statement = connection.prepare_cached(sql!("find_running"))?;
    let mut rows = statement.query(key_params(key))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(Running { node: NodeNo(row.get("node_no")?), attempt: owned_from(row)? }))
}

pub(crate) fn send_message(
    connection: &Connection,
    node: NodeNo,
    message: NodeMessage,
) -> Answer<()> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(message.key);
    connection.prepare_cached(sql!("send_message"))?.execute(params![
        node.0, scheduled_at, job_no, sequence, attempt, message.fence.0, message.kind as u8,
    ])?;
    Ok(())
}

fn has_messages(connection: &Connection, node: NodeNo) -> Answer<bool> {
    let sql = sql!("take_messages_find");
    Ok(connection.prepare_cached(sql)?.exists([node.0])?)
}

/// Returns and deletes the oldest messages to a node, oldest first.
fn take_messages(connection: &Connection, node: NodeNo, limit: u32) -> Answer<Vec<NodeMessage>> {
    let mut statement = connection.prepare_cached(sql!("take_messages"))?;
    let mut taken: Vec<(i64, NodeMessage)> =
        collect(statement.query(params![node.0, limit])?, |row| {
            Ok((row.get("message_no")?, message_from(row)?))
        })?;
    taken.sort_unstable_by_key(|(no, _)| *no);
    Ok(taken.into_iter().map(|(_, message)| message).collect())
}

fn message_from(row: &Row<'_>) -> Answer<NodeMessage> {
    let kind = from_code(&MessageKind::ALL, row.get("kind")?, "node message", "kind")?;
    Ok(NodeMessage { key: key_from(row)?, fence: Fence(row.get("fence")?), kind })
}
