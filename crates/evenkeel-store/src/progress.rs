//! Progress, logs and checkpoints of running attempts, and messages between nodes about them.

use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, NodeNo, Progress};

use crate::verbs::verbs;
use crate::{Now, OwnedAttempt};

/// What a running attempt reports. Fields that are `None` stay as they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgressNote {
    pub key: AttemptKey,
    pub fence: Fence,
    pub progress: Option<Progress>,
    /// The output so far, as [`RunLog::encode`](evenkeel_core::RunLog::encode) writes it. The
    /// caller limits its size; it has no NUL.
    pub log: Option<String>,
    /// Passed to the next attempt of the run.
    pub checkpoint: Option<Vec<u8>>,
}

/// What happens to the notes and the checkpoint of an attempt when it ends.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attachments {
    /// The attempt has notes in the store. They are deleted, since the results replace them.
    pub has_notes: bool,
    pub checkpoint: CheckpointDisposition,
}

/// What happens to the checkpoint of a run when an attempt ends.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum CheckpointDisposition {
    /// The checkpoint, if any, stays.
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

#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MessageKind {
    /// The body is alive.
    Heartbeat,
    /// The end of the attempt is stored, so its body can be stopped.
    Ended,
}

impl MessageKind {
    /// In the order of the stored codes.
    pub const ALL: [Self; 2] = [Self::Heartbeat, Self::Ended];
}

/// A message about an attempt to the node that runs it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeMessage {
    pub key: AttemptKey,
    pub fence: Fence,
    pub kind: MessageKind,
}

verbs! {
    trait ProgressStore {}

    /// Saves what attempts of `node` report, each if it runs there under the fence. Returns which
    /// ones do. A refused note does not affect the others. Each attempt occurs once in the batch.
    ///
    /// [`get_attempt`](crate::AttemptStore::get_attempt) returns notes while the attempt runs under
    /// their fence; an attempt that goes back to the queue starts without notes. The next claim of
    /// an attempt of the run gets the checkpoint, which stays until a [`Finish`](crate::Finish)
    /// replaces or deletes it.
    /// [`prune`](crate::AttemptStore::prune) deletes notes and checkpoints that were left over
    /// because the node that stored the end did not know of them.
    write fn save_progress(node: NodeNo, batch: Vec<ProgressNote>, now: Now) -> Vec<bool>;

    /// Returns the node that runs the attempt.
    read fn find_running(key: AttemptKey) -> Option<Running>;

    /// Sends a message to `node`. Sending it twice has no further effect. [`MessageKind::Ended`]
    /// also wakes the node ([`Signal::Messages`](crate::Signal)). A message to a node that has left
    /// is dropped.
    write fn send_message(node: NodeNo, letter: NodeMessage) -> ();

    /// Returns and deletes up to `limit` messages to `node`. Each message can be lost, so nothing
    /// may depend on one. The messages of a node that has left are deleted.
    write fn take_messages(node: NodeNo, limit: u32) -> Vec<NodeMessage>;
}
