//! Signals that wake waiting loops. Signals carry no data and can be lost, so nothing may depend on
//! their arrival.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use evenkeel_core::named_enum;
use tokio::sync::broadcast;

named_enum! {
    /// Notifications between nodes contain the names of signals.
    #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
    pub enum Signal {
        /// A job was created or changed, or a retry or trigger was added.
        Jobs => "jobs",
        /// An attempt was queued.
        Ready => "ready",
        /// A running attempt was asked to stop.
        Cancel => "cancel",
        /// A node joined or left.
        Nodes => "nodes",
        /// A message to a node was stored.
        Messages => "messages",
        /// Events were published, or the first client listens for events.
        Events => "events",
    }
}

/// Sends and receives the signals of this process.
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
    /// Receives all signals from now on. Subscribe before you read the state from the store, so
    /// that you do not miss a signal between the two steps.
    pub fn subscribe(&self) -> broadcast::Receiver<Signal> {
        self.sender.subscribe()
    }

    /// Wakes the subscribers of this process.
    pub fn send(&self, signal: Signal) {
        // An error means that the process has no subscribers.
        let _ = self.sender.send(signal);
    }

    /// Records whether signals of other nodes can be received.
    pub fn set_remote_lost(&self, is_deaf: bool) {
        self.is_deaf.store(is_deaf, Ordering::Relaxed);
    }

    /// Returns true if signals of other nodes cannot be received, so that changes are noticed only
    /// by polling.
    pub fn is_remote_lost(&self) -> bool {
        self.is_deaf.load(Ordering::Relaxed)
    }
}
