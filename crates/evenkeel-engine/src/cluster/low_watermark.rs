//! The low watermark is the lowest scheduled time for which this node may have open attempts.
//!
//! When a node dies, the store searches for its attempts from the watermark of its last ping, so no
//! open attempt may be older than the watermark. A ping that raises the watermark must not overtake
//! a fire or claim of an older attempt. Until the store has answered a ping, no batch of fires or
//! claims with a scheduled time below the new watermark may begin.

use std::collections::BTreeMap;
use std::sync::Mutex;

use evenkeel_core::Timestamp;
use tokio::sync::Notify;

use crate::sync::lock;

#[derive(Debug, Default)]
pub struct LowWatermark {
    state: Mutex<State>,
    ping_over: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The oldest scheduled time of each batch of fires or claims that the store has not answered
    /// yet, by batch number.
    in_flight: BTreeMap<u64, Timestamp>,
    next_batch_no: u64,
    /// The low watermark in a ping that the store has not answered yet.
    announcing: Option<Timestamp>,
}

/// A batch of fires or claims that the store has not answered yet. Until an `InFlight` is dropped,
/// pings keep the low watermark at or below the oldest scheduled time of the batch.
#[derive(Debug)]
pub struct InFlight<'a> {
    watermark: &'a LowWatermark,
    batch_no: u64,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        lock(&self.watermark.state).in_flight.remove(&self.batch_no);
    }
}

/// A ping that the store has not answered yet. Until an `Announcement` is dropped, no fire or claim
/// with a scheduled time below the new low watermark begins.
#[derive(Debug)]
pub struct Announcement<'a> {
    watermark: &'a LowWatermark,
    /// The low watermark that the ping sends, or `None` if the low watermark must not change.
    pub oldest_open: Option<Timestamp>,
}

impl Drop for Announcement<'_> {
    fn drop(&mut self) {
        lock(&self.watermark.state).announcing = None;
        self.watermark.ping_over.notify_waiters();
    }
}

impl LowWatermark {
    /// Waits until a batch of fires or claims with the oldest scheduled time `oldest` may be sent
    /// to the store. Pass [`Timestamp::MIN`] if the scheduled times of the batch are not known
    /// before the store answers.
    pub async fn begin_batch(&self, oldest: Timestamp) -> InFlight<'_> {
        loop {
            let ping_over = self.ping_over.notified();
            {
                let mut state = lock(&self.state);
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

    pub fn next_batch_no(&self) -> u64 {
        lock(&self.state).next_batch_no
    }

    /// True if the store has answered all batches with a number below `batch_no`.
    pub fn all_finished_before(&self, batch_no: u64) -> bool {
        lock(&self.state).in_flight.keys().all(|in_flight| *in_flight >= batch_no)
    }

    /// Begins a ping. The new low watermark is the oldest scheduled time among unanswered batches
    /// and `oldest_running`, but at most `horizon`.
    pub fn announce(
        &self,
        oldest_running: impl FnOnce() -> Option<Timestamp>,
        horizon: Timestamp,
    ) -> Announcement<'_> {
        let mut state = lock(&self.state);
        // Unanswered batches must be read before `oldest_running`. If `oldest_running` were read
        // first, an attempt that starts in between would be missed.
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
    async fn watermark_is_not_above_running_attempts_and_batches_in_flight() {
        let watermark = LowWatermark::default();
        assert_eq!(watermark.announce(|| None, at(100)).oldest_open, Some(at(100)));
        assert_eq!(watermark.announce(|| Some(at(60)), at(100)).oldest_open, Some(at(60)));
        let batch = watermark.begin_batch(at(50)).await;
        assert_eq!(watermark.announce(|| Some(at(60)), at(100)).oldest_open, Some(at(50)));
        drop(batch);
        let unknown = watermark.begin_batch(Timestamp::MIN).await;
        assert_eq!(watermark.announce(|| None, at(100)).oldest_open, None);
        drop(unknown);
    }

    #[tokio::test(start_paused = true)]
    async fn batch_older_than_an_announced_watermark_waits_for_the_ping() {
        let watermark = LowWatermark::default();
        let ping = watermark.announce(|| None, at(100));
        let newer = watermark.begin_batch(at(100)).await;
        let older = watermark.begin_batch(at(99));
        tokio::pin!(older);
        let early = tokio::time::timeout(Duration::from_secs(9), &mut older).await;
        assert!(early.is_err(), "the older batch must wait for the ping");
        drop(ping);
        older.await;
        drop(newer);
    }
}
