//! Carries progress, log, checkpoints and heartbeats of a running attempt to the engine.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel_core::secret::Masks;
use evenkeel_core::{LogStream, Progress, RunLog, Span, Timestamp};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::log_buffer::{LOG_BYTES_DEFAULT, LogBuffer};

/// Maximum size in bytes of the log that is stored while the attempt runs. The limit is low,
/// because every change of the log stores the log again. When the attempt ends, a longer log is
/// stored.
const LIVE_LOG_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of bytes of a checkpoint; larger checkpoints are refused.
pub const CHECKPOINT_BYTES_MAX: usize = 512 * 1024;

/// The connection between a running attempt and the engine. The executor reports progress, output
/// and checkpoints, and the engine collects the latest values from time to time. The engine passes
/// heartbeats of HTTP receivers to the executor. No method of `LiveReport` blocks.
#[derive(Clone, Debug)]
pub struct LiveReport(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    heartbeat: Notify,
    log_bytes: usize,
    /// The start time of the attempt by the store's clock, and by the clock of this process.
    started_at: Timestamp,
    started: Instant,
}

#[derive(Default)]
struct State {
    progress: Progress,
    log: LogBuffer,
    /// The latest checkpoint, kept until the engine has saved it.
    checkpoint: Option<Vec<u8>>,
    /// How many checkpoints the executor has reported.
    checkpoints: u64,
    changed: Changed,
    may_be_stored: bool,
    masks: Masks,
}

/// Which values have changed since the engine last collected them.
#[derive(Copy, Clone, Default, PartialEq, Eq)]
struct Changed {
    progress: bool,
    log: bool,
    checkpoint: bool,
}

/// The values that an attempt has reported since the engine last collected them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LiveUpdate {
    pub progress: Option<Progress>,
    /// The log of the attempt so far, shortened to a limit and encoded by [`RunLog::encode`].
    pub log: Option<String>,
    /// The checkpoint for the next attempt of the run.
    pub checkpoint: Option<Vec<u8>>,
    /// Number of checkpoints reported so far, which identifies `checkpoint` in a call of
    /// [`LiveReport::checkpoint_saved`].
    pub version: u64,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a checkpoint of {0} bytes is too large; at most {CHECKPOINT_BYTES_MAX} are kept")]
pub struct CheckpointTooLarge(pub usize);

impl Default for LiveReport {
    /// Returns the live report of an attempt that started at the beginning of 1970, for tests.
    fn default() -> Self {
        Self::new(Timestamp::from_micros(0), LOG_BYTES_DEFAULT)
    }
}

impl LiveReport {
    /// Returns the live report of an attempt that starts now. `started_at` is the current time by
    /// the store's clock, and the log keeps about `log_bytes` bytes.
    pub fn new(started_at: Timestamp, log_bytes: usize) -> Self {
        #[expect(clippy::disallowed_methods, reason = "tokio's own clock, which a test can hold")]
        let started = Instant::now();
        let state = State { log: LogBuffer::new(log_bytes), ..State::default() };
        let (state, heartbeat) = (Mutex::new(state), Notify::new());
        Self(Arc::new(Inner { state, heartbeat, log_bytes, started_at, started }))
    }

    /// Masks these secrets in all values that are reported from now on.
    pub fn mask(&self, masks: Masks) {
        self.state().masks = masks;
    }

    /// Updates the progress. Fields of the progress that are `None` in `update` keep their values.
    pub fn progress(&self, mut update: Progress) {
        let mut state = self.state();
        update.message.iter_mut().for_each(|message| state.masks.mask(message));
        state.progress.update(update);
        state.changed.progress = true;
    }

    pub fn log(&self, stream: LogStream, bytes: &[u8]) {
        let at = self.now();
        let mut state = self.state();
        let State { log, masks, changed, .. } = &mut *state;
        log.push(stream, at, bytes, masks);
        changed.log = true;
    }

    /// Replaces the checkpoint that the next attempt of the run gets.
    pub fn checkpoint(&self, mut data: Vec<u8>) -> Result<(), CheckpointTooLarge> {
        if data.len() > CHECKPOINT_BYTES_MAX {
            return Err(CheckpointTooLarge(data.len()));
        }
        let mut state = self.state();
        state.masks.mask_bytes(&mut data);
        state.checkpoint = Some(data);
        state.checkpoints += 1;
        state.changed.checkpoint = true;
        Ok(())
    }

    pub fn progress_so_far(&self) -> Progress {
        self.state().progress.clone()
    }

    /// Returns the log of the attempt so far, or `None` if the attempt has printed nothing.
    pub fn log_so_far(&self) -> Option<RunLog> {
        let state = self.state();
        (!state.log.is_empty()).then(|| state.log.snapshot(self.0.log_bytes))
    }

    /// Takes the log of a finished attempt, encoded by [`RunLog::encode`], so that memory holds
    /// only one copy. Returns `None` if the attempt printed nothing.
    pub fn take_log(&self) -> Option<String> {
        let at = self.now();
        let mut state = self.state();
        state.changed.log = false;
        let mut log = std::mem::replace(&mut state.log, LogBuffer::new(self.0.log_bytes));
        log.finish(at, &state.masks);
        drop(state);
        (!log.is_empty()).then(|| log.snapshot(self.0.log_bytes).encode())
    }

    fn now(&self) -> Timestamp {
        self.0.started_at.saturating_add(Span::from(self.0.started.elapsed()))
    }

    /// Completes at the next heartbeat of the server that received the HTTP call.
    pub async fn next_heartbeat(&self) {
        self.0.heartbeat.notified().await;
    }

    /// Passes on a heartbeat of an HTTP receiver. The API may have stored progress that came with
    /// the heartbeat.
    pub fn heartbeat(&self) {
        self.state().may_be_stored = true;
        self.0.heartbeat.notify_one();
    }

