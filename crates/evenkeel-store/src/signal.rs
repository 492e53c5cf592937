//! Wake-ups. They carry no data and may be lost, so nothing may depend on one.

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
    Letters,
    /// Somebody listens to events, or there are new ones.
    Events,
}

impl Signal {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Jobs, Self::Ready, Self::Cancel, Self::Nodes, Self::Letters, Self::Events];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Ready => "ready",
            Self::Cancel => "cancel",
            Self::Nodes => "nodes",
            Self::Letters => "letters",
            Self::Events => "events",
        }
    }
}

/// Passes wake-ups to everybody in this process who listens.
#[derive(Clone, Debug)]
pub struct Signals(broadcast::Sender<Signal>);

impl Default for Signals {
    fn default() -> Self {
        Self(broadcast::Sender::new(256))
    }
}

impl Signals {
    /// Listens from now on. Subscribe before looking, or a wake-up falls between.
    pub fn subscribe(&self) -> broadcast::Receiver<Signal> {
        self.0.subscribe()
    }

    /// Wakes the listeners of this process.
    pub fn send(&self, signal: Signal) {
        // No listener is no fault: then nobody waits.
        let _ = self.0.send(signal);
    }
}
