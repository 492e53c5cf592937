//! Estimates the database's clock without a query.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_core::Timestamp;

use crate::clock::Clock;
use crate::sync::lock;

/// Estimates the database's clock from the times in the answers of the database. The estimated
/// database time is never ahead of the database's clock.
///
/// The time in an answer of the database is a lower bound of the database's current time, because
/// the answer was written before it was received. The estimated database time is the highest of the
/// lower bounds from the last 10 s. If the database's clock is set back, the estimate is corrected
/// after 10 s. If the store refuses to fire a job because it is not due yet, the estimate is
/// corrected at once.
pub struct DbClock {
    clock: Arc<dyn Clock>,
    /// For each answer of the database, its time of receipt on this node's clock, and the database
    /// time minus this time of receipt, in microseconds.
    bounds: Mutex<VecDeque<(Duration, i64)>>,
}

const WINDOW: Duration = Duration::from_secs(10);

impl DbClock {
    /// Creates a clock that returns 1970-01-01 until the first answer of the database arrives.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, bounds: Mutex::default() }
    }

    /// Records that an answer of the database contained the time `db_now`.
    pub fn observe(&self, db_now: Timestamp) {
        let own = self.clock.monotonic();
        let bound = db_now.as_micros() - micros(own);
        let mut bounds = lock(&self.bounds);
        while bounds.front().is_some_and(|(read, _)| own.saturating_sub(*read) > WINDOW) {
            bounds.pop_front();
        }
        // A lower bound of the database time that is older and lower than the new bound can never
        // be the highest bound again.
        while bounds.back().is_some_and(|(_, older)| *older <= bound) {
            bounds.pop_back();
        }
        bounds.push_back((own, bound));
    }

    /// Discards the times in all earlier answers, because the database's clock was set back.
    pub fn restart_at(&self, db_now: Timestamp) {
        lock(&self.bounds).clear();
        self.observe(db_now);
    }

    /// Returns the latest time that the database's clock has certainly reached.
    pub fn now(&self) -> Timestamp {
        let bounds = lock(&self.bounds);
        let highest = bounds.front().map_or(i64::MIN, |(_, bound)| *bound);
        Timestamp::from_micros(micros(self.clock.monotonic()).saturating_add(highest).max(0))
    }

    /// Returns how long to wait until the database's clock has certainly reached `moment`.
    pub fn until(&self, moment: Timestamp) -> Duration {
        moment.since(self.now()).into()
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[derive(Default)]
    struct HandClock(AtomicU64);

    impl Clock for HandClock {
        fn wall(&self) -> Timestamp {
            Timestamp::from_micros(0)
        }

        fn monotonic(&self) -> Duration {
            Duration::from_millis(self.0.load(Ordering::Relaxed))
        }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_micros(millis * 1000)
    }

    #[test]
    fn clock_is_as_close_as_the_fastest_answer_and_never_ahead() {
        let own = Arc::new(HandClock::default());
        let clock = DbClock::new(Arc::clone(&own) as Arc<dyn Clock>);
        own.0.store(40, Ordering::Relaxed);
        clock.observe(at(10_000)); // written up to 40 ms ago
        own.0.store(50, Ordering::Relaxed);
        clock.observe(at(10_049)); // written 1 ms ago
        own.0.store(100, Ordering::Relaxed);
        clock.observe(at(10_060)); // a slow answer does not lower the bound
        assert_eq!(clock.now(), at(10_099));
        assert_eq!(clock.until(at(10_199)), Duration::from_millis(100));
    }

    #[test]
    fn clock_follows_a_database_clock_that_was_set_back() {
        let own = Arc::new(HandClock::default());
        let clock = DbClock::new(Arc::clone(&own) as Arc<dyn Clock>);
        clock.observe(at(10_000));
        own.0.store(1_000, Ordering::Relaxed);
        clock.observe(at(5_000));
        assert_eq!(clock.now(), at(11_000), "within the window the higher bound is used");
        own.0.store(20_000, Ordering::Relaxed);
        clock.observe(at(24_000));
        assert_eq!(clock.now(), at(24_000));
        clock.restart_at(at(7_000));
        assert_eq!(clock.now(), at(7_000));
    }
}
