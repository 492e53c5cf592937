//! Verbs of running attempts: what they say before they end, and what is said to them.

use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, NodeNo, Progress};

use crate::verbs::verbs;
use crate::{Now, OwnedAttempt};

/// What a running attempt says. What is `None` stays as it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgressNote {
    /// Which one.
    pub key: AttemptKey,
    /// The right to say so.
    pub fence: Fence,
    /// How far it has come.
    pub progress: Option<Progress>,
    /// What is kept of what it has printed so far, as
    /// [`RunLog::encode`](evenkeel_core::RunLog::encode) writes it. Whoever notes it bounds it; it
    /// holds no NUL.
    pub log: Option<String>,
    /// What the next attempt of the run is to be given.
    pub checkpoint: Option<Vec<u8>>,
}

/// What becomes of what an attempt said while it ran.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attachments {
    /// It has notes in the store. They go: its results say more.
    pub has_notes: bool,
    /// What becomes of its run's checkpoint.
    pub checkpoint: CheckpointDisposition,
}

/// What becomes of a run's checkpoint when an attempt ends.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum CheckpointDisposition {
    /// It stays as it is, or there is none.
    #[default]
    AsIs,
    /// This takes its place.
    Save(Vec<u8>),
    /// Nobody needs it any more.
    Forget,
}

/// Who runs an attempt.
#[derive(Clone, PartialEq, Debug)]
pub struct Running {
    /// This node.
    pub node: NodeNo,
    /// And this is what it runs.
    pub attempt: OwnedAttempt,
}

/// Something somebody far away says to the node that runs an attempt.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MessageKind {
    /// The body lives.
    Heartbeat,
    /// The attempt's end is in the store: its body can be let go.
    Ended,
}

impl MessageKind {
    /// All of them, in the order of their stored numbers.
    pub const ALL: [Self; 2] = [Self::Heartbeat, Self::Ended];
}

/// A word for the body of an attempt.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeMessage {
    /// Which attempt.
    pub key: AttemptKey,
    /// Under this fence.
    pub fence: Fence,
    /// The word.
    pub kind: MessageKind,
}

verbs! {
    /// What attempts say while they run, and what is said to them.
    trait ProgressStore {}

    /// Writes down what attempts of `node` say, each if it runs there under the fence. Says which
    /// do. Attempts do not spoil each other's chances. An attempt is in the batch once.
    ///
    /// [`get_attempt`](crate::AttemptStore::get_attempt) shows it while the attempt runs under that fence: one
    /// that goes back into the queue starts with nothing said. A checkpoint is handed to whoever
    /// next claims an attempt of the run, and stays until a [`Finish`](crate::Finish) says
    /// otherwise. What is left after the end, because whoever ended the attempt did not know of
    /// it, [`prune`](crate::AttemptStore::prune) forgets.
    write fn save_progress(node: NodeNo, batch: Vec<ProgressNote>, now: Now) -> Vec<bool>;

    /// Who runs the attempt, if anybody does.
    read fn find_running(key: AttemptKey) -> Option<Running>;

    /// Leaves a letter for `node`. The same one again changes nothing. One that says
    /// [`MessageKind::Ended`] wakes the node ([`Signal::Messages`](crate::Signal)). One for a node that
    /// has gone is dropped.
    write fn send_message(node: NodeNo, letter: NodeMessage) -> ();

    /// Takes the letters for `node`, at most `limit`. Nobody gets them again: each may be lost,
    /// and nothing may depend on one. Those of a node that has gone are forgotten.
    write fn take_messages(node: NodeNo, limit: u32) -> Vec<NodeMessage>;
}
