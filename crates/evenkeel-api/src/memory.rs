//! Limits the memory that all requests in progress use together.
//!
//! Each request reserves memory for its body and for the parsed JSON until it is answered. A
//! request that cannot reserve memory is refused before more of its body is read. Part of the
//! memory is reserved for small requests, so that large requests cannot block them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// Maximum size of a small request, in bytes.
const SMALL_MAX: usize = 256 * 1024;
/// The memory reserved for small requests is the total memory divided by this number.
const SMALL_SHARE: usize = 4;

/// The memory budget of all requests in progress.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// Set aside for small requests.
    small: Arc<Semaphore>,
    /// For all requests.
    shared: Arc<Semaphore>,
}

/// No memory is left.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Busy;

impl From<Busy> for Problem {
    fn from(Busy: Busy) -> Self {
        let detail =
            "other requests use all the memory; nothing was changed, send the request again";
        Self::new(ProblemType::ServerBusy, detail)
    }
}

impl Memory {
    pub(crate) fn new(bytes: usize) -> Self {
        let small = bytes / SMALL_SHARE;
        Self {
            small: Arc::new(Semaphore::new(small)),
            shared: Arc::new(Semaphore::new(bytes - small)),
        }
    }

    /// Returns an empty reservation.
    pub(crate) fn hold(&self) -> Held {
        Held { memory: self.clone(), small: None, shared: None }
    }

    #[cfg(test)]
    fn free(&self) -> usize {
        self.small.available_permits() + self.shared.available_permits()
    }
}

/// Reserved memory, released on drop.
#[derive(Debug)]
pub(crate) struct Held {
    memory: Memory,
    small: Option<OwnedSemaphorePermit>,
    shared: Option<OwnedSemaphorePermit>,
}

impl Held {
    fn bytes(&self) -> usize {
        size(self.small.as_ref()) + size(self.shared.as_ref())
    }

    /// Grows the reservation to `bytes`. If not enough memory is free, the reservation keeps its
    /// size.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), Busy> {
        let Some(missing) = bytes.checked_sub(self.bytes()).filter(|more| *more > 0) else {
            return Ok(());
        };
        if bytes <= SMALL_MAX && self.shared.is_none() {
            let small = Arc::clone(&self.memory.small);
            if let Ok(permit) = small.try_acquire_many_owned(permits(missing)) {
                merge(&mut self.small, permit);
                return Ok(());
            }
        }
        let shared = Arc::clone(&self.memory.shared);
        let missing = permits(bytes - size(self.shared.as_ref()));
        let permit = shared.try_acquire_many_owned(missing).map_err(|_| Busy)?;
        self.move_to_shared(permit);
        Ok(())
    }

    /// Grows the reservation to `bytes`, waiting up to `patience` for other requests to release
    /// memory.
    pub(crate) async fn wait_to_grow_to(
        &mut self,
        bytes: usize,
        patience: Duration,
    ) -> Result<(), Busy> {
        if self.grow_to(bytes).is_ok() {
            return Ok(());
        }
        let shared = Arc::clone(&self.memory.shared);
        let missing = permits(bytes - size(self.shared.as_ref()));
        match tokio::time::timeout(patience, shared.acquire_many_owned(missing)).await {
            Ok(Ok(permit)) => {
                self.move_to_shared(permit);
                Ok(())
            }
            _ => Err(Busy),
        }
    }

    /// Moves the reservation of a request that is no longer small out of the memory for small
    /// requests.
    fn move_to_shared(&mut self, permit: OwnedSemaphorePermit) {
        merge(&mut self.shared, permit);
        self.small = None;
    }
}

fn size(permit: Option<&OwnedSemaphorePermit>) -> usize {
    permit.map_or(0, OwnedSemaphorePermit::num_permits)
}

/// Sizes of 4 GiB or more become `u32::MAX`, which exceeds every memory budget.
fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn merge(all: &mut Option<OwnedSemaphorePermit>, more: OwnedSemaphorePermit) {
    match all {
        Some(permit) => permit.merge(more),
        None => *all = Some(more),
    }
}

