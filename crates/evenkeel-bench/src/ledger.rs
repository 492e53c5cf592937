//! What was really executed, written down by the bodies themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use async_trait::async_trait;
use evenkeel_core::{JobNo, TenantNo, Timestamp};
use evenkeel_engine::Clock;
use evenkeel_executors::{ConfigFault, Executor, ExecutorDeclaration, Invocation, NOOP, Report};
use serde_json::Value;
use tokio::sync::mpsc;

/// A body's start: which job, for when, and when it was.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Executed {
    /// Which job.
    pub job: JobNo,
    /// For when.
    pub scheduled_at: Timestamp,
    /// When its body started.
    pub started_at: Timestamp,
}

/// Does nothing, like `noop`, and writes down that it did, in a file, so that the memory of the
/// product can be measured beside it.
pub struct LedgerExecutor {
    clock: Arc<dyn Clock>,
    file: Mutex<BufWriter<File>>,
    count: AtomicU64,
    /// Executions for a time before this are waited for.
    counted_until: AtomicI64,
    counted: AtomicU64,
    /// Whoever wants to know at once.
    starts: Option<mpsc::UnboundedSender<Executed>>,
}

impl LedgerExecutor {
    /// Writes to `path`.
    pub fn create(
        path: &Path,
        clock: Arc<dyn Clock>,
        starts: Option<mpsc::UnboundedSender<Executed>>,
    ) -> anyhow::Result<Arc<Self>> {
        let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Arc::new(Self {
            clock,
            file: Mutex::new(BufWriter::with_capacity(1 << 20, file)),
            count: AtomicU64::new(0),
            counted_until: AtomicI64::new(i64::MAX),
            counted: AtomicU64::new(0),
            starts,
        }))
    }

    /// How many bodies have started.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// How many of them for a time before the one set.
    pub fn counted(&self) -> u64 {
        self.counted.load(Ordering::Acquire)
    }

    /// Counts only executions for a time before `until`.
    pub fn count_until(&self, until: Timestamp) {
        self.counted_until.store(until.as_micros(), Ordering::Release);
    }

    /// Everything is on disk.
    pub fn flush(&self) -> anyhow::Result<()> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).flush().context("writing")
    }
}

#[async_trait]
impl Executor for LedgerExecutor {
    fn declaration(&self) -> &'static ExecutorDeclaration {
        &NOOP
    }

    fn check(&self, _: TenantNo, _config: &Value, _payload: &Value) -> Result<(), ConfigFault> {
        Ok(())
    }

    async fn run(&self, invocation: Invocation) -> Report {
        let executed = Executed {
            job: invocation.key.job_no,
            scheduled_at: invocation.key.scheduled_at,
            started_at: self.clock.wall(),
        };
        let mut record = [0; 24];
        record[..8].copy_from_slice(&executed.job.0.to_le_bytes());
        record[8..16].copy_from_slice(&executed.scheduled_at.as_micros().to_le_bytes());
        record[16..].copy_from_slice(&executed.started_at.as_micros().to_le_bytes());
        let written = self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&record);
        self.count.fetch_add(1, Ordering::AcqRel);
        if executed.scheduled_at.as_micros() < self.counted_until.load(Ordering::Acquire) {
            self.counted.fetch_add(1, Ordering::AcqRel);
        }
        if let Some(starts) = &self.starts {
            let _ = starts.send(executed);
        }
        match written {
            Ok(()) => Report::completed(),
            Err(fault) => Report::failed(format!("the ledger could not be written: {fault}")),
        }
    }
}

/// Everything that was executed, by job and time.
pub fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Executed>> {
    let mut all = Vec::new();
    for path in paths {
        let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let mut record = [0; 24];
        while reader.read_exact(&mut record).is_ok() {
            let number = |at: usize| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&record[at..at + 8]);
                i64::from_le_bytes(bytes)
            };
            all.push(Executed {
                job: JobNo(number(0)),
                scheduled_at: Timestamp::from_micros(number(8)),
                started_at: Timestamp::from_micros(number(16)),
            });
        }
    }
    all.sort_unstable();
    Ok(all)
}

/// How often something was executed more than once.
pub fn doubled(sorted: &[Executed]) -> u64 {
    let same = |pair: &&[Executed]| {
        (pair[0].job, pair[0].scheduled_at) == (pair[1].job, pair[1].scheduled_at)
    };
    sorted.windows(2).filter(same).count() as u64
}

