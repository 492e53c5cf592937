//! Signals that wake listeners. They carry no data and can be lost, so nothing may depend on one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::broadcast;

#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Signal {
    /// A job is new or changed, or a delayed attempt was added.
    Jobs,
    /// An attempt was queued.
    Ready,
    /// A running attempt was asked to end.
    Cancel,
    /// A node joined or left.
    Nodes,
    /// A message to a node was stored.
    Messages,
    /// Events were published, or the first listener arrived.
    Events,
}

impl Signal {
    pub const ALL: [Self; 6] =
        [Self::Jobs, Self::Ready, Self::Cancel, Self::Nodes, Self::Messages, Self::Events];

    /// The name in notifications between nodes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Ready => "ready",
            Self::Cancel => "cancel",
            Self::Nodes => "nodes",
            Self::Messages => "messages",
            Self::Events => "events",
        }
    }
}

/// The signals of this process.
#[derive(Clone, Debug)]
pub struct Signals {
    sender: broadcast::Sender<Signal>,
    is_deaf: Arc<AtomicBool>,
}

impl Default for Signals {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(256), is_deaf: Arc::default() }
    }
}

impl Signals {
    /// Listens from now on. Subscribe before you read the state, so that no signal is missed in
    /// between.
    pub fn subscribe(&self) -> broadcast::Receiver<Signal> {
        self.sender.subscribe()
    }

    /// Wakes the listeners of this process.
    pub fn send(&self, signal: Signal) {
        // An error means that there is no listener.
        let _ = self.sender.send(signal);
    }

    /// Records whether signals of other nodes can be received.
    pub fn set_remote_lost(&self, is_deaf: bool) {
        self.is_deaf.store(is_deaf, Ordering::Relaxed);
    }

    /// Returns true if signals of other nodes cannot be received, so that only polling helps.
    pub fn is_remote_lost(&self) -> bool {
        self.is_deaf.load(Ordering::Relaxed)
    }
}
