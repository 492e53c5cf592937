//! A file that records every started execution of a job. Lost and doubled runs are counted from
//! this file, not from the store.

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

/// The start of one execution.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Executed {
    pub job: JobNo,
    pub scheduled_at: Timestamp,
    pub started_at: Timestamp,
}

/// An executor that does nothing, like `noop`, and records each start in a file. The records are
/// not kept in memory, because the benchmark measures the memory of this process.
pub struct LedgerExecutor {
    clock: Arc<dyn Clock>,
    file: Mutex<BufWriter<File>>,
    count: AtomicU64,
    /// `counted` includes only runs that are scheduled before this time (µs).
    counted_until: AtomicI64,
    counted: AtomicU64,
    /// Receives each start immediately.
    starts: Option<mpsc::UnboundedSender<Executed>>,
}

impl LedgerExecutor {
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

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Number of started executions whose scheduled time is before the time given to
    /// [`Self::count_until`].
    pub fn counted(&self) -> u64 {
        self.counted.load(Ordering::Acquire)
    }

    pub fn count_until(&self, until: Timestamp) {
        self.counted_until.store(until.as_micros(), Ordering::Release);
    }

    pub fn flush(&self) -> anyhow::Result<()> {
        self.file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .flush()
            .context("writing the ledger")
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

/// Reads the records of all files, sorted by job and scheduled time.
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

/// Number of repeated executions of the same job and scheduled time.
pub fn doubled(sorted: &[Executed]) -> u64 {
    let same = |pair: &&[Executed]| {
        (pair[0].job, pair[0].scheduled_at) == (pair[1].job, pair[1].scheduled_at)
    };
    sorted.windows(2).filter(same).count() as u64
}

/// Drops the expected run times of each job that are later than its last executed run.
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

/// Returns the expected run times for which no run was executed.
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

/// Numbers of expected runs that were not executed, by cause.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct NotExecuted {
    /// Runs that are still in the queue, because the measurement ended before a worker claimed
    /// them.
    pub left_waiting: u64,
    /// Runs that were neither executed, nor skipped, nor queued.
    pub lost: u64,
}

impl NotExecuted {
    /// Classifies the `missing` run times. `waiting` lists the runs in the store's queue, and
    /// `skipped` is the number of run times that the store recorded as skipped.
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
    fn missing_and_doubled_times_are_counted() {
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
    fn queued_time_is_left_waiting_and_not_lost() {
        // Job 1 has two run times, of which only the later was executed. Job 2 has two run times,
        // and neither was executed.
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
        // A queued run whose time is not missing does not reduce the number of lost runs.
        assert_eq!(judge(&[at(2, 40), at(9, 9)], 0), NotExecuted { left_waiting: 0, lost: 3 });
    }
}
