//! Lists and counts jobs by the status of their latest run.
//!
//! No index contains the outcome of runs, because every finished run would have to update that
//! index. A list therefore reads up to [`LIST_SCAN_MAX`] jobs one by one, which gives exact
//! results. If a tenant has more jobs, indexes find its queued and running jobs, and a limited scan
//! with a cursor finds its other jobs. The counts for such a large tenant are estimates.

use evenkeel_core::status::JobStatus;
use evenkeel_core::{JobNo, Span, Timestamp};
use evenkeel_store::{
    Activity, Job, JobCursor, JobFilter, JobSort, LIST_SCAN_MAX, Page, PageRequest, Scope,
};

use super::{AdminJob, AdminStatus, ScheduledJob};
use crate::{CommandError, Jobs, Result};

/// Number of jobs that one store request reads.
const STEP: u32 = 1000;

/// Maximum number of store requests for one page of a job list.
const STEPS: u32 = 10;

/// A predicate that returns true if a list contains the job.
type Passes<'a> = &'a (dyn Fn(&Job) -> bool + Send + Sync);

pub type AdminPage<T> = Page<T, AdminCursor>;

/// Position in a list of jobs: the current scan, and the last job that this scan returned.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AdminCursor {
    /// Index of the scan in `Scan::EACH`.
    pub scan: u8,
    pub after: JobNo,
}

/// Numbers of jobs by the status of their latest run.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct AdminStats {
    pub queued: u64,
    pub running: u64,
    pub failed: u64,
    pub completed: u64,
    /// True if the counts are estimates, because the tenant has more jobs than one request reads.
    pub is_estimate: bool,
}

impl AdminStats {
    fn add(&mut self, status: Option<AdminStatus>) {
        match status {
            Some(AdminStatus::Queued) => self.queued += 1,
            Some(AdminStatus::Crawling) => self.running += 1,
            Some(AdminStatus::Success) => self.completed += 1,
            Some(AdminStatus::Failed) => self.failed += 1,
            None => {}
        }
    }
}

/// One scan over the jobs of a tenant; a list may need several scans.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Scan {
    All,
    /// Scans the jobs with a run that waits for a worker or a retry.
    Waiting,
    /// Scans the jobs whose next run time has passed.
    Due,
    Running,
}

impl Scan {
    const EACH: [Self; 4] = [Self::All, Self::Waiting, Self::Due, Self::Running];

    /// Returns the scan with which a list of jobs with this status begins.
    fn to(status: AdminStatus) -> Self {
        match status {
            AdminStatus::Queued => Self::Waiting,
            AdminStatus::Crawling => Self::Running,
            AdminStatus::Success | AdminStatus::Failed => Self::All,
        }
    }

    fn next(self) -> Option<Self> {
        (self == Self::Waiting).then_some(Self::Due)
    }

    fn filter(self, now: Timestamp) -> JobFilter {
        let none = JobFilter::default();
        match self {
            Self::All => none,
            // The scans `Waiting` and `Running` select jobs by active attempts instead of job
            // status, because paused and cancelled jobs can have active attempts.
            Self::Waiting => JobFilter { active_attempts: Some(Activity::Waits), ..none },
            Self::Running => JobFilter { active_attempts: Some(Activity::Runs), ..none },
            Self::Due => JobFilter {
                status: Some(JobStatus::Pending),
                next_before: Some(now.saturating_add(Span::from_micros(1))),
                ..none
            },
        }
    }

    fn cursor(self, after: JobNo) -> AdminCursor {
        AdminCursor { scan: self as u8, after }
    }

    fn of(place: AdminCursor) -> Option<Self> {
        Self::EACH.get(usize::from(place.scan)).copied()
    }
}

