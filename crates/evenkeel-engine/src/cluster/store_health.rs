//! Logs store failures of loops, and tracks whether the database accepts writes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_store::{StoreError, Unwritable};
use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use crate::sync::lock;

/// Interval at which a line is logged while the database refuses writes.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// Time without a refused write after which the database counts as writable again. All loops retry
/// more often than every 5 s, so a single small write that succeeds on a full disk does not count
/// as recovery.
const RECOVERED_AFTER: Duration = Duration::from_secs(5);

/// Logs that a loop failed and will retry.
pub fn log_trouble(error: &StoreError, what: &str) {
    let source = error as &dyn std::error::Error;
    // On a full disk, every retry of every loop fails until an operator frees space. `WriteHealth`
    // logs a full disk once for all loops.
    if error.unwritable().is_some() {
        debug!(error = source, "{what}");
    } else {
        warn!(error = source, "{what}");
    }
}

/// Tracks whether the database accepts writes, from the results of store calls.
#[derive(Debug, Default)]
pub struct WriteHealth(Mutex<Option<Refusing>>);

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Refusing {
    why: Unwritable,
    since: Instant,
    /// Time of the last refused write.
    last: Instant,
    /// Refused writes so far.
    changes: u64,
    logged_at: Instant,
}

/// What to log.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum LogEvent {
    Begins(Unwritable),
    Continues { why: Unwritable, changes: u64 },
    Ends { changes: u64, lasted: Duration },
}

impl WriteHealth {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns why the database refuses writes, or `None` if it accepts writes.
    pub fn unwritable(&self) -> Option<Unwritable> {
        lock(&self.0).map(|refusing| refusing.why)
    }

    /// Records the result of a store call at `now`. `writes` is true for a store call that always
    /// writes to the database.
    pub(crate) fn answered(&self, error: Option<&StoreError>, writes: bool, now: Instant) {
        let event = match error {
            Some(error) => error.unwritable().and_then(|why| self.refused(why, now)),
            None if writes => self.wrote(now),
            None => None,
        };
        let error = error.map(|error| error as &dyn std::error::Error);
        match event {
            Some(LogEvent::Begins(why)) => error!(
                error,
                "{why}: nothing can be stored and no run starts; {}, then work resumes without a \
                 restart",
                why.way_out()
            ),
            Some(LogEvent::Continues { why, changes }) => warn!(
                error,
                changes.refused = changes,
                "{why}, still; {}, then work resumes without a restart",
                why.way_out()
            ),
            Some(LogEvent::Ends { changes, lasted }) => info!(
                changes.refused = changes,
                trouble.seconds = lasted.as_secs(),
                "database accepts writes again; this node resumes work"
            ),
            None => {}
        }
    }

    fn refused(&self, why: Unwritable, now: Instant) -> Option<LogEvent> {
        let mut known = lock(&self.0);
        let Some(refusing) = &mut *known else {
            *known = Some(Refusing { why, since: now, last: now, changes: 1, logged_at: now });
            return Some(LogEvent::Begins(why));
        };
        (refusing.why, refusing.last) = (why, now);
        refusing.changes += 1;
        if now.duration_since(refusing.logged_at) < LOG_EVERY {
            return None;
        }
        refusing.logged_at = now;
        Some(LogEvent::Continues { why, changes: refusing.changes })
    }

    fn wrote(&self, now: Instant) -> Option<LogEvent> {
        let mut known = lock(&self.0);
        let over =
            known.take_if(|refusing| now.duration_since(refusing.last) >= RECOVERED_AFTER)?;
        let lasted = now.duration_since(over.since);
        Some(LogEvent::Ends { changes: over.changes, lasted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::node_context::instant_now;

    #[test]
    fn full_disk_is_logged_at_its_start_each_minute_and_at_its_end() {
        let health = WriteHealth::default();
        let begin = instant_now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut events = Vec::new();
        // For 150 s, two writes per second are refused while small writes succeed.
        for second in 0..150 {
            for _ in 0..2 {
                events.extend(health.refused(Unwritable::DiskFull, at(second)));
            }
            assert_eq!(health.wrote(at(second)), None);
            assert_eq!(health.unwritable(), Some(Unwritable::DiskFull));
        }
        let why = Unwritable::DiskFull;
        let continues = |changes| LogEvent::Continues { why, changes };
        assert_eq!(events, [LogEvent::Begins(why), continues(121), continues(241)]);
        assert_eq!(health.wrote(at(153)), None, "one small write is not a recovery");
        let lasted = Duration::from_secs(154);
        assert_eq!(health.wrote(at(154)), Some(LogEvent::Ends { changes: 300, lasted }));
        assert_eq!((health.unwritable(), health.wrote(at(155))), (None, None));
        let why = Unwritable::ReadOnly;
        assert_eq!(health.refused(why, at(156)), Some(LogEvent::Begins(why)));
    }

    #[test]
    fn outages_do_not_count_as_refused_writes() {
        let health = WriteHealth::default();
        let error = StoreError::Unavailable("gone".into());
        health.answered(Some(&error), true, instant_now());
        assert_eq!(health.unwritable(), None);
    }
}
