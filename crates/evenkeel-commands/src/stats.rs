//! Statistics of jobs and runs, searches for runs, and failures grouped by error message.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::{AttemptKey, JobId, Timestamp};
use evenkeel_store::{
    Attempt, AttemptFilter, FailureCursor, FailureGroup, JobCounts, NodeState, Page, PageRequest,
    RunTotals, Scope,
};

use crate::runs::check_job;
use crate::{Jobs, Result, Runs};

/// Maximum number of runs of one job that are read to group its failures.
const RUNS_GROUPED_MAX: usize = 2_000;

/// Number of runs that one store request reads; small, because each run may contain a long text.
pub(crate) const RUNS_STEP: u32 = 200;

/// Maximum number of runs that are scanned for one page of a filtered list.
pub(crate) const RUNS_SCANNED_MAX: usize = 2_000;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TenantStats {
    pub jobs: JobCounts,
    pub runs: RunTotals,
    /// Time of the last heartbeat of a live scheduler.
    pub last_check_at: Option<Timestamp>,
}

impl Jobs {
    pub async fn tenant_stats(&self, scope: &Scope) -> Result<TenantStats> {
        let jobs = self.store.job_counts(scope).await?;
        let runs = self.store.run_totals(scope).await?;
        let (_, members) = self.store.members().await?;
        let schedulers = members
            .iter()
            .filter(|member| member.roles.scheduler && member.state == NodeState::Live);
        let last_check_at = schedulers.map(|member| member.last_ping_at).max();
        Ok(TenantStats { jobs, runs, last_check_at })
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct RunSearch {
    pub job: Option<JobId>,
    pub status: Option<AttemptStatus>,
    /// The search finds only runs that are scheduled at this time or later.
    pub from: Option<Timestamp>,
    /// The search finds only runs that are scheduled before this time.
    pub before: Option<Timestamp>,
}

impl RunSearch {
    fn passes(&self, run: &Attempt) -> bool {
        let at = run.key.scheduled_at;
        self.status.is_none_or(|status| status == run.status)
            && self.from.is_none_or(|from| at >= from)
            && self.before.is_none_or(|before| at < before)
    }

    fn is_open(&self) -> bool {
        self.status.is_none() && self.from.is_none() && self.before.is_none()
    }

    /// Returns a cursor that skips the runs scheduled at or after `before`.
    pub(crate) fn start(&self) -> Option<AttemptKey> {
        let before = self.before.filter(|_| self.job.is_none())?;
        Some(AttemptKey::regular(evenkeel_core::JobNo(0), before))
    }
}

impl Runs {
    /// Lists the runs that match the search, newest first. For a filtered page, a limited number of
    /// runs is scanned, so the page may have fewer runs than the limit, or none, although a next
    /// page exists. An offset can skip only runs among those that are scanned for one page.
    pub async fn search(
        &self,
        scope: &Scope,
        search: RunSearch,
        page: PageRequest<AttemptKey>,
    ) -> Result<Page<Attempt, AttemptKey>> {
        if search.is_open() {
            return self.list(scope, search.job, page).await;
        }
        check_job(&*self.store, scope, search.job).await?;
        let mut to_skip = page.offset;
        let (mut items, mut scanned) = (Vec::new(), 0);
        let mut after = page.after.or_else(|| search.start());
        loop {
            let step = PageRequest { limit: RUNS_STEP, offset: 0, after };
            let filter = AttemptFilter { job: search.job };
            let found = self.store.list_attempts(scope, filter, step).await?;
            let is_last = found.next.is_none();
            for run in found.items {
                scanned += 1;
                // The list is ordered by scheduled time, so all further runs were scheduled before
                // `from`.
                let is_over = search.job.is_none()
                    && search.from.is_some_and(|from| run.key.scheduled_at < from);
                if is_over {
                    return Ok(searched(items, None));
                }
                let passes = search.passes(&run);
                if passes && to_skip == 0 && items.len() == page.limit as usize {
                    return Ok(searched(items, after));
                }
                after = Some(run.key);
                if passes && to_skip > 0 {
                    to_skip -= 1;
                } else if passes {
                    items.push(run);
                }
            }
            if is_last || scanned >= RUNS_SCANNED_MAX {
                return Ok(searched(items, after.filter(|_| !is_last)));
            }
        }
    }

    /// Lists groups of similar failures, newest first. The groups contain the failures of all jobs,
    /// or of the stored runs of one job.
    pub async fn failures(
        &self,
        scope: &Scope,
        job: Option<JobId>,
        page: PageRequest<FailureCursor>,
    ) -> Result<Page<FailureGroup, FailureCursor>> {
        let Some(job) = job else { return Ok(self.store.list_failures(scope, page).await?) };
        let mut after = None;
        let mut groups = BTreeMap::new();
        let mut scanned = 0;
        let is_truncated = loop {
            let step = PageRequest { limit: RUNS_STEP, offset: 0, after };
            let found = self.list(scope, Some(job), step).await?;
            scanned += found.items.len();
            found.items.iter().for_each(|run| add_to_group(&mut groups, run));
            after = found.next;
            if after.is_none() {
                break false;
            }
            if scanned >= RUNS_GROUPED_MAX {
                break true;
            }
        };
        let mut found = page_of(groups.into_values().collect(), page, is_truncated);
        let name = self.store.get(scope, job).await?.and_then(|job| job.about.name);
        found.items.iter_mut().for_each(|group| group.job_name = name.clone());
        Ok(found)
    }
}

/// Returns a page of runs whose `total` is only a lower bound, because the total number of matching
/// runs is unknown.
fn searched(items: Vec<Attempt>, next: Option<AttemptKey>) -> Page<Attempt, AttemptKey> {
    let total = items.len() as u64 + u64::from(next.is_some());
    Page { items, total, total_is_estimate: true, next }
}

fn add_to_group(groups: &mut BTreeMap<Fingerprint, FailureGroup>, run: &Attempt) {
    let default_message = match run.status {
        AttemptStatus::Failed => "failed without an error message",
        AttemptStatus::TimedOut => "timed out",
        _ => return,
    };
    let error = run.results.error.as_deref().unwrap_or(default_message);
    let at = run.finished_at.unwrap_or(run.key.scheduled_at);
    let fingerprint = Fingerprint::of(error);
    let group = groups.entry(fingerprint).or_insert_with(|| FailureGroup {
        fingerprint,
        count: 0,
        first_at: at,
        last_at: at,
        error: error.to_owned(),
        newest: run.key,
        job: Some(run.job),
        job_name: None,
    });
    group.count += 1;
    group.first_at = group.first_at.min(at);
    if at > group.last_at {
        (group.last_at, group.newest, group.error) = (at, run.key, error.to_owned());
    }
}

fn page_of(
    mut groups: Vec<FailureGroup>,
    page: PageRequest<FailureCursor>,
    total_is_estimate: bool,
) -> Page<FailureGroup, FailureCursor> {
    let position = |group: &FailureGroup| (group.last_at, group.fingerprint);
    let total = groups.len() as u64;
    groups.sort_unstable_by_key(|group| Reverse(position(group)));
    let follows = |group: &FailureGroup| page.after.is_none_or(|after| position(group) < after);
    let mut rest = groups.into_iter().filter(follows).skip(page.offset as usize);
    let items: Vec<FailureGroup> = rest.by_ref().take(page.limit as usize).collect();
    let next = rest.next().and_then(|_| items.last().map(position));
    Page { items, total, total_is_estimate, next }
}
