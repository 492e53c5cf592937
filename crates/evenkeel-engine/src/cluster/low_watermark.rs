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
    /// Batches on their way to the store, by ticket, with their oldest time.
    under_way: BTreeMap<u64, Timestamp>,
    next_ticket: u64,
    /// The bound that a ping is taking to the store.
    announcing: Option<Timestamp>,
}

/// Until this is dropped, no ping announces a bound above the batch's oldest time.
#[derive(Debug)]
pub struct UnderWay<'a> {
    bound: &'a LowWatermark,
    ticket: u64,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.bound.lock().under_way.remove(&self.ticket);
    }
}

/// Until this is dropped, no batch older than the announced bound sets out.
#[derive(Debug)]
pub struct Announcing<'a> {
    bound: &'a LowWatermark,
    /// What may be announced; `None` if the bound must stay.
    pub oldest_open: Option<Timestamp>,
}

impl Drop for Announcing<'_> {
    fn drop(&mut self) {
        self.bound.lock().announcing = None;
        self.bound.ping_over.notify_waiters();
    }
}

impl LowWatermark {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A batch whose oldest scheduled time is `oldest` sets out; if that is not known before the
    /// answer, [`Timestamp::MIN`].
    pub async fn set_out(&self, oldest: Timestamp) -> UnderWay<'_> {
        loop {
            let ping_over = self.ping_over.notified();
            {
                let mut state = self.lock();
                if state.announcing.is_none_or(|bound| oldest >= bound) {
                    let ticket = state.next_ticket;
                    state.next_ticket += 1;
                    state.under_way.insert(ticket, oldest);
                    return UnderWay { bound: self, ticket };
                }
            }
            ping_over.await;
        }
    }

    /// Whoever sets out from now on has this ticket or a later one.
    pub fn next_ticket(&self) -> u64 {
        self.lock().next_ticket
    }

    /// Has everybody with an earlier ticket arrived?
    pub fn all_arrived_before(&self, ticket: u64) -> bool {
        self.lock().under_way.keys().all(|under_way| *under_way >= ticket)
    }

    /// A ping sets out. `oldest_running` says the oldest time of what runs, `horizon` is announced
    /// if nothing does.
    pub fn announce(
        &self,
        oldest_running: impl FnOnce() -> Option<Timestamp>,
        horizon: Timestamp,
    ) -> Announcing<'_> {
        let mut state = self.lock();
        // What is under way may have started meanwhile: look at that first.
        let under_way = state.under_way.values().min().copied();
        let oldest = [under_way, oldest_running()].into_iter().flatten().min();
        let bound = oldest.unwrap_or(horizon).min(horizon);
        let oldest_open = (bound > Timestamp::MIN).then_some(bound);
        state.announcing = oldest_open;
        Announcing { bound: self, oldest_open }
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
        let batch = bound.set_out(at(50)).await;
        assert_eq!(bound.announce(|| Some(at(60)), at(100)).oldest_open, Some(at(50)));
        drop(batch);
        let unknown = bound.set_out(Timestamp::MIN).await;
        assert_eq!(bound.announce(|| None, at(100)).oldest_open, None);
        drop(unknown);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_older_than_an_announced_bound_sets_out_before_the_ping_is_over() {
        let bound = LowWatermark::default();
        let ping = bound.announce(|| None, at(100));
        let newer = bound.set_out(at(100)).await;
        let older = bound.set_out(at(99));
        tokio::pin!(older);
        let early = tokio::time::timeout(Duration::from_secs(9), &mut older).await;
        assert!(early.is_err(), "it must wait for the ping");
        drop(ping);
        older.await;
        drop(newer);
    }
}
