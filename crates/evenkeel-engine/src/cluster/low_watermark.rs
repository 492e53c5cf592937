//! From which scheduled time on this node has something open.
//!
//! Whoever takes over a dead node searches its attempts from the bound that the node announced
//! with its last ping, so nothing may ever be open below it. A ping that raises the bound and a
//! fire or claim of something older must therefore not pass each other: while a ping is on its
//! way with a bound, nothing older than that sets out.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use evenkeel_core::Timestamp;
use tokio::sync::Notify;

/// Keeps the bound and those who pass it apart.
#[derive(Debug, Default)]
pub struct LowWatermark {
    state: Mutex<State>,
    ping_over: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Batches on their way to the store, by batch_no, with their oldest time.
    in_flight: BTreeMap<u64, Timestamp>,
    next_batch_no: u64,
    /// The bound that a ping is taking to the store.
    announcing: Option<Timestamp>,
}

/// Until this is dropped, no ping announces a bound above the batch's oldest time.
#[derive(Debug)]
pub struct InFlight<'a> {
    watermark: &'a LowWatermark,
    batch_no: u64,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.watermark.lock().in_flight.remove(&self.batch_no);
    }
}

/// Until this is dropped, no batch older than the announced bound sets out.
#[derive(Debug)]
pub struct Announcement<'a> {
    watermark: &'a LowWatermark,
    /// What may be announced; `None` if the bound must stay.
    pub oldest_open: Option<Timestamp>,
}

impl Drop for Announcement<'_> {
    fn drop(&mut self) {
        self.watermark.lock().announcing = None;
        self.watermark.ping_over.notify_waiters();
    }
}

impl LowWatermark {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A batch whose oldest scheduled time is `oldest` sets out; if that is not known before the
    /// answer, [`Timestamp::MIN`].
    pub async fn begin_batch(&self, oldest: Timestamp) -> InFlight<'_> {
        loop {
            let ping_over = self.ping_over.notified();
            {
                let mut state = self.lock();
                if state.announcing.is_none_or(|bound| oldest >= bound) {
                    let batch_no = state.next_batch_no;
                    state.next_batch_no += 1;
                    state.in_flight.insert(batch_no, oldest);
                    return InFlight { watermark: self, batch_no };
                }
            }
            ping_over.await;
        }
    }

    /// Whoever sets out from now on has this batch_no or a later one.
    pub fn next_batch_no(&self) -> u64 {
        self.lock().next_batch_no
    }

    /// Has everybody with an earlier batch_no arrived?
    pub fn all_finished_before(&self, batch_no: u64) -> bool {
        self.lock().in_flight.keys().all(|in_flight| *in_flight >= batch_no)
    }

    /// A ping sets out. `oldest_running` says the oldest time of what runs, `horizon` is announced
    /// if nothing does.
    pub fn announce(
        &self,
        oldest_running: impl FnOnce() -> Option<Timestamp>,
        horizon: Timestamp,
    ) -> Announcement<'_> {
        let mut state = self.lock();
        // What is under way may have started meanwhile: look at that first.
        let in_flight = state.in_flight.values().min().copied();
        let oldest = [in_flight, oldest_running()].into_iter().flatten().min();
        let bound = oldest.unwrap_or(horizon).min(horizon);
        let oldest_open = (bound > Timestamp::MIN).then_some(bound);
        state.announcing = oldest_open;
        Announcement { watermark: self, oldest_open }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    #[tokio::test]
    async fn the_bound_is_below_what_runs_and_what_is_under_way() {
        let bound = LowWatermark::default();
        assert_eq!(bound.announce(|| None, at(100)).oldest_open, Some(at(100)));
        assert_eq!(bound.announce(|| Some(at(60)), at(100)).oldest_open, Some(at(60)));
        let batch = bound.begin_batch(at(50)).await;
        assert_eq!(bound.announce(|| Some(at(60)), at(100)).oldest_open, Some(at(50)));
        drop(batch);
        let unknown = bound.begin_batch(Timestamp::MIN).await;
        assert_eq!(bound.announce(|| None, at(100)).oldest_open, None);
        drop(unknown);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_older_than_an_announced_bound_sets_out_before_the_ping_is_over() {
        let bound = LowWatermark::default();
        let ping = bound.announce(|| None, at(100));
        let newer = bound.begin_batch(at(100)).await;
        let older = bound.begin_batch(at(99));
        tokio::pin!(older);
        let early = tokio::time::timeout(Duration::from_secs(9), &mut older).await;
        assert!(early.is_err(), "it must wait for the ping");
        drop(ping);
        older.await;
        drop(newer);
    }
}
