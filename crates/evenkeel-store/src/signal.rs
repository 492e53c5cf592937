//! Wake-ups. They carry no data and may be lost, so nothing may depend on one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::broadcast;

/// Something somebody may be waiting for.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Signal {
    /// A job is new or has changed, or a wake has come.
    Jobs,
    /// An attempt waits to be claimed.
    Ready,
    /// A running attempt is to end.
    Cancel,
    /// A node has come or gone.
    Nodes,
    /// A letter for a running attempt has come.
    Messages,
    /// Somebody listens to events, or there are new ones.
    Events,
}

impl Signal {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Jobs, Self::Ready, Self::Cancel, Self::Nodes, Self::Messages, Self::Events];

    /// Its name on the wire.
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

/// Passes wake-ups to everybody in this process who listens.
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
    /// Listens from now on. Subscribe before looking, or a wake-up falls between.
    pub fn subscribe(&self) -> broadcast::Receiver<Signal> {
        self.sender.subscribe()
    }

    /// Wakes the listeners of this process.
    pub fn send(&self, signal: Signal) {
        // No listener is no fault: then nobody waits.
        let _ = self.sender.send(signal);
    }

    /// Says whether what other nodes announce can be heard.
    pub fn set_remote_lost(&self, is_deaf: bool) {
        self.is_deaf.store(is_deaf, Ordering::Relaxed);
    }

    /// Can nothing be heard from other nodes? Then polling must do.
    pub fn is_remote_lost(&self) -> bool {
        self.is_deaf.load(Ordering::Relaxed)
    }
}
