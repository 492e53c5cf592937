//! For how long no site has answered a crawl.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::now;

/// Measures for how long a crawl has waited for answers without getting a byte. The time in which it
/// waits by itself, between requests or for its turn, does not count.
#[derive(Debug, Default)]
pub(crate) struct Silence(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    in_flight: usize,
    /// Silence of requests that have ended since the last byte.
    before: Duration,
    /// Since when the requests under way are silent, if there are any.
    since: Option<Instant>,
}

/// A request that is under way.
#[derive(Debug)]
pub(crate) struct Asking<'a>(&'a Silence);

impl Silence {
    /// A request is sent.
    pub(crate) fn ask(&self) -> Asking<'_> {
        let mut state = self.state();
        state.in_flight += 1;
        state.since.get_or_insert_with(now);
        Asking(self)
    }

    /// Resolves when no byte has come for `longest`.
    pub(crate) async fn lasts(&self, longest: Duration) {
        loop {
            let left = longest.saturating_sub(self.so_far());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }

    fn so_far(&self) -> Duration {
        let state = self.state();
        state.before + state.since.map_or(Duration::ZERO, |since| now() - since)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asking<'_> {
    /// Something of its answer has come.
    pub(crate) fn heard(&self) {
        let mut state = self.0.state();
        (state.before, state.since) = (Duration::ZERO, Some(now()));
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_flight -= 1;
        if state.in_flight == 0
            && let Some(since) = state.since.take()
        {
            state.before += now() - since;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn silence_adds_up_over_requests_and_ends_with_a_byte() {
        let silence = Silence::default();
        let first = silence.ask();
        tokio::time::advance(2 * SECOND).await;
        let second = silence.ask();
        drop(first);
        tokio::time::advance(SECOND).await;
        drop(second);
        assert_eq!(silence.so_far(), 3 * SECOND);
        // Nothing is waited for.
        tokio::time::advance(100 * SECOND).await;
        assert_eq!(silence.so_far(), 3 * SECOND);
        let third = silence.ask();
        tokio::time::advance(SECOND).await;
        assert_eq!(silence.so_far(), 4 * SECOND);
        third.heard();
        tokio::time::advance(SECOND).await;
        assert_eq!(silence.so_far(), SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_silence_starts_anew_with_each_byte() {
        let silence = Silence::default();
        let asking = silence.ask();
        let began = now();
        tokio::select! {
            () = silence.lasts(3 * SECOND) => {}
            () = async {
                for _ in 0..4 {
                    tokio::time::sleep(2 * SECOND).await;
                    asking.heard();
                }
                std::future::pending::<()>().await;
            } => {}
        }
        assert_eq!(now() - began, 11 * SECOND);
    }
}
