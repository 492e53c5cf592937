//! Lists and counts by where runs are.
//!
//! There is no index with the end of runs, and no count that each end would have to lock. So up to
//! [`LIST_SCAN_MAX`] jobs are looked at one by one, which is exact. Who has more gets what waits and
//! runs along the indexes of those, the rest as far as one look goes and a cursor for more, and
//! counts that say they are estimates.

use evenkeel_core::status::JobStatus;
use evenkeel_core::{JobNo, Span, Timestamp};
use evenkeel_store::{
    Activity, Job, JobCursor, JobFilter, JobSort, LIST_SCAN_MAX, PageRequest, Scope,
};

use super::{AdminJob, AdminStatus, ScheduledJob};
use crate::{CommandError, Jobs};

/// Jobs that are read at once.
const STEP: u32 = 1000;

/// So often, for one page.
const STEPS: u32 = 10;

/// A part of a list.
#[derive(Clone, PartialEq, Debug)]
pub struct AdminPage<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// How many there are on all pages.
    pub total: u64,
    /// Is that only roughly right?
    pub total_is_estimate: bool,
    /// Where the next part goes on.
    pub next: Option<AdminPlace>,
}

/// A place in a list: after this job, on this way through the jobs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AdminPlace {
    /// The way: one of a few, which only the list knows.
    pub way: u8,
    /// The job.
    pub after: JobNo,
}

/// How many jobs are where.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct AdminStats {
    /// They wait.
    pub queued: u64,
    /// A worker has them.
    pub running: u64,
    /// Their latest run did not end well.
    pub failed: u64,
    /// It did.
    pub completed: u64,
    /// There are too many to look at each.
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

/// A way through the jobs of a tenant.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Way {
    /// Past all of them.
    All,
    /// Those of which something waits, for a worker or a retry.
    Waiting,
    /// Those whose time has come.
    Due,
    /// Those that run.
    Running,
}

impl Way {
    const EACH: [Self; 4] = [Self::All, Self::Waiting, Self::Due, Self::Running];

    /// The first way to those with a status, if there are many jobs.
    fn to(status: AdminStatus) -> Self {
        match status {
            AdminStatus::Queued => Self::Waiting,
            AdminStatus::Crawling => Self::Running,
            AdminStatus::Success | AdminStatus::Failed => Self::All,
        }
    }

    /// The one after that.
    fn next(self) -> Option<Self> {
        (self == Self::Waiting).then_some(Self::Due)
    }

    fn filter(self, now: Timestamp) -> JobFilter {
        let none = JobFilter::default();
        match self {
            Self::All => none,
            // By what goes on and not by their state, which of paused and cancelled jobs hides it.
            Self::Waiting => JobFilter { active_attempts: Some(Activity::Waits), ..none },
            Self::Running => JobFilter { active_attempts: Some(Activity::Runs), ..none },
            Self::Due => JobFilter {
                status: Some(JobStatus::Pending),
                next_before: Some(now.saturating_add(Span::from_micros(1))),
                ..none
            },
        }
    }

    fn place(self, after: JobNo) -> AdminPlace {
        AdminPlace { way: self as u8, after }
    }

    fn of(place: AdminPlace) -> Option<Self> {
        Self::EACH.get(usize::from(place.way)).copied()
    }
}

impl Jobs {
    /// The jobs whose latest run is there, or all, in the order of their creation.
    pub async fn admin_list(
        &self,
        scope: &Scope,
        status: Option<AdminStatus>,
        page: PageRequest<AdminPlace>,
    ) -> Result<AdminPage<AdminJob>, CommandError> {
        let now = self.store.now().await?;
        let found = match status {
            None => self.pick_any(scope, page).await?,
            Some(status) => {
                let passes = |job: &Job| AdminStatus::of(job, now) == Some(status);
                self.pick(scope, Way::to(status), &passes, page, now).await?
            }
        };
        let AdminPage { items, total, total_is_estimate, next } = found;
        let items = self.look_over(scope, items, now).await?;
        Ok(AdminPage { items, total, total_is_estimate, next })
    }

    /// The jobs that run by a cron expression or at an interval, in the order of their creation.
    pub async fn list_scheduled(
        &self,
        scope: &Scope,
        page: PageRequest<AdminPlace>,
    ) -> Result<AdminPage<ScheduledJob>, CommandError> {
        let now = self.store.now().await?;
        let passes = |job: &Job| ScheduledJob::is_one(job);
        let found = self.pick(scope, Way::All, &passes, page, now).await?;
        let items = found.items.into_iter().filter_map(ScheduledJob::of).collect();
        let AdminPage { total, total_is_estimate, next, .. } = found;
        Ok(AdminPage { items, total, total_is_estimate, next })
    }

    /// How many jobs are where.
    pub async fn admin_stats(&self, scope: &Scope) -> Result<AdminStats, CommandError> {
        let now = self.store.now().await?;
        let mut stats = AdminStats::default();
        let mut looked_at = 0_u64;
        let mut after = None;
        loop {
            let step = PageRequest { limit: STEP, offset: 0, after };
            let all = JobFilter::default();
            let page = self.store.list_jobs(scope, &all, JobSort::default(), step).await?;
            looked_at += page.items.len() as u64;
            page.items.iter().for_each(|job| stats.add(AdminStatus::of(job, now)));
            after = page.next;
            if after.is_none() {
                return Ok(stats);
            }
            if looked_at >= u64::from(LIST_SCAN_MAX) {
                return self.estimate(scope, stats, (looked_at, page.total), now).await;
            }
        }
    }