/// The memory reservation of one request, and the time limits for receiving its body.
#[derive(Clone)]
pub(crate) struct Intake {
    held: Arc<Mutex<Held>>,
    /// True if an outer layer has already received the body and reserved its memory.
    pub(crate) is_received: bool,
    /// Maximum time to wait for the next bytes of the body.
    pub(crate) idle: Duration,
    /// Maximum time to wait for the whole body.
    pub(crate) total: Duration,
}

impl Intake {
    /// Returns the [`Intake`] of a request, which the layer [`hold`] added.
    pub(crate) fn of(request: &Request) -> Result<Self, Problem> {
        request.extensions().get().cloned().ok_or_else(|| {
            tracing::error!(
                "bug in the server: this route was registered without a memory limit; answering 500"
            );
            Problem::internal()
        })
    }

    /// Reserves `bytes` in addition to the memory already reserved, until the request is answered.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), Problem> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = held.bytes().saturating_add(bytes);
        Ok(held.grow_to(bytes)?)
    }
}

/// Adds an [`Intake`] to every request, and holds its memory reservation until the request is
/// answered.
pub(crate) async fn hold(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let intake = Intake {
        held: Arc::new(Mutex::new(app.memory().hold())),
        is_received: false,
        idle: app.settings.body_idle,
        total: app.settings.body_total,
    };
    request.extensions_mut().insert(intake.clone());
    let response = next.run(request).await;
    drop(intake);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn reserved_memory_is_bounded_and_released() {
        let memory = Memory::new(64 * MIB);
        let mut first = memory.hold();
        first.grow_to(40 * MIB).unwrap();
        let mut second = memory.hold();
        assert_eq!(second.grow_to(9 * MIB), Err(Busy));
        second.grow_to(8 * MIB).unwrap();
        assert_eq!(second.grow_to(8 * MIB + 1), Err(Busy));
        drop(first);
        second.grow_to(48 * MIB).unwrap();
        drop(second);
        assert_eq!(memory.free(), 64 * MIB);
    }

    #[test]
    fn large_requests_cannot_take_the_share_of_small_ones() {
        let memory = Memory::new(64 * MIB);
        let mut large = memory.hold();
        // The reservation of a large request starts small and grows, as if its body arrived in
        // chunks.
        for bytes in (0..=48 * MIB).step_by(SMALL_MAX) {
            large.grow_to(bytes).unwrap();
        }
        assert_eq!(large.grow_to(48 * MIB + 1), Err(Busy));
        let mut small: Vec<Held> = (0..64).map(|_| memory.hold()).collect();
        for held in &mut small {
            held.grow_to(SMALL_MAX).unwrap();
        }
        assert_eq!(memory.free(), 0);
        assert_eq!(memory.hold().grow_to(1), Err(Busy));
        drop(large);
        // Small requests may use the shared memory once the memory for small requests is used up.
        memory.hold().grow_to(1).unwrap();
        drop(small);
        assert_eq!(memory.free(), 64 * MIB);
    }

    #[test]
    fn reservation_larger_than_the_total_is_refused() {
        let memory = Memory::new(64 * MIB);
        assert_eq!(memory.hold().grow_to(usize::MAX), Err(Busy));
        assert_eq!(memory.free(), 64 * MIB);
    }

    #[tokio::test(start_paused = true)]
    async fn stream_waits_for_other_requests_to_end() {
        let memory = Memory::new(64 * MIB);
        let mut first = memory.hold();
        first.grow_to(48 * MIB).unwrap();
        let mut second = memory.hold();
        let patience = Duration::from_secs(10);
        assert_eq!(second.wait_to_grow_to(MIB, patience).await, Err(Busy));
        let (waited, ()) = tokio::join!(second.wait_to_grow_to(MIB, patience), async {
            tokio::task::yield_now().await;
            drop(first);
        });
        assert_eq!((waited, second.bytes()), (Ok(()), MIB));
    }
}
