//! Looks at runs: one, those of a job along its links, those of all jobs by time.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{AttemptKey, AttemptNo, JobId, JobNo, TenantNo};
use evenkeel_store::{Attempt, Page, PageRequest, RunLink};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::Answer;
use crate::rows::{key_params, link, run_from};

/// The runs of one job are counted exactly up to here,
const COUNTED_OF_JOB_MAX: usize = 1_000;
/// and those of all jobs up to here.
const COUNTED_MAX: i64 = 10_000;
/// Where a link is cut, so many rows of all jobs are searched for what is before it.
const SEARCHED_MAX: i64 = 10_000;

type Linked = (Attempt, Option<RunLink>);

fn linked_from(row: &Row<'_>) -> Answer<Linked> {
    Ok((run_from(row)?, link(row.get("prev_at")?, row.get("prev_sequence")?)))
}

fn collect(mut rows: rusqlite::Rows<'_>) -> Answer<Vec<Linked>> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(linked_from(row)?);
    }
    Ok(found)
}

fn link_of(key: AttemptKey) -> RunLink {
    RunLink { scheduled_at: key.scheduled_at, sequence: key.sequence }
}

pub(crate) fn get(
    connection: &Connection,
    tenant: TenantNo,
    key: AttemptKey,
) -> Answer<Option<Attempt>> {
    let chain = Chains::open(connection, tenant, key.job_no)?.attempts(link_of(key))?;
    let found = chain
        .into_iter()
        .map(|(run, _)| run)
        .find(|run| key.attempt == AttemptNo::FIRST || run.key.attempt == key.attempt);
    match found {
        Some(mut run) => {
            if run.status == AttemptStatus::Running {
                crate::notes::show(connection, &mut run)?;
            }
            Ok(Some(run))
        }
        None => get_wake(connection, tenant, key),
    }
}

fn get_wake(connection: &Connection, tenant: TenantNo, key: AttemptKey) -> Answer<Option<Attempt>> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(key);
    let mut statement = connection.prepare_cached(sql!("get_attempt_delayed"))?;
    let which = params![scheduled_at, job_no, sequence, attempt, tenant.0];
    statement.query(which)?.next()?.map(run_from).transpose()
}

/// The chains of one job.
struct Chains<'c> {
    connection: &'c Connection,
    tenant: TenantNo,
    job: JobNo,
    /// Attempts that wait for their first worker: few, and not in `run`.
    ready: Vec<Linked>,
}

impl<'c> Chains<'c> {
    fn open(connection: &'c Connection, tenant: TenantNo, job: JobNo) -> Answer<Self> {
        let mut statement = connection.prepare_cached(sql!("list_attempts_ready_of_job"))?;
        let ready = collect(statement.query(params![tenant.0, job.0])?)?;
        Ok(Self { connection, tenant, job, ready })
    }

    /// The attempts of a chain, newest first.
    fn attempts(&self, chain: RunLink) -> Answer<Vec<Linked>> {
        let mut statement = self.connection.prepare_cached(sql!("list_attempts_of_run"))?;
        let which = params![
            chain.scheduled_at.as_micros(),
            self.job.0,
            chain.sequence.bits(),
            self.tenant.0
        ];
        let mut found = collect(statement.query(which)?)?;
        let waits = |(run, _): &&Linked| link_of(run.key) == chain;
        found.extend(self.ready.iter().filter(waits).cloned());
        found.sort_by_key(|(run, _)| std::cmp::Reverse(run.key.attempt));
        Ok(found)
    }

    /// Walks from `start` (leaving out attempts of that chain from `below` up) until `enough`
    /// attempts were found, then adds what retention has kept of the time before the links end.
    fn walk(
        &self,
        start: RunLink,
        below: Option<AttemptNo>,
        enough: usize,
    ) -> Answer<Vec<Attempt>> {
        let (mut found, mut next, mut below) = (Vec::new(), Some(start), below);
        let mut oldest = start.scheduled_at;
        while let Some(chain) = next
            && found.len() < enough
        {
            let attempts = self.attempts(chain)?;
            next = match attempts.last() {
                Some((run, prev)) if run.key.attempt == AttemptNo::FIRST => *prev,
                _ => self.before_cut(chain)?,
            };
            if !attempts.is_empty() {
                oldest = oldest.min(chain.scheduled_at);
            }
            let wanted = |run: &Attempt| below.is_none_or(|below| run.key.attempt < below);
            found.extend(attempts.into_iter().map(|(run, _)| run.for_list()).filter(wanted));
            below = None;
        }
        if found.len() < enough {
            let mut statement = self.connection.prepare_cached(sql!("list_attempts_kept"))?;
            let kept = statement.query(params![oldest.as_micros(), self.job.0, self.tenant.0])?;
            found.extend(collect(kept)?.into_iter().map(|(run, _)| run));
        }
        Ok(found)
    }