/// Of each job's times, those up to the last one that was executed.
pub fn until_last(
    sorted: &[Executed],
    mut expected: BTreeMap<JobNo, Vec<Timestamp>>,
) -> BTreeMap<JobNo, Vec<Timestamp>> {
    for (job, times) in &mut expected {
        let after = sorted.partition_point(|executed| executed.job <= *job);
        let last = after.checked_sub(1).map(|at| sorted[at]).filter(|last| last.job == *job);
        times.retain(|time| last.is_some_and(|last| *time <= last.scheduled_at));
    }
    expected
}

/// Each job's expected times that were not executed.
pub fn missing(
    sorted: &[Executed],
    expected: &BTreeMap<JobNo, Vec<Timestamp>>,
) -> Vec<(JobNo, Timestamp)> {
    let mut missing = Vec::new();
    for (job, times) in expected {
        let from = sorted.partition_point(|executed| executed.job < *job);
        let own = &sorted[from..];
        let is_missing = |time: &&Timestamp| {
            let found = own.partition_point(|e| (e.job, e.scheduled_at) < (*job, **time));
            own.get(found).is_none_or(|e| (e.job, e.scheduled_at) != (*job, **time))
        };
        missing.extend(times.iter().filter(is_missing).map(|time| (*job, *time)));
    }
    missing
}

/// What became of expected times that were not executed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct NotExecuted {
    /// They have a run, and it is in the queue: the measurement ended before a worker claimed it.
    pub left_waiting: u64,
    /// Nothing is known of them: they were neither executed, nor skipped, nor queued.
    pub lost: u64,
}

impl NotExecuted {
    /// Judges `missing` times, of which the store says which are `waiting` in the queue, and how many
    /// it recorded as `skipped`.
    pub fn of(
        missing: &[(JobNo, Timestamp)],
        waiting: &BTreeSet<(JobNo, Timestamp)>,
        skipped: u64,
    ) -> Self {
        let left_waiting = missing.iter().filter(|time| waiting.contains(time)).count() as u64;
        let unexplained = missing.len() as u64 - left_waiting;
        Self { left_waiting, lost: unexplained.saturating_sub(skipped) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executed(job: i64, at: i64) -> Executed {
        Executed {
            job: JobNo(job),
            scheduled_at: Timestamp::from_micros(at),
            started_at: Timestamp::from_micros(at + 5),
        }
    }

    #[test]
    fn what_is_missing_or_twice_is_counted() {
        let ledger = [executed(1, 10), executed(1, 20), executed(1, 20), executed(2, 10)];
        assert_eq!(doubled(&ledger), 1);
        let times = |all: &[i64]| all.iter().copied().map(Timestamp::from_micros).collect();
        let expected = BTreeMap::from([
            (JobNo(1), times(&[10, 20, 30])),
            (JobNo(2), times(&[10])),
            (JobNo(3), times(&[5])),
        ]);
        let at = |job, time| (JobNo(job), Timestamp::from_micros(time));
        assert_eq!(missing(&ledger, &expected), [at(1, 30), at(3, 5)]);
        assert_eq!(missing(&ledger, &until_last(&ledger, expected)), []);
    }

    #[test]
    fn an_earlier_time_that_is_still_in_the_queue_is_left_waiting_and_not_lost() {
        // Of two times of job 1 the later one was executed; both of job 2 were passed over.
        let ledger = [executed(1, 20), executed(2, 30)];
        let times = |all: &[i64]| all.iter().copied().map(Timestamp::from_micros).collect();
        let expected =
            BTreeMap::from([(JobNo(1), times(&[10, 20])), (JobNo(2), times(&[10, 20, 30, 40]))]);
        let missing = missing(&ledger, &until_last(&ledger, expected));
        let at = |job, time| (JobNo(job), Timestamp::from_micros(time));
        assert_eq!(missing, [at(1, 10), at(2, 10), at(2, 20)]);
        let judge = |waiting: &[_], skipped| {
            NotExecuted::of(&missing, &waiting.iter().copied().collect(), skipped)
        };
        assert_eq!(judge(&[], 0), NotExecuted { left_waiting: 0, lost: 3 });
        assert_eq!(judge(&[at(1, 10), at(2, 20)], 0), NotExecuted { left_waiting: 2, lost: 1 });
        assert_eq!(judge(&[at(1, 10), at(2, 20)], 1), NotExecuted { left_waiting: 2, lost: 0 });
        // What waits and is not missing explains nothing.
        assert_eq!(judge(&[at(2, 40), at(9, 9)], 0), NotExecuted { left_waiting: 0, lost: 3 });
    }
}
