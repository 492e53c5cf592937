//! The memory of all requests in flight, bounded.
//!
//! Every request reserves what its body takes, as received and as parsed, until it is answered. When
//! nothing is left, the next one is refused before its body is read any further. A part of the
//! memory is kept for small requests, so that large ones can't shut everybody out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{Problem, ProblemType};
use crate::state::{App, Settings};

/// A request that takes no more than this is a small one.
const SMALL_MAX: usize = 256 * 1024;
/// One part in this many is kept for small requests.
const SMALL_SHARE: usize = 4;

/// The memory that all requests may take together.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// Kept for small requests.
    small: Arc<Semaphore>,
    /// For all.
    shared: Arc<Semaphore>,
}

/// Too much is in flight.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Busy;

impl From<Busy> for Problem {
    fn from(Busy: Busy) -> Self {
        let detail = "other requests take up all the memory there is for requests; nothing was done, \
                      send it again";
        Self::new(ProblemType::ServerBusy, detail)
    }
}

impl Memory {
    /// For requests that take this many bytes together.
    pub(crate) fn new(bytes: usize) -> Self {
        let small = bytes / SMALL_SHARE;
        Self {
            small: Arc::new(Semaphore::new(small)),
            shared: Arc::new(Semaphore::new(bytes - small)),
        }
    }

    /// Nothing yet.
    pub(crate) fn hold(&self) -> Held {
        Held { memory: self.clone(), small: None, shared: None }
    }

    /// Bytes that are not reserved.
    #[cfg(test)]
    fn free(&self) -> usize {
        self.small.available_permits() + self.shared.available_permits()
    }
}

/// Reserved memory. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    memory: Memory,
    small: Option<OwnedSemaphorePermit>,
    shared: Option<OwnedSemaphorePermit>,
}

impl Held {
    /// Bytes that are reserved.
    fn bytes(&self) -> usize {
        size(self.small.as_ref()) + size(self.shared.as_ref())
    }

    /// Reserves `bytes` in all, if there are so many. What was reserved stays so in any case.
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

    /// The same, waiting for others to end, but no longer than `patience`.
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

    /// A request that is no longer small leaves the share of the small ones.
    fn move_to_shared(&mut self, permit: OwnedSemaphorePermit) {
        merge(&mut self.shared, permit);
        self.small = None;
    }
}

fn size(permit: Option<&OwnedSemaphorePermit>) -> usize {
    permit.map_or(0, OwnedSemaphorePermit::num_permits)
}

/// No request may take 4 GiB, so a number that does not fit stands for one that is never free.
fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn merge(all: &mut Option<OwnedSemaphorePermit>, more: OwnedSemaphorePermit) {
    match all {
        Some(permit) => permit.merge(more),
        None => *all = Some(more),
    }
}

/// How the body of one request is received: what it reserves, and how long it may take.
#[derive(Clone)]
pub(crate) struct Intake {
    held: Arc<Mutex<Held>>,
    /// The body was received and reserved by a layer before.
    pub(crate) is_received: bool,
    /// The longest wait for the next piece.
    pub(crate) idle: Duration,
    /// The longest wait for all of it.
    pub(crate) total: Duration,
}

impl Intake {
    fn new(memory: &Memory, settings: &Settings) -> Self {
        Self {
            held: Arc::new(Mutex::new(memory.hold())),
            is_received: false,
            idle: settings.body_idle,
            total: settings.body_total,
        }
    }

    /// The intake of a request. Every route has one.
    pub(crate) fn of(request: &Request) -> Result<Self, Problem> {
        request.extensions().get().cloned().ok_or_else(|| {
            tracing::error!("a route without the layer that bounds memory");
            Problem::new(ProblemType::Internal, "the log of the server says more")
        })
    }

    /// Reserves this much more, until the request is answered.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), Problem> {
        let mut held = self.lock();
        let bytes = held.bytes().saturating_add(bytes);
        Ok(held.grow_to(bytes)?)
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives every request an intake, and keeps what it reserves until it is answered.
pub(crate) async fn hold(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let intake = Intake::new(app.memory(), &app.settings);
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
    fn reserved_memory_is_bounded_and_given_back() {
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
    fn small_requests_have_a_share_that_large_ones_can_not_take() {
        let memory = Memory::new(64 * MIB);
        let mut large = memory.hold();
        // It comes in pieces, and so begins as a small one.
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
        // With their share taken, small ones use what all may use.
        memory.hold().grow_to(1).unwrap();
        drop(small);
        assert_eq!(memory.free(), 64 * MIB);
    }

    #[test]
    fn more_than_there_ever_is_is_refused() {
        let memory = Memory::new(64 * MIB);
        assert_eq!(memory.hold().grow_to(usize::MAX), Err(Busy));
        assert_eq!(memory.free(), 64 * MIB);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_waits_for_others_to_end() {
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