    /// What was seen of some jobs, as it would be of all; what waits and runs is counted.
    async fn estimate(
        &self,
        scope: &Scope,
        seen: AdminStats,
        (looked_at, all): (u64, u64),
        now: Timestamp,
    ) -> Result<AdminStats, CommandError> {
        Ok(AdminStats {
            queued: self.count(scope, Way::Waiting, now).await?,
            running: self.count(scope, Way::Running, now).await?,
            failed: scaled(seen.failed, all, looked_at),
            completed: scaled(seen.completed, all, looked_at),
            is_estimate: true,
        })
    }

    /// A part of all jobs: the store knows how far to go.
    async fn pick_any(
        &self,
        scope: &Scope,
        page: PageRequest<AdminPlace>,
    ) -> Result<AdminPage<Job>, CommandError> {
        let PageRequest { limit, offset, after } = page;
        let after = after.map(|place| JobCursor { at: 0, no: place.after });
        let page = PageRequest { limit, offset, after };
        let all = JobFilter::default();
        let found = self.store.list_jobs(scope, &all, JobSort::default(), page).await?;
        let next = found.next.map(|cursor| Way::All.place(cursor.no));
        let (items, total, total_is_estimate) = (found.items, found.total, found.total_is_estimate);
        Ok(AdminPage { items, total, total_is_estimate, next })
    }

    /// A part of the jobs that pass.
    async fn pick(
        &self,
        scope: &Scope,
        way: Way,
        passes: &(dyn Fn(&Job) -> bool + Send + Sync),
        page: PageRequest<AdminPlace>,
        now: Timestamp,
    ) -> Result<AdminPage<Job>, CommandError> {
        let one = PageRequest { limit: 1, offset: 0, after: None };
        let all = JobFilter::default();
        let first = self.store.list_jobs(scope, &all, JobSort::default(), one).await?;
        if first.total <= u64::from(LIST_SCAN_MAX) {
            self.pick_of_few(scope, passes, page).await
        } else {
            let way = page.after.and_then(Way::of).unwrap_or(way);
            self.pick_of_many(scope, way, passes, page, (first.total, now)).await
        }
    }

    /// Of so many that each can be looked at: exact.
    async fn pick_of_few(
        &self,
        scope: &Scope,
        passes: &(dyn Fn(&Job) -> bool + Send + Sync),
        page: PageRequest<AdminPlace>,
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
        let next = items.last().filter(|_| has_more).map(|job: &Job| Way::All.place(job.no));
        Ok(AdminPage { items, total, total_is_estimate: false, next })
    }

    /// Of many: as far as one look goes. Who would leave out more than that is told to follow the
    /// cursor, rather than that there is nothing.
    async fn pick_of_many(
        &self,
        scope: &Scope,
        mut way: Way,
        passes: &(dyn Fn(&Job) -> bool + Send + Sync),
        page: PageRequest<AdminPlace>,
        (all, now): (u64, Timestamp),
    ) -> Result<AdminPage<Job>, CommandError> {
        let (mut items, mut skipped) = (Vec::new(), 0);
        let (mut looked_at, mut passed, mut steps) = (0_u64, 0_u64, 0);
        let first_way = way;
        let mut after = page.after.map(|place| JobCursor { at: 0, no: place.after });
        let next = 'walk: loop {
            let step = PageRequest { limit: STEP, offset: 0, after };
            let filter = way.filter(now);
            let found = self.store.list_jobs(scope, &filter, JobSort::default(), step).await?;
            steps += 1;
            for job in found.items {
                let no = job.no;
                looked_at += 1;
                // A due job of which something waits as well was on the way before.
                let is_new = way != Way::Due || job.live == 0;
                if is_new && passes(&job) {
                    passed += 1;
                    if skipped < page.offset {
                        skipped += 1;
                    } else {
                        items.push(job);
                    }
                }
                if items.len() >= page.limit as usize {
                    break 'walk Some(way.place(no));
                }
            }
            match (found.next, way.next()) {
                // A step that finds little has looked at many all the same.
                (Some(cursor), _) if looked_at >= u64::from(LIST_SCAN_MAX) || steps >= STEPS => {
                    break Some(way.place(cursor.no));
                }
                (Some(cursor), _) => after = Some(cursor),
                (None, Some(other)) => (way, after) = (other, None),
                (None, None) => break None,
            }
        };
        if page.offset > 0 && items.is_empty() && next.is_some() {
            return Err(CommandError::TooFar);
        }
        let is_whole = page.after.is_none() && next.is_none();
        let total = match first_way {
            _ if is_whole => passed,
            Way::All => scaled(passed, all, looked_at),
            way => self.count(scope, way, now).await?,
        };
        Ok(AdminPage { items, total, total_is_estimate: !is_whole, next })
    }

    /// About how many jobs are along a way, and those that follow it.
    async fn count(&self, scope: &Scope, way: Way, now: Timestamp) -> Result<u64, CommandError> {
        let (mut way, mut total) = (Some(way), 0_u64);
        let one = PageRequest { limit: 1, offset: 0, after: None };
        while let Some(along) = way {
            let filter = along.filter(now);
            let found = self.store.list_jobs(scope, &filter, JobSort::default(), one).await?;
            total = total.saturating_add(found.total);
            way = along.next();
        }
        Ok(total)
    }
}

/// As many of all as of those that were looked at.
fn scaled(count: u64, all: u64, looked_at: u64) -> u64 {
    let scaled = u128::from(count) * u128::from(all.max(looked_at)) / u128::from(looked_at.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
