//! Measures how long a crawl has received no data.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::now;

/// Measures how long a crawl has waited for responses without receiving a byte. The time in which
/// the crawler pauses between requests or waits for a permit does not count.
#[derive(Debug, Default)]
pub(crate) struct Silence(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    in_flight: usize,
    /// The time for which requests that have ended were open since the last byte was received.
    before: Duration,
    /// Time since which the open requests received no data, or `None` without open requests.
    since: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct OpenRequest<'a>(&'a Silence);

impl Silence {
    pub(crate) fn begin_request(&self) -> OpenRequest<'_> {
        let mut state = self.state();
        state.in_flight += 1;
        state.since.get_or_insert_with(now);
        OpenRequest(self)
    }

    /// Completes once requests have been open for `longest` without receiving a byte.
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

impl OpenRequest<'_> {
    pub(crate) fn received(&self) {
        let mut state = self.0.state();
        (state.before, state.since) = (Duration::ZERO, Some(now()));
    }
}

impl Drop for OpenRequest<'_> {
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
    async fn silence_adds_up_over_requests_until_a_byte_arrives() {
        let silence = Silence::default();
        let first = silence.begin_request();
        tokio::time::advance(2 * SECOND).await;
        let second = silence.begin_request();
        drop(first);
        tokio::time::advance(SECOND).await;
        drop(second);
        assert_eq!(silence.so_far(), 3 * SECOND);
        // Without open requests, time does not count as silence.
        tokio::time::advance(100 * SECOND).await;
        assert_eq!(silence.so_far(), 3 * SECOND);
        let third = silence.begin_request();
        tokio::time::advance(SECOND).await;
        assert_eq!(silence.so_far(), 4 * SECOND);
        third.received();
        tokio::time::advance(SECOND).await;
        assert_eq!(silence.so_far(), SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn each_byte_restarts_the_wait_for_silence() {
        let silence = Silence::default();
        let open_request = silence.begin_request();
        let began = now();
        tokio::select! {
            () = silence.lasts(3 * SECOND) => {}
            () = async {
                for _ in 0..4 {
                    tokio::time::sleep(2 * SECOND).await;
                    open_request.received();
                }
                std::future::pending::<()>().await;
            } => {}
        }
        assert_eq!(now() - began, 11 * SECOND);
    }
}