    /// Returns the values that have changed since the last call.
    pub fn take_update(&self) -> Option<LiveUpdate> {
        let mut state = self.state();
        if state.changed == Changed::default() {
            return None;
        }
        let changed = std::mem::take(&mut state.changed);
        state.may_be_stored = true;
        Some(LiveUpdate {
            progress: changed.progress.then(|| state.progress.clone()),
            log: (changed.log && !state.log.is_empty())
                .then(|| state.log.snapshot(LIVE_LOG_BYTES_MAX).encode()),
            checkpoint: changed.checkpoint.then(|| state.checkpoint.clone()).flatten(),
            version: state.checkpoints,
        })
    }

    /// True if the store may already hold progress of the attempt.
    pub fn may_be_stored(&self) -> bool {
        self.state().may_be_stored
    }

    /// Drops the checkpoint with this number, because the store has saved it.
    pub fn checkpoint_saved(&self, version: u64) {
        let mut state = self.state();
        if state.checkpoints == version {
            state.checkpoint = None;
        }
    }

    /// Takes the latest checkpoint if the store has not saved it yet.
    pub fn take_unsaved_checkpoint(&self) -> Option<Vec<u8>> {
        self.state().checkpoint.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("progress", &self.progress).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_taken_once_and_accumulate() {
        let live = LiveReport::default();
        assert_eq!(live.take_update(), None);
        assert!(!live.may_be_stored());
        live.progress(Progress { done: Some(1), ..Progress::default() });
        live.log(LogStream::Stdout, b"one\n");
        live.checkpoint(vec![1]).unwrap();
        live.checkpoint(vec![2]).unwrap();
        let update = live.take_update().unwrap();
        assert_eq!(update.progress.as_ref().unwrap().done, Some(1));
        let text = |update: &LiveUpdate| RunLog::decode(update.log.as_deref().unwrap()).text(None);
        assert_eq!(text(&update), "one\n");
        assert_eq!(update.checkpoint, Some(vec![2]));
        assert_eq!(live.take_update(), None);
        live.log(LogStream::Stderr, b"two\n");
        let update = live.take_update().unwrap();
        assert_eq!(text(&update), "one\ntwo\n");
        assert_eq!((update.progress, update.checkpoint), (None, None));
        assert!(live.may_be_stored());
    }

    #[tokio::test(start_paused = true)]
    async fn log_has_the_times_of_its_attempt_and_is_taken_once() {
        let started_at: Timestamp = "2026-12-01T09:00:00Z".parse().unwrap();
        let live = LiveReport::new(started_at, 1_000_000);
        assert_eq!((live.take_log(), live.log_so_far()), (None, None));
        tokio::time::advance(std::time::Duration::from_millis(1500)).await;
        live.log(LogStream::Stderr, b"alas\n");
        live.log(LogStream::Stdout, &[b'x'; 2 * LIVE_LOG_BYTES_MAX]);
        let update = live.take_update().unwrap().log.unwrap();
        assert!(update.len() < LIVE_LOG_BYTES_MAX + 1000, "{}", update.len());
        assert!(RunLog::decode(&update).lines(0, None).has_gap());
        let log = RunLog::decode(&live.take_log().unwrap());
        assert!(!log.lines(0, None).has_gap());
        let first = &log.lines(0, None).lines[0];
        assert_eq!((first.stream, first.text.as_str()), (LogStream::Stderr, "alas"));
        assert_eq!(first.at, Some("2026-12-01T09:00:01.5Z".parse().unwrap()));
        assert_eq!((live.take_log(), live.take_update()), (None, None));
    }

    #[test]
    fn too_large_checkpoint_keeps_the_last_one() {
        let live = LiveReport::default();
        live.checkpoint(vec![1]).unwrap();
        let size = CHECKPOINT_BYTES_MAX + 1;
        assert_eq!(live.checkpoint(vec![0; size]), Err(CheckpointTooLarge(size)));
        assert_eq!(live.take_unsaved_checkpoint(), Some(vec![1]));
    }

    #[test]
    fn checkpoint_is_kept_until_it_is_saved() {
        let live = LiveReport::default();
        live.checkpoint(vec![1]).unwrap();
        let first = live.take_update().unwrap();
        live.checkpoint(vec![2]).unwrap();
        live.checkpoint_saved(first.version);
        assert_eq!(live.take_unsaved_checkpoint(), Some(vec![2]));
        live.checkpoint(vec![3]).unwrap();
        live.checkpoint_saved(live.take_update().unwrap().version);
        assert_eq!(live.take_unsaved_checkpoint(), None);
    }

    #[test]
    fn live_report_masks_secrets() {
        let live = LiveReport::default();
        live.mask(Masks::new(["hunter22"]));
        live.log(LogStream::Stdout, b"a hun");
        live.log(LogStream::Stdout, b"ter22 b");
        live.checkpoint(b"[\"hunter22\"]".to_vec()).unwrap();
        let message = Some("with hunter22".to_owned());
        live.progress(Progress { message, ..Progress::default() });
        assert_eq!(live.log_so_far().unwrap().text(None), "a *** b");
        let update = live.take_update().unwrap();
        assert_eq!(RunLog::decode(&update.log.unwrap()).text(None), "a *** b");
        assert_eq!(update.checkpoint.as_deref(), Some(&b"[\"***\"]"[..]));
        assert_eq!(update.progress.unwrap().message.as_deref(), Some("with ***"));
    }

    #[tokio::test]
    async fn heartbeat_before_the_wait_completes_it() {
        let live = LiveReport::default();
        live.heartbeat();
        live.next_heartbeat().await;
    }
}
