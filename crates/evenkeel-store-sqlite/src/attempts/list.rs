//! Reads one attempt by its key, the attempts of one job along its linked runs, or the attempts of
//! all jobs by scheduled time.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{AttemptKey, AttemptNo, JobId, JobNo, TenantNo};
use evenkeel_store::{Attempt, Page, PageRequest, RunLink};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::Answer;
use crate::rows::{attempt_from, collect, head_from, key_params, link, prev_from};

/// The attempts of one job are counted exactly up to this number.
const COUNTED_OF_JOB_MAX: usize = 1_000;
/// The attempts of all jobs are counted exactly up to this number.
const COUNTED_MAX: i64 = 10_000;
/// Maximum number of rows of all jobs that are searched for the previous run if the link to it was
/// deleted.
const SEARCHED_MAX: i64 = 10_000;

type Linked = (Attempt, Option<RunLink>);

fn linked_from(row: &Row<'_>) -> Answer<Linked> {
    Ok((attempt_from(row)?, prev_from(row)?))
}

fn link_of(key: AttemptKey) -> RunLink {
    RunLink { scheduled_at: key.scheduled_at, sequence: key.sequence }
}

pub(crate) fn get(
    connection: &Connection,
    tenant: TenantNo,
    key: AttemptKey,
) -> Answer<Option<Attempt>> {
    let attempts = JobRuns::open(connection, tenant, key.job_no)?.attempts(link_of(key))?;
    let found = attempts
        .into_iter()
        .map(|(attempt, _)| attempt)
        .find(|attempt| key.attempt == AttemptNo::FIRST || attempt.key.attempt == key.attempt);
    match found {
        Some(mut attempt) => {
            if attempt.status == AttemptStatus::Running {
                crate::notes::show(connection, &mut attempt)?;
            }
            Ok(Some(attempt))
        }
        None => get_delayed(connection, tenant, key),
    }
}

fn get_delayed(
    connection: &Connection,
    tenant: TenantNo,
    key: AttemptKey,
) -> Answer<Option<Attempt>> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(key);
    let mut statement = connection.prepare_cached(sql!("get_attempt_delayed"))?;
    let which = params![scheduled_at, job_no, sequence, attempt, tenant.0];
    statement.query(which)?.next()?.map(attempt_from).transpose()
}

/// The runs of one job.
struct JobRuns<'c> {
    connection: &'c Connection,
    tenant: TenantNo,
    job: JobNo,
    /// Attempts that were never claimed, so they are not in the table `attempt`.
    ready: Vec<Linked>,
}

impl<'c> JobRuns<'c> {
    fn open(connection: &'c Connection, tenant: TenantNo, job: JobNo) -> Answer<Self> {
        let mut statement = connection.prepare_cached(sql!("list_attempts_ready_of_job"))?;
        let ready = collect(statement.query(params![tenant.0, job.0])?, linked_from)?;
        Ok(Self { connection, tenant, job, ready })
    }

    /// Returns the attempts of a run, newest first.
    fn attempts(&self, run_link: RunLink) -> Answer<Vec<Linked>> {
        let mut statement = self.connection.prepare_cached(sql!("list_attempts_of_run"))?;
        let which = params![
            run_link.scheduled_at.as_micros(),
            self.job.0,
            run_link.sequence.bits(),
            self.tenant.0
        ];
        let mut found = collect(statement.query(which)?, linked_from)?;
        let is_of_run = |(attempt, _): &&Linked| link_of(attempt.key) == run_link;
        found.extend(self.ready.iter().filter(is_of_run).cloned());
        found.sort_by_key(|(attempt, _)| std::cmp::Reverse(attempt.key.attempt));
        Ok(found)
    }

    /// Follows the links between runs from `start` until `enough` attempts are found. Of the run at
    /// `start`, the function returns only attempts with numbers below `below`. If the links end
    /// early, the function adds the older attempts that retention kept.
    fn walk(
        &self,
        start: RunLink,
        below: Option<AttemptNo>,
        enough: usize,
    ) -> Answer<Vec<Attempt>> {
        let (mut found, mut next, mut below) = (Vec::new(), Some(start), below);
        let mut oldest = start.scheduled_at;
        while let Some(run_link) = next
            && found.len() < enough
        {
            let attempts = self.attempts(run_link)?;
            next = match attempts.last() {
                Some((attempt, prev)) if attempt.key.attempt == AttemptNo::FIRST => *prev,
                _ => before_cut(self.connection, self.job, run_link)?,
            };
            if !attempts.is_empty() {
                oldest = oldest.min(run_link.scheduled_at);
            }
            let is_below =
                |attempt: &Attempt| below.is_none_or(|below| attempt.key.attempt < below);
            found.extend(
                attempts.into_iter().map(|(attempt, _)| attempt.for_list()).filter(is_below),
            );
            below = None;
        }
        if found.len() < enough {
            let mut statement = self.connection.prepare_cached(sql!("list_attempts_kept"))?;
            let kept = statement.query(params![oldest.as_micros(), self.job.0, self.tenant.0])?;
            found.extend(collect(kept, linked_from)?.into_iter().map(|(attempt, _)| attempt));
        }
        Ok(found)
    }

