//! Telling a body to stop.

use tokio::sync::watch;

/// Why a body has to stop.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum CancelReason {
    /// Somebody asked for it.
    Requested,
    /// The node may no longer run it.
    LeaseLost,
    /// The node is going away and hands it back.
    ShuttingDown,
    /// It went on for longer than the job allows.
    TooLong,
    /// A blackout of its job has begun.
    Blackout,
    /// A newer time of its job takes its place.
    Superseded,
    /// Whoever was called has reported its end, and the store knows.
    Settled,
}

/// The ear of a cancellation. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Cancel(Option<watch::Receiver<Option<CancelReason>>>);

/// The voice of a cancellation. Dropping it cancels nothing.
#[derive(Debug)]
pub struct CancelHandle(watch::Sender<Option<CancelReason>>);

/// A cancellation that has not happened yet.
pub fn cancellation() -> (CancelHandle, Cancel) {
    let (sender, receiver) = watch::channel(None);
    (CancelHandle(sender), Cancel(Some(receiver)))
}

impl CancelHandle {
    /// Tells the body to stop. The first reason stays.
    pub fn cancel(&self, reason: CancelReason) {
        self.0.send_if_modified(|current| {
            let first = current.is_none();
            current.get_or_insert(reason);
            first
        });
    }

    /// The reason, if it has happened.
    pub fn reason(&self) -> Option<CancelReason> {
        *self.0.borrow()
    }
}

impl Cancel {
    /// One that never happens.
    pub const fn none() -> Self {
        Self(None)
    }

    /// The reason, if it has happened.
    pub fn reason(&self) -> Option<CancelReason> {
        self.0.as_ref().and_then(|receiver| *receiver.borrow())
    }

    /// Waits until it happens, forever if need be.
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
    async fn the_first_reason_stays() {
        let (handle, cancel) = cancellation();
        assert_eq!(cancel.reason(), None);
        handle.cancel(CancelReason::ShuttingDown);
        handle.cancel(CancelReason::LeaseLost);
        drop(handle);
        assert_eq!(cancel.cancelled().await, CancelReason::ShuttingDown);
        assert_eq!(cancel.reason(), Some(CancelReason::ShuttingDown));
    }
}
