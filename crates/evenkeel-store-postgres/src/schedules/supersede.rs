//! Cancels active runs of jobs because newer runs replace them.

use std::collections::{BTreeMap, HashMap, HashSet};

use evenkeel_core::JobNo;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_store::Supersede;

use crate::attempts::{JobRuns, Withdrawn, close_runs};
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{column, get, job_numbers};

/// An attempt can move to another table between two statements, so the search is repeated. A few
/// rounds are enough, because the scheduler calls `supersede` again while the job is busy.
const ROUNDS: usize = 4;

/// The jobs whose active runs are superseded, as arrays.
#[derive(Default)]
struct Decided {
    jobs: Vec<i64>,
    generations: Vec<i32>,
    due: Vec<i64>,
}

impl Decided {
    /// Sorts the jobs in lock order, each job once.
    fn new(batch: &[Supersede]) -> Self {
        let sorted: BTreeMap<JobNo, &Supersede> =
            batch.iter().map(|entry| (entry.job, entry)).collect();
        let mut decided = Self::default();
        for entry in sorted.values() {
            decided.push(entry.job.0, entry.generation, entry.due.as_micros());
        }
        decided
    }

    fn push(&mut self, job: i64, generation: i32, due: i64) {
        self.jobs.push(job);
        self.generations.push(generation);
        self.due.push(due);
    }

    fn only(&self, jobs: &HashSet<i64>) -> Self {
        let mut rest = Self::default();
        for ((job, generation), due) in self.jobs.iter().zip(&self.generations).zip(&self.due) {
            if jobs.contains(job) {
                rest.push(*job, *generation, *due);
            }
        }
        rest
    }
}

pub(super) async fn supersede(
    connection: &Connection,
    batch: &[Supersede],
    now: Option<i64>,
) -> Tried<()> {
    let mut decided = Decided::new(batch);
    for _ in 0..ROUNDS {
        if decided.jobs.is_empty() {
            break;
        }
        // Each round is a separate transaction, because waiting for attempts while jobs are locked
        // would break the lock order.
        let again = connection.transaction(run(connection, &decided, now)).await?;
        decided = decided.only(&again);
    }
    Ok(())
}

/// Locks rows in the order that finishing and claiming use: running attempts, pending attempts,
/// then jobs. Returns the jobs that have started an attempt in the meantime or still have a pending
/// attempt.
///
/// Every statement checks, in its own snapshot, that each job has not changed since the scheduler's
/// decision. If a job has not changed, its newer run is not fired yet, so every attempt that the
/// statement sees belongs to an older run.
async fn run(connection: &Connection, decided: &Decided, now: Option<i64>) -> Tried<HashSet<i64>> {
    let Decided { jobs, generations, due } = decided;
    let params: Params<'_> = &[jobs, generations, due];
    // Reads how many attempts each job has had in total.
    let marked = connection.rows(sql!("supersede_mark"), params).await?;
    let executions = marked.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?)));
    let executions = executions.collect::<Tried<HashMap<i64, i64>>>()?;
    let queued = connection.rows(sql!("supersede_withdraw_ready"), params).await?;
    let delayed = connection.rows(sql!("supersede_withdraw_delayed"), params).await?;
    let withdrawn = Withdrawn::read_all(&queued, &delayed)?;
    if !withdrawn.is_empty() {
        end(connection, withdrawn, now).await?;
    }
    let mut again = HashSet::new();
    for row in connection.rows(sql!("supersede_find"), params).await? {
        let (job_no, executions_now, has_pending): (i64, i64, bool) =
            (get(&row, "job_no")?, get(&row, "executions")?, get(&row, "has_pending")?);
        if has_pending || executions.get(&job_no) != Some(&executions_now) {
            again.insert(job_no);
        }
    }
    Ok(again)
}

async fn end(connection: &Connection, withdrawn: Vec<Withdrawn>, now: Option<i64>) -> Tried<()> {
    let jobs = job_numbers(&column(&withdrawn, |withdrawn| withdrawn.key.job_no));
    let rows = connection.rows(sql!("supersede_lock"), &[&now, &jobs]).await?;
    let Some(first) = rows.first() else { return Ok(()) };
    let now: i64 = get(first, "now")?;
    let mut runs = rows.iter().map(JobRuns::read).collect::<Tried<Vec<JobRuns>>>()?;
    close_runs(connection, &mut runs, withdrawn, AttemptStatus::Superseded, now).await?;
    Ok(())
}