    /// The chain before one whose first attempt, and with it the link, is forgotten.
    fn before_cut(&self, chain: RunLink) -> Answer<Option<RunLink>> {
        let mut statement = self.connection.prepare_cached(sql!("list_attempts_before_cut"))?;
        let which = params![chain.scheduled_at.as_micros(), self.job.0, SEARCHED_MAX];
        let found = statement.query_row(which, |row| Ok(link(row.get(0)?, row.get(1)?)));
        Ok(found.optional()?.flatten())
    }

    /// How many attempts there are from `head` on, at least `most` if there are more.
    fn count(&self, head: RunLink, most: usize) -> Answer<usize> {
        let mut statement = self.connection.prepare_cached(sql!("list_attempts_links"))?;
        let (mut count, mut next, mut oldest) = (0, Some(head), head.scheduled_at);
        while let Some(chain) = next
            && count < most
        {
            let (before, mut linked) = (count, false);
            let (at, sequence) = (chain.scheduled_at.as_micros(), chain.sequence.bits());
            let mut rows = statement.query(params![at, self.job.0, sequence])?;
            while let Some(row) = rows.next()? {
                count += 1;
                if row.get::<_, u16>("attempt")? == AttemptNo::FIRST.0 {
                    (next, linked) = (link(row.get("prev_at")?, row.get("prev_sequence")?), true);
                }
            }
            for (run, prev) in self.ready.iter().filter(|(run, _)| link_of(run.key) == chain) {
                count += 1;
                if run.key.attempt == AttemptNo::FIRST {
                    (next, linked) = (*prev, true);
                }
            }
            if !linked {
                next = self.before_cut(chain)?;
            }
            if count > before {
                oldest = oldest.min(chain.scheduled_at);
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

/// How many to look for: what is left out, what is shown, and one to know whether there is more.
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
            let head = link(row.get(1)?, row.get(2)?);
            Ok((JobNo(row.get(0)?), head, row.get::<_, i64>(3)?.unsigned_abs()))
        })
        .optional()?;
    let Some((job, Some(head), executions)) = found else {
        return Ok(page_of(Vec::new(), page, (0, false)));
    };
    let chains = Chains::open(connection, tenant, job)?;
    let counted = chains.count(head, COUNTED_OF_JOB_MAX + 1)?;
    let total = match counted <= COUNTED_OF_JOB_MAX {
        true => (counted as u64, false),
        false => (executions.max(counted as u64), true),
    };
    let after = page.after.filter(|after| after.job_no == job);
    let start = after.map_or(head, link_of);
    let runs = chains.walk(start, after.map(|after| after.attempt), enough(page))?;
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
        runs.extend(collect(rows)?.into_iter().map(|(run, _)| run));
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.key));
    runs.truncate(limit as usize);
    Ok(page_of(runs, page, count_all(connection, tenant)?))
}

fn count_all(connection: &Connection, tenant: TenantNo) -> Answer<(u64, bool)> {
    let (seen, ours): (i64, i64) = connection
        .prepare_cached(sql!("list_attempts_count"))?
        .query_row(params![tenant.0, COUNTED_MAX + 1], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let waiting: i64 = connection
        .prepare_cached(sql!("list_attempts_count_ready"))?
        .query_row(params![tenant.0, COUNTED_MAX + 1], |row| row.get(0))?;
    if seen <= COUNTED_MAX && waiting <= COUNTED_MAX {
        return Ok(((ours + waiting).unsigned_abs(), false));
    }
    let started: i64 = connection
        .prepare_cached(sql!("list_attempts_estimate"))?
        .query_row([tenant.0], |row| row.get(0))?;
    Ok(((started.max(ours) + waiting).unsigned_abs(), true))
}
