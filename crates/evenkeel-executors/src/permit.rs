//! Limits how many attempts of an executor run concurrently on a node.

use evenkeel_core::Progress;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{CancelReason, Invocation, interrupted};

/// Waits for a permit to run the attempt. While no permit is free, `waiting` is the progress
/// message of the attempt.
pub(crate) async fn acquire<'a>(
    permits: &'a Semaphore,
    invocation: &Invocation,
    waiting: &str,
) -> Result<SemaphorePermit<'a>, CancelReason> {
    if let Some(reason) = invocation.cancel.reason() {
        return Err(reason);
    }
    if let Ok(permit) = permits.try_acquire() {
        return Ok(permit);
    }
    let report = |message: &str| {
        let message = Some(message.to_owned());
        invocation.live.progress(Progress { message, ..Progress::default() });
    };
    report(waiting);
    let mut lease = invocation.lease.clone();
    tokio::select! {
        biased;
        reason = interrupted(&invocation.cancel, &mut lease) => Err(reason),
        permit = permits.acquire() => {
            report("");
            // The semaphore is never closed.
            permit.map_err(|_| CancelReason::ShuttingDown)
        }
    }
}
