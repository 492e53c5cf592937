//! What loops say about a store that fails, and whether it takes changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use evenkeel_store::{StoreError, Unwritable};
use tokio::time::Instant;
use tracing::{debug, error, info, warn};

/// While a database takes no changes, that is said this often.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// A database that has refused no change for this long takes them again. Loops try more often, so
/// a small change that found a place does not end the trouble of larger ones.
const RECOVERED_AFTER: Duration = Duration::from_secs(5);

/// A loop could not do its work and will try again.
pub fn log_trouble(error: &StoreError, what: &str) {
    let source = error as &dyn std::error::Error;
    // Every loop meets it at every try until an operator helps: `WriteHealth` says it for all.
    if error.unwritable().is_some() {
        debug!(error = source, "{what}");
    } else {
        warn!(error = source, "{what}");
    }
}

/// Whether the database takes changes, learnt from what becomes of them.
#[derive(Debug, Default)]
pub struct WriteHealth(Mutex<Option<Refusing>>);

/// The database takes no changes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Refusing {
    why: Unwritable,
    since: Instant,
    /// When it last refused one,
    last: Instant,
    /// how many it has refused,
    changes: u64,
    /// and when that was last said.
    logged_at: Instant,
}

/// What is to be said.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum LogEvent {
    Begins,
    GoesOn { changes: u64 },
    Ends { changes: u64, lasted: Duration },
}

impl WriteHealth {
    /// Nothing is known yet to be wrong.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Why the database takes no changes, unless it does.
    pub fn unwritable(&self) -> Option<Unwritable> {
        self.lock().map(|refusing| refusing.why)
    }

    /// A verb has answered at `now`. `writes` says that it changes something in any case.
    pub(crate) fn answered(&self, error: Option<&StoreError>, writes: bool, now: Instant) {
        match (error, error.and_then(StoreError::unwritable)) {
            (Some(error), Some(why)) => {
                let said = self.refused(why, now);
                if let Some(said) = said {
                    let source = error as &dyn std::error::Error;
                    let way_out = why.way_out();
                    match said {
                        LogEvent::Begins => error!(
                            error = source,
                            "{why}: nothing can be stored, and no run starts; {way_out}, and work \
                             goes on by itself"
                        ),
                        LogEvent::GoesOn { changes } => warn!(
                            error = source,
                            changes.refused = changes,
                            "{why}, still; {way_out}, and work goes on by itself"
                        ),
                        LogEvent::Ends { .. } => {}
                    }
                }
            }
            (None, _) if writes => {
                if let Some(LogEvent::Ends { changes, lasted }) = self.wrote(now) {
                    info!(
                        changes.refused = changes,
                        trouble.seconds = lasted.as_secs(),
                        "the database takes changes again; work goes on"
                    );
                }
            }
            _ => {}
        }
    }

    fn refused(&self, why: Unwritable, now: Instant) -> Option<LogEvent> {
        let mut known = self.lock();
        let Some(refusing) = &mut *known else {
            *known = Some(Refusing { why, since: now, last: now, changes: 1, logged_at: now });
            return Some(LogEvent::Begins);
        };
        (refusing.why, refusing.last) = (why, now);
        refusing.changes += 1;
        if now.duration_since(refusing.logged_at) < LOG_EVERY {
            return None;
        }
        refusing.logged_at = now;
        Some(LogEvent::GoesOn { changes: refusing.changes })
    }

    fn wrote(&self, now: Instant) -> Option<LogEvent> {
        let mut known = self.lock();
        let over =
            known.take_if(|refusing| now.duration_since(refusing.last) >= RECOVERED_AFTER)?;
        let lasted = now.duration_since(over.since);
        Some(LogEvent::Ends { changes: over.changes, lasted })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Refusing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::node_context::instant_now;

    #[test]
    fn a_full_disk_is_said_when_it_begins_each_minute_and_when_it_ends() {
        let health = WriteHealth::default();
        let begin = instant_now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut said = Vec::new();
        // Two refused changes a second for 150 seconds, and small ones that find a place.
        for second in 0..150 {
            for _ in 0..2 {
                said.extend(health.refused(Unwritable::DiskFull, at(second)));
            }
            assert_eq!(health.wrote(at(second)), None);
            assert_eq!(health.unwritable(), Some(Unwritable::DiskFull));
        }
        let goes_on = |changes| LogEvent::GoesOn { changes };
        assert_eq!(said, [LogEvent::Begins, goes_on(121), goes_on(241)]);
        assert_eq!(health.wrote(at(153)), None, "a change that found a place says little");
        let lasted = Duration::from_secs(154);
        assert_eq!(health.wrote(at(154)), Some(LogEvent::Ends { changes: 300, lasted }));
        assert_eq!((health.unwritable(), health.wrote(at(155))), (None, None));
        assert_eq!(health.refused(Unwritable::ReadOnly, at(156)), Some(LogEvent::Begins));
    }

    #[test]
    fn other_faults_say_nothing_about_writing() {
        let health = WriteHealth::default();
        let error = StoreError::Unavailable("gone".into());
        health.answered(Some(&error), true, instant_now());
        assert_eq!(health.unwritable(), None);
    }
}
