//! Lists and counts jobs by the status of their latest run.
//!
//! No index contains the outcome of runs, because every finished run would have to update that
//! index. Up to [`LIST_SCAN_MAX`] jobs are therefore read one by one, which gives exact results.
//! For tenants with more jobs, queued and running jobs are found through indexes, other statuses
//! through a limited scan with a cursor, and counts are estimates.

use evenkeel_core::status::JobStatus;
use evenkeel_core::{JobNo, Span, Timestamp};
use evenkeel_store::{
    Activity, Job, JobCursor, JobFilter, JobSort, LIST_SCAN_MAX, Page, PageRequest, Scope,
};

use super::{AdminJob, AdminStatus, ScheduledJob};
use crate::{CommandError, Jobs};

/// Number of jobs per store request.
const STEP: u32 = 1000;

/// Maximum number of store requests per page.
const STEPS: u32 = 10;

pub type AdminPage<T> = Page<T, AdminCursor>;

/// A list position: one of the scans of a list, and the last job that this scan returned.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AdminCursor {
    /// Number of the scan. Clients treat the whole cursor as opaque.
    pub scan: u8,
    pub after: JobNo,
}

/// Number of jobs by the status of their latest run.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct AdminStats {
    pub queued: u64,
    pub running: u64,
    pub failed: u64,
    pub completed: u64,
    /// True if the tenant has too many jobs to read each of them.
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

    /// Returns the first scan of a list of jobs with this status.
    fn to(status: AdminStatus) -> Self {
        match status {
            AdminStatus::Queued => Self::Waiting,
            AdminStatus::Crawling => Self::Running,
            AdminStatus::Success | AdminStatus::Failed => Self::All,
        }
    }

    /// Returns the scan that follows this scan in a list, if any.
    fn next(self) -> Option<Self> {
        (self == Self::Waiting).then_some(Self::Due)
    }

    fn filter(self, now: Timestamp) -> JobFilter {
        let none = JobFilter::default();
        match self {
            Self::All => none,
            // The filter uses active attempts, because paused and cancelled jobs with active
            // attempts have another status.
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
    ) -> Result<AdminPage<AdminJob>, CommandError> {
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
    ) -> Result<AdminPage<ScheduledJob>, CommandError> {
        let now = self.store.now().await?;
        let passes = |job: &Job| ScheduledJob::is_one(job);
        let found = self.pick(scope, Scan::All, &passes, page, now).await?;
        let items = found.items.into_iter().filter_map(ScheduledJob::of).collect();
        let AdminPage { total, total_is_estimate, next, .. } = found;
        Ok(AdminPage { items, total, total_is_estimate, next })
    }

    /// Counts the jobs by the status of their latest run.
    pub async fn admin_stats(&self, scope: &Scope) -> Result<AdminStats, CommandError> {
        let now = self.store.now().await?;
        let mut stats = AdminStats::default();
        let mut scanned = 0_u64;
        let mut after = None;
        loop {
            let step = PageRequest { limit: STEP, offset: 0, after };
            let all = JobFilter::default();
            let page = self.store.list_jobs(scope, &all, JobSort::default(), step).await?;
            scanned += page.items.len() as u64;
            page.items.iter().for_each(|job| stats.add(AdminStatus::of(job, now)));
            after = page.next;
            if after.is_none() {
                return Ok(stats);
            }
            if scanned >= u64::from(LIST_SCAN_MAX) {
                return self.estimate(scope, stats, (scanned, page.total), now).await;
            }
        }
    }

    /// Estimates the counts by extrapolating from the jobs read to all jobs. The store counts
    /// queued and running jobs, so these counts are not extrapolated.
    async fn estimate(
        &self,
        scope: &Scope,
        seen: AdminStats,
        (scanned, all): (u64, u64),
        now: Timestamp,
    ) -> Result<AdminStats, CommandError> {
        Ok(AdminStats {
            queued: self.count(scope, Scan::Waiting, now).await?,
            running: self.count(scope, Scan::Running, now).await?,
            failed: scaled(seen.failed, all, scanned),
            completed: scaled(seen.completed, all, scanned),
            is_estimate: true,
        })
    }

    async fn pick_any(
        &self,
        scope: &Scope,
        page: PageRequest<AdminCursor>,
    ) -> Result<AdminPage<Job>, CommandError> {
        let PageRequest { limit, offset, after } = page;
        let after = after.map(|place| JobCursor { at: 0, no: place.after });
        let page = PageRequest { limit, offset, after };
        let all = JobFilter::default();
        let found = self.store.list_jobs(scope, &all, JobSort::default(), page).await?;
        let next = found.next.map(|cursor| Scan::All.cursor(cursor.no));
        let (items, total, total_is_estimate) = (found.items, found.total, found.total_is_estimate);
        Ok(AdminPage { items, total, total_is_estimate, next })
    }

    async fn pick(
        &self,
        scope: &Scope,
        scan: Scan,
        passes: &(dyn Fn(&Job) -> bool + Send + Sync),
        page: PageRequest<AdminCursor>,
        now: Timestamp,
    ) -> Result<AdminPage<Job>, CommandError> {
        let one = PageRequest { limit: 1, offset: 0, after: None };
        let all = JobFilter::default();
        let first = self.store.list_jobs(scope, &all, JobSort::default(), one).await?;
        if first.total <= u64::from(LIST_SCAN_MAX) {
            self.pick_of_few(scope, passes, page).await
        } else {
            let scan = page.after.and_then(Scan::of).unwrap_or(scan);
            self.pick_of_many(scope, scan, passes, page, (first.total, now)).await
        }
    }

    /// Lists the jobs of a tenant with few jobs: reads every job, so that the page and the total
    /// are exact.
    async fn pick_of_few(
        &self,
        scope: &Scope,
        passes: &(dyn Fn(&Job) -> bool + Send + Sync),
        page: PageRequest<AdminCursor>,
    ) -> Result<AdminPage<Job>, CommandError> {
        let (mut items, mut total, mut skipped) = (Vec::new(), 0, 0);
        let (mut after, mut has_more) = (None, false);
        loop {
            let step = PageRequest { limit: STEP, offset: 0, after };
            let all = JobFilter::default();
            let found = self.store.list_jobs(scope, &all, JobSort::default(), step).await?;
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
    /// if `offset` skips more jobs than this limit, because an empty page would mean that no jobs
    /// follow.
    async fn pick_of_many(
        &self,
        scope: &Scope,
        mut scan: Scan,
        passes: &(dyn Fn(&Job) -> bool + Send + Sync),
        page: PageRequest<AdminCursor>,
        (all, now): (u64, Timestamp),
    ) -> Result<AdminPage<Job>, CommandError> {
        let (mut items, mut skipped) = (Vec::new(), 0);
        let (mut scanned, mut passed, mut steps) = (0_u64, 0_u64, 0);
        let first_scan = scan;
        let mut after = page.after.map(|place| JobCursor { at: 0, no: place.after });
        let next = 'walk: loop {
            let step = PageRequest { limit: STEP, offset: 0, after };
            let filter = scan.filter(now);
            let found = self.store.list_jobs(scope, &filter, JobSort::default(), step).await?;
            steps += 1;
            for job in found.items {
                let no = job.no;
                scanned += 1;
                // The preceding scan already returned due jobs that have a waiting run.
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
                // The page ends even if it has few jobs, because the request has scanned enough of
                // them.
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

    /// Estimates the number of jobs that a scan and its following scans find.
    async fn count(&self, scope: &Scope, scan: Scan, now: Timestamp) -> Result<u64, CommandError> {
        let (mut scan, mut total) = (Some(scan), 0_u64);
        let one = PageRequest { limit: 1, offset: 0, after: None };
        while let Some(current) = scan {
            let filter = current.filter(now);
            let found = self.store.list_jobs(scope, &filter, JobSort::default(), one).await?;
            total = total.saturating_add(found.total);
            scan = current.next();
        }
        Ok(total)
    }
}

/// Extrapolates a count among `scanned` jobs to all jobs.
fn scaled(count: u64, all: u64, scanned: u64) -> u64 {
    let scaled = u128::from(count) * u128::from(all.max(scanned)) / u128::from(scanned.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