    /// Counts the attempts of the run `head` and of earlier runs, and stops at `most`.
    fn count(&self, head: RunLink, most: usize) -> Answer<usize> {
        let mut statement = self.connection.prepare_cached(sql!("list_attempts_links"))?;
        let (mut count, mut next, mut oldest) = (0, Some(head), head.scheduled_at);
        while let Some(run_link) = next
            && count < most
        {
            let (before, mut linked) = (count, false);
            let (at, sequence) = (run_link.scheduled_at.as_micros(), run_link.sequence.bits());
            let mut rows = statement.query(params![at, self.job.0, sequence])?;
            while let Some(row) = rows.next()? {
                count += 1;
                if row.get::<_, u16>("attempt")? == AttemptNo::FIRST.0 {
                    (next, linked) = (prev_from(row)?, true);
                }
            }
            let is_of_run = |(attempt, _): &&Linked| link_of(attempt.key) == run_link;
            for (attempt, prev) in self.ready.iter().filter(is_of_run) {
                count += 1;
                if attempt.key.attempt == AttemptNo::FIRST {
                    (next, linked) = (*prev, true);
                }
            }
            if !linked {
                next = before_cut(self.connection, self.job, run_link)?;
            }
            if count > before {
                oldest = oldest.min(run_link.scheduled_at);
            }
        }
        if count < most {
            let mut kept = self.connection.prepare_cached(sql!("list_attempts_kept"))?;
            let mut rows = kept.query(params![oldest.as_micros(), self.job.0, self.tenant.0])?;
            while rows.next()?.is_some() {
                count += 1;
            }
        }
        Ok(count)
    }
}

/// Returns the previous run of a run whose first attempt was pruned. The first attempt of a run
/// holds the link to the previous run.
pub(crate) fn before_cut(
    connection: &Connection,
    job: JobNo,
    run: RunLink,
) -> Answer<Option<RunLink>> {
    let mut statement = connection.prepare_cached(sql!("list_attempts_before_cut"))?;
    let which = params![run.scheduled_at.as_micros(), job.0, SEARCHED_MAX];
    let found =
        statement.query_row(which, |row| Ok(link(row.get("scheduled_at")?, row.get("sequence")?)));
    Ok(found.optional()?.flatten())
}

fn page_of(
    mut found: Vec<Attempt>,
    page: PageRequest<AttemptKey>,
    total: (u64, bool),
) -> Page<Attempt, AttemptKey> {
    let mut items = found.split_off(found.len().min(page.offset as usize));
    let has_more = items.len() > page.limit as usize;
    items.truncate(page.limit as usize);
    let next = items.last().map(|run| run.key).filter(|_| has_more);
    let (total, total_is_estimate) = total;
    Page { items, total, total_is_estimate, next }
}

/// Returns how many attempts a list page must read: the skipped attempts, the shown attempts, and
/// one attempt to see whether there is a next page.
fn enough(page: PageRequest<AttemptKey>) -> usize {
    page.offset as usize + page.limit as usize + 1
}

pub(crate) fn of_job(
    connection: &Connection,
    tenant: TenantNo,
    job: JobId,
    page: PageRequest<AttemptKey>,
) -> Answer<Page<Attempt, AttemptKey>> {
    let found = connection
        .prepare_cached(sql!("list_attempts_job"))?
        .query_row(params![tenant.0, job.0.as_bytes().as_slice()], |row| {
            let executions: i64 = row.get("executions")?;
            Ok((JobNo(row.get("job_no")?), head_from(row)?, executions.unsigned_abs()))
        })
        .optional()?;
    let Some((job, Some(head), executions)) = found else {
        return Ok(page_of(Vec::new(), page, (0, false)));
    };
    let runs_of_job = JobRuns::open(connection, tenant, job)?;
    let counted = runs_of_job.count(head, COUNTED_OF_JOB_MAX + 1)?;
    let total = match counted <= COUNTED_OF_JOB_MAX {
        true => (counted as u64, false),
        false => (executions.max(counted as u64), true),
    };
    let after = page.after.filter(|after| after.job_no == job);
    let start = after.map_or(head, link_of);
    let runs = runs_of_job.walk(start, after.map(|after| after.attempt), enough(page))?;
    Ok(page_of(runs, page, total))
}

pub(crate) fn of_all(
    connection: &Connection,
    tenant: TenantNo,
    page: PageRequest<AttemptKey>,
) -> Answer<Page<Attempt, AttemptKey>> {
    let (at, job_no, sequence, attempt) =
        page.after.map_or((i64::MAX, i64::MAX, u32::MAX, u16::MAX), key_params);
    let limit = enough(page) as i64;
    let mut runs = Vec::new();
    for sql in [sql!("list_attempts"), sql!("list_attempts_ready")] {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query(params![tenant.0, at, job_no, sequence, attempt, limit])?;
        runs.extend(collect(rows, linked_from)?.into_iter().map(|(attempt, _)| attempt));
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.key));
    runs.truncate(limit as usize);
    Ok(page_of(runs, page, count_all(connection, tenant)?))
}

fn count_all(connection: &Connection, tenant: TenantNo) -> Answer<(u64, bool)> {
    let (all, own): (i64, i64) = connection
        .prepare_cached(sql!("list_attempts_count"))?
        .query_row(params![tenant.0, COUNTED_MAX + 1], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let waiting: i64 = connection
        .prepare_cached(sql!("list_attempts_count_ready"))?
        .query_row(params![tenant.0, COUNTED_MAX + 1], |row| row.get(0))?;
    if all <= COUNTED_MAX && waiting <= COUNTED_MAX {
        return Ok(((own + waiting).unsigned_abs(), false));
    }
    let started: i64 = connection
        .prepare_cached(sql!("list_attempts_estimate"))?
        .query_row([tenant.0], |row| row.get(0))?;
    Ok(((started.max(own) + waiting).unsigned_abs(), true))
}
