//! Progress, logs and checkpoints of running attempts, and messages between nodes about these
//! attempts.

use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, NodeNo, Progress, named_enum};

use crate::verbs::verbs;
use crate::{Now, OwnedAttempt};

/// Progress, log or checkpoint that a running attempt reports; a field that is `None` keeps its
/// stored value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgressNote {
    pub key: AttemptKey,
    pub fence: Fence,
    pub progress: Option<Progress>,
    /// Output of the attempt so far, encoded by [`RunLog::encode`](evenkeel_core::RunLog::encode).
    /// The caller limits the size of the output and removes NUL characters.
    pub log: Option<String>,
    /// The next attempt of the run gets this checkpoint.
    pub checkpoint: Option<Vec<u8>>,
}

/// What happens to the progress, log and checkpoint of an attempt when it finishes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attachments {
    /// True if the store has progress or a log of the attempt. When the attempt finishes, its
    /// progress and log are deleted, because the result replaces them.
    pub has_notes: bool,
    pub checkpoint: CheckpointDisposition,
}

/// What happens to the checkpoint of a run when an attempt finishes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum CheckpointDisposition {
    /// Keeps the checkpoint, if any.
    #[default]
    Keep,
    /// Replaces the checkpoint.
    Replace(Vec<u8>),
    /// Deletes the checkpoint.
    Delete,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Running {
    pub node: NodeNo,
    pub attempt: OwnedAttempt,
}

named_enum! {
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum MessageKind {
        /// The attempt is alive, which restarts its time-out.
        Heartbeat => "heartbeat",
        /// The result of the attempt is already stored, so the node can stop its execution.
        Ended => "ended",
    }
}

/// A message about an attempt to the node that runs the attempt.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeMessage {
    pub key: AttemptKey,
    pub fence: Fence,
    pub kind: MessageKind,
}

verbs! {
    trait ProgressStore {}

    /// Saves progress, logs and checkpoints of attempts, each only if the attempt runs on `node`
    /// with the given fence. Returns true for each progress note that was saved. A rejected
    /// progress note does not affect the other notes of the batch. Each attempt may occur only once
    /// in the batch.
    ///
    /// [`get_attempt`](crate::AttemptStore::get_attempt) returns progress and log while the attempt
    /// runs with the same fence. A requeued attempt starts without progress and log. The next claim
    /// of an attempt of the run gets the checkpoint. The checkpoint is kept until a
    /// [`Finish`](crate::Finish) replaces or deletes it. [`prune`](crate::AttemptStore::prune)
    /// deletes progress, logs and checkpoints that remained because the node that stored the result
    /// did not know of them.
    write fn save_progress(node: NodeNo, batch: Vec<ProgressNote>, now: Now) -> Vec<bool>;

    /// Returns the attempt and the node that runs it.
    read fn find_running(key: AttemptKey) -> Option<Running>;

    /// Sends a message to `node`. Sending the same message twice has no further effect.
    /// [`MessageKind::Ended`] also wakes the node with [`Signal::Messages`](crate::Signal). A
    /// message to a node that has left is dropped.
    write fn send_message(node: NodeNo, letter: NodeMessage) -> ();

    /// Returns and deletes up to `limit` messages to `node`. A message can be lost, so nothing may
    /// depend on its arrival. Messages to a node that has left are deleted.
    write fn take_messages(node: NodeNo, limit: u32) -> Vec<NodeMessage>;
}