impl Jobs {
    /// Lists the jobs whose latest run has `status`, or all jobs, oldest first.
    pub async fn admin_list(
        &self,
        scope: &Scope,
        status: Option<AdminStatus>,
        page: PageRequest<AdminCursor>,
    ) -> Result<AdminPage<AdminJob>> {
        let now = self.store.now().await?;
        let found = match status {
            None => self.pick_any(scope, page).await?,
            Some(status) => {
                let passes = |job: &Job| AdminStatus::of(job, now) == Some(status);
                self.pick(scope, Scan::to(status), &passes, page, now).await?
            }
        };
        let AdminPage { items, total, total_is_estimate, next } = found;
        let items = self.load_details(scope, items, now).await?;
        Ok(AdminPage { items, total, total_is_estimate, next })
    }

    /// Lists the jobs with a cron expression or an interval, oldest first.
    pub async fn list_scheduled(
        &self,
        scope: &Scope,
        page: PageRequest<AdminCursor>,
    ) -> Result<AdminPage<ScheduledJob>> {
        let now = self.store.now().await?;
        let passes = |job: &Job| ScheduledJob::is_one(job);
        let found = self.pick(scope, Scan::All, &passes, page, now).await?;
        let AdminPage { items, total, total_is_estimate, next } = found;
        let items = items.into_iter().filter_map(ScheduledJob::of).collect();
        Ok(AdminPage { items, total, total_is_estimate, next })
    }

    pub async fn admin_stats(&self, scope: &Scope) -> Result<AdminStats> {
        let now = self.store.now().await?;
        let mut stats = AdminStats::default();
        let mut scanned = 0_u64;
        let mut after = None;
        loop {
            let page = self.some_jobs(scope, &JobFilter::default(), STEP, after).await?;
            scanned += page.items.len() as u64;
            page.items.iter().for_each(|job| stats.add(AdminStatus::of(job, now)));
            after = page.next;
            if after.is_none() {
                return Ok(stats);
            }
            if scanned >= u64::from(LIST_SCAN_MAX) {
                // The store counts queued and running jobs. The numbers of failed and completed
                // jobs are extrapolated from the scanned jobs to all jobs.
                return Ok(AdminStats {
                    queued: self.count(scope, Scan::Waiting, now).await?,
                    running: self.count(scope, Scan::Running, now).await?,
                    failed: scaled(stats.failed, page.total, scanned),
                    completed: scaled(stats.completed, page.total, scanned),
                    is_estimate: true,
                });
            }
        }
    }

    async fn pick_any(
        &self,
        scope: &Scope,
        page: PageRequest<AdminCursor>,
    ) -> Result<AdminPage<Job>> {
        let PageRequest { limit, offset, after } = page;
        let after = after.map(|place| JobCursor { at: 0, no: place.after });
        let page = PageRequest { limit, offset, after };
        let all = JobFilter::default();
        let found = self.store.list_jobs(scope, &all, JobSort::default(), page).await?;
        let Page { items, total, total_is_estimate, next } = found;
        let next = next.map(|cursor| Scan::All.cursor(cursor.no));
        Ok(AdminPage { items, total, total_is_estimate, next })
    }

    async fn pick(
        &self,
        scope: &Scope,
        scan: Scan,
        passes: Passes<'_>,
        page: PageRequest<AdminCursor>,
        now: Timestamp,
    ) -> Result<AdminPage<Job>> {
        let total = self.some_jobs(scope, &JobFilter::default(), 1, None).await?.total;
        if total <= u64::from(LIST_SCAN_MAX) {
            self.pick_of_few(scope, passes, page).await
        } else {
            let scan = page.after.and_then(Scan::of).unwrap_or(scan);
            self.pick_of_many(scope, scan, passes, page, (total, now)).await
        }
    }

