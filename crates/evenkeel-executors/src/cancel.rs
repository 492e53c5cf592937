//! Cancels a running attempt.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

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
pub struct Cancel(Option<Arc<Shared>>);

/// Cancels a running attempt. Dropping a `CancelHandle` cancels nothing.
#[derive(Debug)]
pub struct CancelHandle(Arc<Shared>);

/// Every attempt has one, so it is small. A `tokio::sync::watch` channel takes ten times as long to
/// create and drop.
#[derive(Debug, Default)]
struct Shared {
    reason: OnceLock<CancelReason>,
    cancelled: Notify,
}

/// Returns a handle that cancels an attempt, and the `Cancel` that the attempt checks.
pub fn cancellation() -> (CancelHandle, Cancel) {
    let shared = Arc::new(Shared::default());
    (CancelHandle(Arc::clone(&shared)), Cancel(Some(shared)))
}

impl CancelHandle {
    /// Cancels the attempt. Later calls do not change the reason of the cancellation.
    pub fn cancel(&self, reason: CancelReason) {
        if self.0.reason.set(reason).is_ok() {
            self.0.cancelled.notify_waiters();
        }
    }

    pub fn reason(&self) -> Option<CancelReason> {
        self.0.reason.get().copied()
    }
}

impl Cancel {
    /// A cancellation that never happens.
    pub const fn none() -> Self {
        Self(None)
    }

    pub fn reason(&self) -> Option<CancelReason> {
        self.0.as_ref().and_then(|shared| shared.reason.get().copied())
    }

    /// Completes when the attempt is cancelled, or never if the attempt is not cancelled.
    pub async fn cancelled(&self) -> CancelReason {
        if let Some(shared) = &self.0 {
            // The wait begins before the check, so that a cancellation in between ends the wait.
            let cancelled = shared.cancelled.notified();
            if shared.reason.get().is_none() {
                cancelled.await;
            }
            if let Some(reason) = shared.reason.get() {
                return *reason;
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

    #[tokio::test]
    async fn all_waits_end_when_the_attempt_is_cancelled() {
        let (handle, cancel) = cancellation();
        let waits = [cancel.clone(), cancel]
            .map(|cancel| tokio::spawn(async move { cancel.cancelled().await }));
        tokio::task::yield_now().await;
        handle.cancel(CancelReason::TooLong);
        for wait in waits {
            assert_eq!(wait.await.unwrap(), CancelReason::TooLong);
        }
    }
}
