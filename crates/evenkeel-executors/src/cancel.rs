//! Cancels a running attempt.

use tokio::sync::watch;

/// Why an attempt has to stop.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum CancelReason {
    /// A client cancelled the run.
    Requested,
    /// The node's lease ran out.
    LeaseLost,
    /// The node is shutting down, and another node runs the attempt again.
    ShuttingDown,
    /// The attempt ran longer than `max_allowed_duration`.
    TooLong,
    /// A blackout of the job has begun.
    Blackout,
    /// A newer run of the job replaces this run (`overlap: replace`).
    Superseded,
    /// The receiver of an HTTP call has reported the result of the attempt, and the result is
    /// stored.
    EndReported,
}

/// Tells a running attempt whether and why it is cancelled; clones are cheap.
#[derive(Clone, Debug)]
pub struct Cancel(Option<watch::Receiver<Option<CancelReason>>>);

/// Cancels a running attempt. Dropping a `CancelHandle` cancels nothing.
#[derive(Debug)]
pub struct CancelHandle(watch::Sender<Option<CancelReason>>);

/// Returns a handle that cancels an attempt, and the `Cancel` that the attempt checks.
pub fn cancellation() -> (CancelHandle, Cancel) {
    let (sender, receiver) = watch::channel(None);
    (CancelHandle(sender), Cancel(Some(receiver)))
}

impl CancelHandle {
    /// Cancels the attempt. Later calls do not change the reason of the cancellation.
    pub fn cancel(&self, reason: CancelReason) {
        self.0.send_if_modified(|current| {
            let first = current.is_none();
            current.get_or_insert(reason);
            first
        });
    }

    pub fn reason(&self) -> Option<CancelReason> {
        *self.0.borrow()
    }
}

impl Cancel {
    /// A cancellation that never happens.
    pub const fn none() -> Self {
        Self(None)
    }

    pub fn reason(&self) -> Option<CancelReason> {
        self.0.as_ref().and_then(|receiver| *receiver.borrow())
    }

    /// Completes when the attempt is cancelled, or never if the attempt is not cancelled.
    pub async fn cancelled(&self) -> CancelReason {
        if let Some(receiver) = &self.0 {
            let mut receiver = receiver.clone();
            if let Ok(reason) = receiver.wait_for(Option::is_some).await
                && let Some(reason) = *reason
            {
                return reason;
            }
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn first_reason_of_a_cancellation_stays() {
        let (handle, cancel) = cancellation();
        assert_eq!(cancel.reason(), None);
        handle.cancel(CancelReason::ShuttingDown);
        handle.cancel(CancelReason::LeaseLost);
        drop(handle);
        assert_eq!(cancel.cancelled().await, CancelReason::ShuttingDown);
        assert_eq!(cancel.reason(), Some(CancelReason::ShuttingDown));
    }
}
