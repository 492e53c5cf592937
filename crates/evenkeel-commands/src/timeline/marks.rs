//! Reads the runs and the jobs of a period, with bounds.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::timeline::JOBS_MAX;
use evenkeel_core::{AttemptKey, JobId, Span};
use evenkeel_store::{Activity, COMMANDS_MAX, Job, JobFilter, JobSort, PageRequest, SortBy};

use super::{Mark, Request, future, past};
use crate::run_list::load_runs;
use crate::stats::{RUNS_STEP, RunSearch};
use crate::{Result, Runs};

/// Number of runs in one read. The list reads one run more, to see whether others follow.
const RUNS_READ: u32 = RUNS_STEP - 1;
/// Maximum number of reads of runs.
const RUN_READS_MAX: usize = 15;
/// Number of jobs in one read.
const JOBS_READ: u32 = 500;
/// Maximum number of reads of jobs.
const JOB_READS_MAX: u32 = JOBS_MAX / JOBS_READ;
/// Maximum number of running jobs that are read.
const RUNNING_READ_MAX: u32 = 1_000;

/// Marks that are not in lanes yet.
#[derive(Default)]
pub(super) struct FoundMarks {
    pub(super) runs: Vec<Mark>,
    pub(super) expected: Vec<Mark>,
    /// True if all runs of the period were read.
    pub(super) has_all_runs: bool,
    pub(super) has_all_expected: bool,
    /// The job of the query.
    pub(super) job: Option<Job>,
}

impl FoundMarks {
    /// Returns true if these are all marks of the period, and no more than `limit`.
    pub(super) fn fits(&self, limit: usize) -> bool {
        self.has_all_runs && self.has_all_expected && self.runs.len() + self.expected.len() <= limit
    }
}

/// What marks show of a job.
struct KnownJob {
    name: Option<String>,
    pool: String,
    average: Span,
}

impl From<&Job> for KnownJob {
    fn from(job: &Job) -> Self {
        let Job { about, definition, history, .. } = job;
        let average = definition.average(history.average_good_duration);
        Self { name: about.name.clone(), pool: definition.pool.clone(), average }
    }
}

impl Runs {
    /// Reads all marks of a period, or more than the limit, or as many as the bounds allow.
    pub(super) async fn marks(&self, request: Request<'_>) -> Result<FoundMarks> {
        let mut found =
            FoundMarks { has_all_runs: true, has_all_expected: true, ..Default::default() };
        let Request { scope, period, job, now, limit } = request;
        if let Some(job) = job {
            found.job = self.store.get(scope, job).await?;
        }
        // Jobs are read before runs: a job that fires in between is found twice, not never.
        if period.to() > now {
            self.read_expected(request, &mut found).await?;
        }
        if period.from() <= now && (job.is_some() || found.expected.len() <= limit) {
            self.read_runs(request, &mut found).await?;
            self.read_running(request, &mut found).await?;
        }
        if job.is_some() || found.fits(limit) {
            self.read_jobs_of_runs(request, &mut found.runs).await?;
        }
        Ok(found)
    }

    async fn read_expected(&self, request: Request<'_>, found: &mut FoundMarks) -> Result<()> {
        let Request { scope, period, now, limit, .. } = request;
        let add = |expected: &mut Vec<Mark>, job: &Job| {
            let missing = (limit + 1).saturating_sub(expected.len());
            expected.extend(future::marks_of(job, period, now, missing));
        };
        if let Some(job) = &found.job {
            add(&mut found.expected, job);
            return Ok(());
        }
        let filter = JobFilter { next_before: Some(period.to()), ..JobFilter::default() };
        let sort = JobSort { by: SortBy::NextRun, descending: false };
        let mut after = None;
        for _ in 0..JOB_READS_MAX {
            let page = PageRequest { limit: JOBS_READ, offset: 0, after };
            let jobs = self.store.list_jobs(scope, &filter, sort, page).await?;
            jobs.items.iter().for_each(|job| add(&mut found.expected, job));
            after = jobs.next;
            if after.is_none() || found.expected.len() > limit {
                return Ok(());
            }
        }
        found.has_all_expected = false;
        Ok(())
    }

    async fn read_runs(&self, request: Request<'_>, found: &mut FoundMarks) -> Result<()> {
        let Request { scope, period, job, limit, .. } = request;
        let (from, before) = (Some(period.from()), Some(period.to()));
        let search = RunSearch { job, status: None, from, before };
        let mut after = None;
        for _ in 0..RUN_READS_MAX {
            let page = PageRequest { limit: RUNS_READ, offset: 0, after };
            let runs = self.unnamed_runs(scope, search, page).await?;
            found.runs.extend(runs.items.iter().map(past::mark_of));
            after = runs.next;
            // The density of one job counts the runs that were read, so all of them are read.
            let is_enough = job.is_none() && found.runs.len() + found.expected.len() > limit;
            if after.is_none() || is_enough {
                return Ok(());
            }
        }
        found.has_all_runs = false;
        Ok(())
    }

    /// Reads the runs that began before the period and are still running.
    async fn read_running(&self, request: Request<'_>, found: &mut FoundMarks) -> Result<()> {
        let Request { scope, period, .. } = request;
        let began_before = |job: &Job| {
            let key = job.running?.first_attempt();
            (key.scheduled_at < period.from()).then_some(key)
        };
        let keys: Vec<AttemptKey> = match &found.job {
            Some(job) => began_before(job).into_iter().collect(),
            None => {
                let active_attempts = Some(Activity::Runs);
                let filter = JobFilter { active_attempts, ..JobFilter::default() };
                let page = PageRequest::first(RUNNING_READ_MAX);
                let jobs = self.store.list_jobs(scope, &filter, JobSort::default(), page).await?;
                found.has_all_runs &= jobs.next.is_none();
                jobs.items.iter().filter_map(began_before).collect()
            }
        };
        let runs = load_runs(&*self.store, scope, &keys, 1).await?;
        found.runs.extend(runs.values().map(past::mark_of));
        Ok(())
    }

    async fn read_jobs_of_runs(&self, request: Request<'_>, runs: &mut [Mark]) -> Result<()> {
        let ids: BTreeSet<JobId> = runs.iter().map(|mark| mark.job).collect();
        let ids: Vec<JobId> = ids.into_iter().collect();
        let mut known = BTreeMap::new();
        for ids in ids.chunks(COMMANDS_MAX) {
            let jobs = self.store.get_jobs(request.scope, ids).await?;
            known.extend(jobs.iter().map(|job| (job.id, KnownJob::from(job))));
        }
        for mark in runs {
            let Some(job) = known.get(&mark.job) else { continue };
            mark.job_name = job.name.clone();
            mark.pool = Some(job.pool.clone());
            past::expect_end(mark, job.average, request.now);
        }
        Ok(())
    }
}
