//! Logs starts and ends of runs with the ids of their jobs. Writes up to 20 log lines per second,
//! and counts the runs that are not logged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use evenkeel_core::after_attempt::Then;
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::{AttemptId, AttemptKey, Span};
use evenkeel_store::{Finish, JobTitle, Results};
use tokio::sync::{Mutex, mpsc};
use tracing::{Level, error, info, warn};

use crate::cluster::node_context::NodeContext;

/// Lines per second.
const LINES: usize = 20;
/// Number of log lines per second that are reserved for failures.
const RESERVED_FOR_FAILURES: usize = 10;
/// Maximum number of logged characters of an error.
const ERROR_CHARS: usize = 200;
/// Interval at which log lines of runs are written. Job ids for the log lines are read from the
/// store once per interval.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
enum RunLogEntry {
    Started(AttemptKey),
    Ended { key: AttemptKey, outcome: Outcome, took: Span, items: Option<i64> },
    Failed { key: AttemptKey, error: String, retry_in: Option<Span> },
    TakenOver { key: AttemptKey, lock_age: Span },
}

impl RunLogEntry {
    const fn key(&self) -> AttemptKey {
        match self {
            Self::Started(key)
            | Self::Ended { key, .. }
            | Self::Failed { key, .. }
            | Self::TakenOver { key, .. } => *key,
        }
    }
}

/// Collects log lines of runs. Adding a line never blocks.
pub struct RunLog {
    sender: mpsc::Sender<RunLogEntry>,
    receiver: Mutex<mpsc::Receiver<RunLogEntry>>,
    left_out: AtomicU64,
    failures_left_out: AtomicU64,
}

impl Default for RunLog {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(LINES);
        let receiver = Mutex::new(receiver);
        Self { sender, receiver, left_out: AtomicU64::new(0), failures_left_out: AtomicU64::new(0) }
    }
}

impl RunLog {
    pub fn started(&self, key: AttemptKey) {
        self.log_if_idle(|| RunLogEntry::Started(key));
    }

    pub fn ended(&self, ends: &[Finish]) {
        for end in ends {
            let key = end.key;
            if end.outcome.is_failure() {
                self.log_failure(|| RunLogEntry::Failed {
                    key,
                    error: first_line(&end.results),
                    retry_in: match end.then {
                        Then::Retry { due } => Some(due.since(end.finished_at)),
                        Then::EndRun { .. } => None,
                    },
                });
            } else {
                self.log_if_idle(|| RunLogEntry::Ended {
                    key,
                    outcome: end.outcome,
                    took: end.finished_at.since(end.started_at),
                    items: end.results.items_crawled,
                });
            }
        }
    }

    /// Logs that an attempt of a lost node is requeued. `lock_age` is the time since the last ping
    /// of the lost node.
    pub fn taken_over(&self, key: AttemptKey, lock_age: Span) {
        self.log_failure(|| RunLogEntry::TakenOver { key, lock_age });
    }

    fn log_if_idle(&self, entry: impl FnOnce() -> RunLogEntry) {
        if !tracing::enabled!(Level::INFO) {
            return;
        }
        let has_capacity = self.sender.capacity() > RESERVED_FOR_FAILURES;
        if !has_capacity || self.sender.try_send(entry()).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn log_failure(&self, entry: impl FnOnce() -> RunLogEntry) {
        if !tracing::enabled!(Level::ERROR) {
            return;
        }
        if self.sender.capacity() == 0 || self.sender.try_send(entry()).is_err() {
            self.failures_left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn first_line(results: &Results) -> String {
    let error = results.error.as_deref().unwrap_or_default();
    error.lines().next().unwrap_or_default().chars().take(ERROR_CHARS).collect()
}

pub struct RunLogger {
    pub ctx: Arc<NodeContext>,
}

impl RunLogger {
    pub async fn run_once(&self) {
        let run_log = &self.ctx.run_log;
        let mut batch = Vec::with_capacity(LINES);
        run_log.receiver.lock().await.recv_many(&mut batch, LINES).await;
        let jobs: Vec<_> = batch.iter().map(|entry| entry.key().job_no).collect();
        // If the store does not answer, log lines contain internal job numbers instead of job ids.
        let titles = self.ctx.store.job_titles(&jobs).await.unwrap_or_default();
        let titles = titles.into_iter().chain(std::iter::repeat(None));
        for (entry, title) in batch.iter().zip(titles) {
            write(entry, self.ctx.run_ids.attempt_id(entry.key()), title);
        }
        let more = run_log.left_out.swap(0, Ordering::Relaxed);
        if more > 0 {
            info!(
                runs.count = more,
                "too many runs started or ended to log each of them; logging only the number of further runs"
            );
        }
        let more = run_log.failures_left_out.swap(0, Ordering::Relaxed);
        if more > 0 {
            warn!(
                runs.count = more,
                "too many runs failed or were taken over to log each of them; logging only the number of further runs"
            );
        }
    }

    pub async fn run(self) {
        loop {
            self.run_once().await;
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn write(entry: &RunLogEntry, run: AttemptId, title: Option<JobTitle>) {
    let key = entry.key();
    let attempt = key.attempt.0;
    let (id, source_name) = title.map(|title| (title.id, title.source_name)).unzip();
    let job = id.map_or_else(|| key.job_no.to_string(), |id| id.to_string());
    let source_name = source_name.flatten();
    match entry {
        RunLogEntry::Started(_) => {
            info!(job_id = job, source_name, run.id = %run, retry_attempt = attempt, "executing job");
        }
        RunLogEntry::Ended { outcome, took, items, .. } => info!(
            job_id = job,
            source_name,
            run.id = %run,
            run.status = AttemptStatus::from(*outcome).as_str(),
            duration_ms = took.as_millis(),
            items_crawled = items,
            "{}",
            if outcome.is_success() { "job completed" } else { "run cancelled" }
        ),
        RunLogEntry::Failed { error, retry_in, .. } => error!(
            job_id = job,
            source_name,
            run.id = %run,
            retry_attempt = attempt,
            error,
            retry_in_ms = retry_in.map(Span::as_millis),
            "job execution failed"
        ),
        RunLogEntry::TakenOver { lock_age, .. } => warn!(
            job_id = job,
            source_name,
            run.id = %run,
            lock_age_ms = lock_age.as_millis(),
            "cleared stale lock: the node that had it is lost"
        ),
    }
}