    /// Lists the jobs of a tenant with few jobs: reads every job, so that the page and the total
    /// are exact.
    async fn pick_of_few(
        &self,
        scope: &Scope,
        passes: Passes<'_>,
        page: PageRequest<AdminCursor>,
    ) -> Result<AdminPage<Job>> {
        let (mut items, mut total, mut skipped) = (Vec::new(), 0, 0);
        let (mut after, mut has_more) = (None, false);
        loop {
            let found = self.some_jobs(scope, &JobFilter::default(), STEP, after).await?;
            for job in found.items.into_iter().filter(|job| passes(job)) {
                total += 1;
                if page.after.is_some_and(|place| job.no <= place.after) {
                    continue;
                }
                if skipped < page.offset {
                    skipped += 1;
                } else if items.len() < page.limit as usize {
                    items.push(job);
                } else {
                    has_more = true;
                }
            }
            after = found.next;
            if after.is_none() {
                break;
            }
        }
        let next = items.last().filter(|_| has_more).map(|job: &Job| Scan::All.cursor(job.no));
        Ok(AdminPage { items, total, total_is_estimate: false, next })
    }

    /// Lists the jobs of a tenant with many jobs: reads a limited number of jobs. Returns an error
    /// if `offset` skips all jobs that the request may read, because clients would take an empty
    /// page for the end of the list.
    async fn pick_of_many(
        &self,
        scope: &Scope,
        mut scan: Scan,
        passes: Passes<'_>,
        page: PageRequest<AdminCursor>,
        (all, now): (u64, Timestamp),
    ) -> Result<AdminPage<Job>> {
        let (mut items, mut skipped) = (Vec::new(), 0);
        let (mut scanned, mut passed, mut steps) = (0_u64, 0_u64, 0);
        let first_scan = scan;
        let mut after = page.after.map(|place| JobCursor { at: 0, no: place.after });
        let next = 'walk: loop {
            let found = self.some_jobs(scope, &scan.filter(now), STEP, after).await?;
            steps += 1;
            for job in found.items {
                let no = job.no;
                scanned += 1;
                // The scan `Waiting` has already returned the due jobs that have a waiting run.
                let is_new = scan != Scan::Due || job.live == 0;
                if is_new && passes(&job) {
                    passed += 1;
                    if skipped < page.offset {
                        skipped += 1;
                    } else {
                        items.push(job);
                    }
                }
                if items.len() >= page.limit as usize {
                    break 'walk Some(scan.cursor(no));
                }
            }
            match (found.next, scan.next()) {
                // A page of jobs ends before it is full if the request has reached its scan limit.
                (Some(cursor), _) if scanned >= u64::from(LIST_SCAN_MAX) || steps >= STEPS => {
                    break Some(scan.cursor(cursor.no));
                }
                (Some(cursor), _) => after = Some(cursor),
                (None, Some(other)) => (scan, after) = (other, None),
                (None, None) => break None,
            }
        };
        if page.offset > 0 && items.is_empty() && next.is_some() {
            return Err(CommandError::OffsetTooLarge);
        }
        let is_whole = page.after.is_none() && next.is_none();
        let total = match first_scan {
            _ if is_whole => passed,
            Scan::All => scaled(passed, all, scanned),
            scan => self.count(scope, scan, now).await?,
        };
        Ok(AdminPage { items, total, total_is_estimate: !is_whole, next })
    }

    async fn some_jobs(
        &self,
        scope: &Scope,
        filter: &JobFilter,
        limit: u32,
        after: Option<JobCursor>,
    ) -> Result<Page<Job, JobCursor>> {
        let page = PageRequest { limit, offset: 0, after };
        Ok(self.store.list_jobs(scope, filter, JobSort::default(), page).await?)
    }

    /// Estimates the number of jobs that `scan` and the scans after it find.
    async fn count(&self, scope: &Scope, scan: Scan, now: Timestamp) -> Result<u64> {
        let (mut scan, mut total) = (Some(scan), 0_u64);
        while let Some(current) = scan {
            let found = self.some_jobs(scope, &current.filter(now), 1, None).await?;
            total = total.saturating_add(found.total);
            scan = current.next();
        }
        Ok(total)
    }
}

/// Extrapolates a number of jobs, counted among the first `scanned` jobs, to all jobs.
fn scaled(count: u64, all: u64, scanned: u64) -> u64 {
    let scaled = u128::from(count) * u128::from(all.max(scanned)) / u128::from(scanned.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
