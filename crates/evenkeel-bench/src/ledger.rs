//! A file that records every started execution of a job. Lost and doubled runs are counted from
//! this file, not from the store.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// The field `counted` counts only runs that are scheduled before this time (µs).
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
        self.file().flush().context("writing the ledger")
    }

    fn file(&self) -> MutexGuard<'_, BufWriter<File>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
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
        let [scheduled, started] =
            [executed.scheduled_at, executed.started_at].map(Timestamp::as_micros);
        let record = [executed.job.0, scheduled, started].map(i64::to_le_bytes);
        let written = self.file().write_all(record.as_flattened());
        self.count.fetch_add(1, Ordering::AcqRel);
        if scheduled < self.counted_until.load(Ordering::Acquire) {
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
        let mut record = [[0; 8]; 3];
        while reader.read_exact(record.as_flattened_mut()).is_ok() {
            let [job, scheduled_at, started_at] = record.map(i64::from_le_bytes);
            let [scheduled_at, started_at] = [scheduled_at, started_at].map(Timestamp::from_micros);
            all.push(Executed { job: JobNo(job), scheduled_at, started_at });
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

/// Counts the `missing` runs that are in the store's queue (`waiting`), and the lost runs: those
/// that were neither executed, nor queued, nor recorded as skipped by the store.
pub fn causes(
    missing: &[(JobNo, Timestamp)],
    waiting: &BTreeSet<(JobNo, Timestamp)>,
    skipped: u64,
) -> (u64, u64) {
    let left_waiting = missing.iter().filter(|time| waiting.contains(time)).count() as u64;
    (left_waiting, (missing.len() as u64 - left_waiting).saturating_sub(skipped))
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
        // Job 1 was executed only at the later of its two run times. Job 2 was executed only at the
        // third of its four run times.
        let ledger = [executed(1, 20), executed(2, 30)];
        let times = |all: &[i64]| all.iter().copied().map(Timestamp::from_micros).collect();
        let expected =
            BTreeMap::from([(JobNo(1), times(&[10, 20])), (JobNo(2), times(&[10, 20, 30, 40]))]);
        let missing = missing(&ledger, &until_last(&ledger, expected));
        let at = |job, time| (JobNo(job), Timestamp::from_micros(time));
        assert_eq!(missing, [at(1, 10), at(2, 10), at(2, 20)]);
        let waiting_and_lost =
            |waiting: &[_], skipped| causes(&missing, &waiting.iter().copied().collect(), skipped);
        assert_eq!(waiting_and_lost(&[], 0), (0, 3));
        assert_eq!(waiting_and_lost(&[at(1, 10), at(2, 20)], 0), (2, 1));
        assert_eq!(waiting_and_lost(&[at(1, 10), at(2, 20)], 1), (2, 0));
        // A queued run that is not among the missing runs does not reduce the number of lost runs.
        assert_eq!(waiting_and_lost(&[at(2, 40), at(9, 9)], 0), (0, 3));
    }
}
