//! Reads one attempt by its key, the attempts of one job along its linked runs, or the attempts of
//! all jobs by scheduled time.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{AttemptKey, AttemptNo, JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{Attempt, Page, PageRequest, RunLink};
use rusqlite::{Connection, Row};

use crate::connection::{Params, RunPrepared, RunSql};
use crate::error::Answer;
use crate::rows::{attempt_from, count, head_from, link, page_of, prev_from};

/// The attempts of one job are counted exactly up to this number.
const COUNTED_OF_JOB_MAX: usize = 1_000;
/// The attempts of all jobs are counted exactly up to this number.
const COUNTED_MAX: i64 = 10_000;
/// A key that sorts after the key of every attempt.
const LAST_KEY: AttemptKey = AttemptKey::regular(JobNo(i64::MAX), Timestamp::from_micros(i64::MAX));
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
        None => connection.maybe_row(sql!("get_attempt_delayed"), &[&key, &tenant], attempt_from),
    }
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
        let sql = sql!("list_attempts_ready_of_job");
        let ready = connection.rows(sql, &[&tenant, &job], linked_from)?;
        Ok(Self { connection, tenant, job, ready })
    }

    /// Returns the attempts of a run, newest first.
    fn attempts(&self, run_link: RunLink) -> Answer<Vec<Linked>> {
        let mut found = self.connection.rows(
            sql!("list_attempts_of_run"),
            &[&run_link.scheduled_at, &self.job, &run_link.sequence, &self.tenant],
            linked_from,
        )?;
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
            let kept: Params<'_> = &[&oldest, &self.job, &self.tenant];
            found.extend(self.connection.rows(sql!("list_attempts_kept"), kept, attempt_from)?);
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
            let run: Params<'_> = &[&run_link.scheduled_at, &self.job, &run_link.sequence];
            let mut rows = statement.select(run)?;
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
            let kept: Params<'_> = &[&oldest, &self.job, &self.tenant];
            count += self.connection.rows(sql!("list_attempts_kept"), kept, |_| Ok(()))?.len();
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
    let which: Params<'_> = &[&run.scheduled_at, &job, &SEARCHED_MAX];
    let found = connection.maybe_row(sql!("list_attempts_before_cut"), which, |row| {
        Ok(link(row.get("scheduled_at")?, row.get("sequence")?))
    })?;
    Ok(found.flatten())
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
    let found = connection.maybe_row(sql!("list_attempts_job"), &[&tenant, &job], |row| {
        Ok((JobNo(row.get("job_no")?), head_from(row)?, count(row, "executions")?))
    })?;
    let Some((job, Some(head), executions)) = found else {
        return Ok(Page { items: Vec::new(), total: 0, total_is_estimate: false, next: None });
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
    Ok(shown(runs, page, total))
}

pub(crate) fn of_all(
    connection: &Connection,
    tenant: TenantNo,
    page: PageRequest<AttemptKey>,
) -> Answer<Page<Attempt, AttemptKey>> {
    let (after, limit) = (page.after.unwrap_or(LAST_KEY), enough(page));
    let mut runs = Vec::new();
    for sql in [sql!("list_attempts"), sql!("list_attempts_ready")] {
        runs.extend(connection.rows(sql, &[&tenant, &after, &limit], attempt_from)?);
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.key));
    runs.truncate(limit);
    Ok(shown(runs, page, count_all(connection, tenant)?))
}

/// Makes a list page of the attempts after the first `page.offset` attempts.
fn shown(
    mut found: Vec<Attempt>,
    page: PageRequest<AttemptKey>,
    total: (u64, bool),
) -> Page<Attempt, AttemptKey> {
    let items = found.split_off(found.len().min(page.offset as usize));
    page_of(items, page.limit, total, |attempt| attempt.key)
}

fn count_all(connection: &Connection, tenant: TenantNo) -> Answer<(u64, bool)> {
    let counted: Params<'_> = &[&tenant, &(COUNTED_MAX + 1)];
    let (all, own): (i64, i64) =
        connection.row(sql!("list_attempts_count"), counted, |row| Ok(row.try_into()?))?;
    let waiting: i64 = connection.value(sql!("list_attempts_count_ready"), counted)?;
    if all <= COUNTED_MAX && waiting <= COUNTED_MAX {
        return Ok(((own + waiting).unsigned_abs(), false));
    }
    let started: i64 = connection.value(sql!("list_attempts_estimate"), &[&tenant])?;
    Ok(((started.max(own) + waiting).unsigned_abs(), true))
}
