//! Stores progress and checkpoints of running attempts, and messages to nodes.

use async_trait::async_trait;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, AttemptNo, NodeNo, Progress};
use evenkeel_store::{
    Attachments, CheckpointDisposition, MessageKind, NodeMessage, Now, OwnedAttempt, ProgressNote,
    ProgressStore, Running, Signal, StoreError,
};

use super::ModelStore;
use super::data::{Data, attempts_of};

/// Progress and log of an attempt, which are valid for one fence.
pub(super) struct NoteRow {
    pub fence: Fence,
    pub progress: Option<Progress>,
    pub log: Option<String>,
}

impl Data {
    fn note(&mut self, node: NodeNo, batch: Vec<ProgressNote>) -> Vec<bool> {
        batch.into_iter().map(|note| self.note_one(node, note)).collect()
    }

    fn note_one(&mut self, node: NodeNo, note: ProgressNote) -> bool {
        let ProgressNote { key, fence, progress, log, checkpoint } = note;
        let under_it = self.runs.get(&key).is_some_and(|run| run.fence == fence);
        if !under_it || !self.running.contains(&(node, key)) {
            return false;
        }
        if progress.is_some() || log.is_some() {
            let fresh = || NoteRow { fence, progress: None, log: None };
            let row = self.notes.entry(key).or_insert_with(fresh);
            if row.fence != fence {
                *row = fresh();
            }
            row.progress = progress.or(row.progress.take());
            row.log = log.or(row.log.take());
        }
        if let Some(data) = checkpoint {
            self.checkpoints.insert(run_of(key), data);
        }
        true
    }

    /// Returns the progress and log of an attempt if it is still running with the same fence.
    pub fn note_of(&self, key: AttemptKey) -> Option<&NoteRow> {
        let run = self.runs.get(&key).filter(|run| run.status == AttemptStatus::Running)?;
        self.notes.get(&key).filter(|note| note.fence == run.fence)
    }

    /// Returns the checkpoint that an earlier attempt of the run saved.
    pub fn checkpoint_of(&self, key: AttemptKey) -> Option<&Vec<u8>> {
        self.checkpoints.get(&run_of(key))
    }

    /// Deletes progress and log, and deletes or replaces the checkpoint, when an attempt finishes.
    pub fn close_attachments(&mut self, key: AttemptKey, attachments: Attachments) {
        if attachments.has_notes {
            self.notes.remove(&key);
        }
        match attachments.checkpoint {
            CheckpointDisposition::Keep => {}
            CheckpointDisposition::Replace(data) => {
                self.checkpoints.insert(run_of(key), data);
            }
            CheckpointDisposition::Delete => {
                self.checkpoints.remove(&run_of(key));
            }
        }
    }

    /// Deletes the progress and log of a finished attempt and the checkpoint of a finished run.
    pub fn forget_leftovers(&mut self, key: AttemptKey) {
        let goes_on = |status| matches!(status, AttemptStatus::Pending | AttemptStatus::Running);
        if !self.runs.get(&key).is_some_and(|run| goes_on(run.status)) {
            self.notes.remove(&key);
        }
        let (first, last) = attempts_of(key).into_inner();
        let waits = self.waiting.range((key.job_no, first)..=(key.job_no, last)).next().is_some();
        if !waits && !self.runs.range(first..=last).any(|(_, run)| goes_on(run.status)) {
            self.checkpoints.remove(&run_of(key));
        }
    }

    fn find_running(&self, key: AttemptKey) -> Option<Running> {
        let run = self.runs.get(&key).filter(|run| run.status == AttemptStatus::Running)?;
        let attempt: OwnedAttempt = self.owned_one(key)?;
        Some(Running { node: run.node?, attempt })
    }

    pub fn send_message(&mut self, node: NodeNo, message: NodeMessage) {
        if self.is_gone(node) {
            return;
        }
        let messages = self.messages.entry(node).or_default();
        if !messages.contains(&message) {
            messages.push(message);
        }
    }

    fn take_messages(&mut self, node: NodeNo, limit: u32) -> Vec<NodeMessage> {
        let Some(messages) = self.messages.get_mut(&node) else { return Vec::new() };
        let taken = messages.len().min(limit as usize);
        messages.drain(..taken).collect()
    }
}

/// Returns the key of a run's checkpoint, which all attempts of the run share.
fn run_of(key: AttemptKey) -> AttemptKey {
    key.with_attempt(AttemptNo::FIRST)
}

#[async_trait]
impl ProgressStore for ModelStore {
    async fn save_progress(
        &self,
        node: NodeNo,
        batch: Vec<ProgressNote>,
        _: Now,
    ) -> Result<Vec<bool>, StoreError> {
        Ok(self.lock().note(node, batch))
    }

    async fn find_running(&self, key: AttemptKey) -> Result<Option<Running>, StoreError> {
        Ok(self.lock().find_running(key))
    }

    async fn send_message(&self, node: NodeNo, message: NodeMessage) -> Result<(), StoreError> {
        self.lock().send_message(node, message);
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
        Ok(self.lock().take_messages(node, limit))
    }
}
