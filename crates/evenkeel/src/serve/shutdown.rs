//! Stop signals.

use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::data_dir::DataDir;
use crate::Result;
use crate::failure::Because as _;

pub struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    pub fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).because("can't listen for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits for a stop signal. Returns 128 plus the signal number, the usual exit code of a
    /// process that a signal ended.
    pub async fn wait(&mut self) -> i32 {
        tokio::select! {
            _ = self.terminate.recv() => 128 + SignalKind::terminate().as_raw_value(),
            _ = self.interrupt.recv() => 128 + SignalKind::interrupt().as_raw_value(),
        }
    }

    /// Exits the process immediately when a second stop signal is received.
    pub fn exit_on_next_signal(mut self, dir: Arc<DataDir>) {
        tokio::spawn(async move {
            let code = self.wait().await;
            tracing::warn!(
                "second signal received; exiting at once (the next start takes over running executions)"
            );
            dir.remove("server.json");
            std::process::exit(code);
        });
    }
}
