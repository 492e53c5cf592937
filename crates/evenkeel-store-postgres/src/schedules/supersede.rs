//! A newer time takes the place of what goes on.

use std::collections::{BTreeMap, HashMap, HashSet};

use evenkeel_core::JobNo;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_store::{Now, StoreError, Supersede};

use crate::PostgresStore;
use crate::attempts::{JobRuns, Withdrawn, close_runs};
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{get, job_numbers, micros};

/// What changes its place between two looks is found by another, but not for ever: whoever wants a
/// job replaced comes again as long as it is busy.
const LOOKS: usize = 4;

/// What was decided, by job.
#[derive(Clone, Default)]
struct Decided {
    jobs: Vec<i64>,
    generations: Vec<i32>,
    due: Vec<i64>,
}

impl Decided {
    /// In the order in which all lock rows, each job once.
    fn new(batch: &[Supersede]) -> Self {
        let sorted: BTreeMap<JobNo, &Supersede> = batch.iter().map(|one| (one.job, one)).collect();
        let mut decided = Self::default();
        for one in sorted.values() {
            decided.push(one.job.0, one.generation, one.due.as_micros());
        }
        decided
    }

    fn push(&mut self, job: i64, generation: i32, due: i64) {
        self.jobs.push(job);
        self.generations.push(generation);
        self.due.push(due);
    }

    /// Those of these jobs.
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
    store: &PostgresStore,
    batch: &[Supersede],
    now: Now,
) -> Result<(), StoreError> {
    let args = (Decided::new(batch), micros(now.literal()));
    store
        .hot
        .run(args, |connection, args| async move {
            let mut decided = args.0.clone();
            for _ in 0..LOOKS {
                if decided.jobs.is_empty() {
                    break;
                }
                // Each in a transaction of its own: with the rows of jobs locked, to wait for what
                // runs or waits of them would be the wrong order.
                let again = connection.transaction(run(&connection, &decided, args.1)).await?;
                decided = decided.only(&again);
            }
            Ok(())
        })
        .await
}

/// Locks in the order of a finish and a claim: what runs, what waits, then the jobs. Says of which
/// jobs something has begun meanwhile, or waits.
///
/// Every statement compares each job with what was decided, as of its own snapshot: whatever it
/// sees of a job that is still so was there before the newer time was fired.
async fn run(connection: &Connection, decided: &Decided, now: Option<i64>) -> Tried<HashSet<i64>> {
    let Decided { jobs, generations, due } = decided;
    let executions = ask(connection, decided).await?;
    let mut withdrawn = Vec::new();
    let sql = sql!("supersede_withdraw_ready");
    for row in connection.rows(sql, &[jobs, generations, due]).await? {
        withdrawn.push(Withdrawn::from_queue(&row)?);
    }
    let sql = sql!("supersede_withdraw_delayed");
    for row in connection.rows(sql, &[jobs, generations, due]).await? {
        withdrawn.push(Withdrawn::from_delayed(&row)?);
    }
    if !withdrawn.is_empty() {
        end(connection, withdrawn, now).await?;
    }
    let sql = sql!("supersede_find");
    let mut again = HashSet::new();
    for row in connection.rows(sql, &[jobs, generations, due]).await? {
        let (job_no, executions_now, has_pending): (i64, i64, bool) =
            (get(&row, "job_no")?, get(&row, "executions")?, get(&row, "has_pending")?);
        if has_pending || executions.get(&job_no) != Some(&executions_now) {
            again.insert(job_no);
        }
    }
    Ok(again)
}

/// Asks what runs of the jobs to end, and tells how many attempts each has had so far.
async fn ask(connection: &Connection, decided: &Decided) -> Tried<HashMap<i64, i64>> {
    let Decided { jobs, generations, due } = decided;
    let sql = sql!("supersede_mark");
    let rows = connection.rows(sql, &[jobs, generations, due]).await?;
    rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?))).collect()
}

async fn end(connection: &Connection, withdrawn: Vec<Withdrawn>, now: Option<i64>) -> Tried<()> {
    let jobs: Vec<JobNo> = withdrawn.iter().map(|withdrawn| withdrawn.key.job_no).collect();
    let sql = sql!("supersede_lock");
    let rows = connection.rows(sql, &[&now, &job_numbers(&jobs)]).await?;
    let Some(first) = rows.first() else { return Ok(()) };
    let now: i64 = get(first, "now")?;
    let mut runs = rows.iter().map(JobRuns::read).collect::<Tried<Vec<JobRuns>>>()?;
    close_runs(connection, &mut runs, withdrawn, AttemptStatus::Superseded, now).await?;
    Ok(())
}
