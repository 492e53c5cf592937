//! Reads runs with their attempts.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{AttemptId, AttemptKey, AttemptNo, JobId, Span, Timestamp};
use evenkeel_store::{
    Attempt, AttemptFilter, Page, PageRequest, RECENT_JOBS_MAX, RUNS_MAX, RecentRun, RunAttempt,
    Scope, Store,
};

use crate::runs::check_job;
use crate::stats::{RUNS_SCANNED_MAX, RUNS_STEP, RunSearch};
use crate::{CommandError, Result, Runs};

/// Number of newest attempts that a list shows of each run.
const ATTEMPTS_LISTED_MAX: u32 = 10;

/// A run: one scheduled time, trigger, redrive or backfill of a job, or a record of skipped times.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// The key of the first attempt.
    pub key: AttemptKey,
    pub job: JobId,
    /// `None` if the job has no name or was deleted.
    pub job_name: Option<String>,
    /// The newest attempt; the attempt that waits, if one waits.
    pub latest: RunAttempt,
    /// The earlier attempts, oldest first. Of a run with many attempts, a list has only the first
    /// and the newest.
    pub earlier: Vec<RunAttempt>,
}

impl Run {
    /// All attempts that were read, oldest first.
    pub fn attempts(&self) -> impl Iterator<Item = &RunAttempt> {
        self.earlier.iter().chain([&self.latest])
    }

    /// The status of the newest attempt, which is the outcome of the run once the run has ended.
    pub fn status(&self) -> AttemptStatus {
        self.latest.attempt.status
    }

    /// Number of attempts so far, including the attempt that waits.
    pub fn attempt_count(&self) -> u16 {
        self.latest.attempt.key.attempt.from_one()
    }

    /// When the first attempt started; `None` if it has not started or is no longer kept.
    pub fn started_at(&self) -> Option<Timestamp> {
        let first = self.attempts().next().map(|one| &one.attempt);
        first.filter(|first| first.key.attempt == AttemptNo::FIRST)?.started_at
    }

    /// When the last attempt ended; `None` until the run has ended.
    pub fn finished_at(&self) -> Option<Timestamp> {
        self.latest.attempt.finished_at.filter(|_| self.status().outcome().is_some())
    }

    /// Delay between the scheduled time and the start of the first attempt.
    pub fn lateness(&self) -> Option<Span> {
        self.started_at().map(|start| start.since(self.key.scheduled_at))
    }
}

impl Runs {
    /// Returns the run with this id, or the run of the attempt with this id, with all attempts.
    pub async fn run(&self, scope: &Scope, id: AttemptId) -> Result<Run> {
        let key = self.run_ids.key(id).first_attempt();
        let all = u32::from(AttemptNo::MAX.from_one());
        let mut runs = load_runs(&*self.store, scope, &[key], all).await?;
        let mut run = runs.remove(&key).ok_or(CommandError::NotFound)?;
        run.job_name = self.store.get(scope, run.job).await?.and_then(|job| job.about.name);
        Ok(run)
    }

    /// Lists the runs that match the search, newest first, as [`search`](Self::search) does. The
    /// status of a run is the status of its newest attempt. A run that was triggered and waits for
    /// its due time is not listed yet.
    pub async fn runs(
        &self,
        scope: &Scope,
        search: RunSearch,
        page: PageRequest<AttemptKey>,
    ) -> Result<Page<Run, AttemptKey>> {
        check_job(&*self.store, scope, search.job).await?;
        let mut found = self.unnamed_runs(scope, search, page).await?;
        name_jobs(&*self.store, scope, &mut found.items).await?;
        Ok(found)
    }

    /// Returns the newest `each` runs of each of these jobs, the newest run of a job first. With
    /// `each` 0, reads nothing. A job without runs is not in the map.
    pub async fn recent(
        &self,
        scope: &Scope,
        jobs: &[JobId],
        each: u32,
    ) -> Result<BTreeMap<JobId, Vec<RecentRun>>> {
        let mut found: BTreeMap<JobId, Vec<RecentRun>> = BTreeMap::new();
        if each == 0 {
            return Ok(found);
        }
        for jobs in jobs.chunks(RECENT_JOBS_MAX) {
            for run in self.store.recent_runs(scope, jobs, each).await? {
                found.entry(run.job).or_default().push(run);
            }
        }
        Ok(found)
    }

    /// Lists runs as [`runs`](Self::runs) does, without the names of their jobs.
    pub(crate) async fn unnamed_runs(
        &self,
        scope: &Scope,
        search: RunSearch,
        page: PageRequest<AttemptKey>,
    ) -> Result<Page<Run, AttemptKey>> {
        let mut walk = RunWalk::new(search, page);
        let next = loop {
            let step = PageRequest { limit: walk.step(), offset: 0, after: walk.after };
            let filter = AttemptFilter { job: search.job };
            let found = self.store.list_attempts(scope, filter, step).await?;
            let is_last = found.next.is_none();
            let heads = walk.heads(&found.items);
            let keys: Vec<AttemptKey> = heads.iter().map(|head| head.run).collect();
            let loaded = load_runs(&*self.store, scope, &keys, ATTEMPTS_LISTED_MAX).await?;
            if let Some(next) = walk.take(heads, loaded) {
                break Some(next);
            }
            if is_last || walk.is_over {
                break None;
            }
            if walk.scanned >= RUNS_SCANNED_MAX {
                break walk.after;
            }
        };
        let items = walk.items;
        let is_whole = page.after.is_none() && page.offset == 0 && next.is_none();
        let total = items.len() as u64 + u64::from(next.is_some());
        Ok(Page { items, total, total_is_estimate: !is_whole, next })
    }
}

/// A run in a list of attempts.
struct RunHead {
    run: AttemptKey,
    /// The position in the list before the run.
    before: Option<AttemptKey>,
}

/// The state of a scan for one page of runs.
struct RunWalk {
    search: RunSearch,
    limit: usize,
    to_skip: u32,
    items: Vec<Run>,
    /// The attempt that was scanned last.
    after: Option<AttemptKey>,
    /// The run that was scanned last. Its other attempts may follow.
    last: Option<AttemptKey>,
    scanned: usize,
    /// True if all further runs were scheduled before the start of the requested period.
    is_over: bool,
}

impl RunWalk {
    fn new(search: RunSearch, page: PageRequest<AttemptKey>) -> Self {
        Self {
            search,
            limit: page.limit as usize,
            to_skip: page.offset,
            items: Vec::new(),
            after: page.after.or_else(|| search.start()),
            last: page.after.map(AttemptKey::first_attempt),
            scanned: 0,
            is_over: false,
        }
    }

    /// Returns how many attempts to read next: few if most runs pass and have one attempt.
    fn step(&self) -> u32 {
        let missing = self.limit.saturating_sub(self.items.len()) + 1;
        let all = u32::try_from(missing).unwrap_or(RUNS_STEP).saturating_add(self.to_skip);
        if self.search.status.is_some() { RUNS_STEP } else { all.min(RUNS_STEP) }
    }

    /// Returns the runs that begin in this part of the list, without runs outside the requested
    /// period.
    fn heads(&mut self, attempts: &[Attempt]) -> Vec<RunHead> {
        let RunSearch { job, from, before, .. } = self.search;
        let mut heads = Vec::new();
        for attempt in attempts {
            let at = attempt.key.scheduled_at;
            let is_early = from.is_some_and(|from| at < from);
            // Only the list of all jobs is ordered by scheduled time.
            if is_early && job.is_none() {
                self.is_over = true;
                break;
            }
            self.scanned += 1;
            let run = attempt.key.first_attempt();
            let is_outside = is_early || before.is_some_and(|before| at >= before);
            if self.last != Some(run) && !is_outside {
                heads.push(RunHead { run, before: self.after });
            }
            self.last = Some(run);
            self.after = Some(attempt.key);
        }
        heads
    }

    /// Adds the runs that pass to the page. If the page is full and another run follows, returns
    /// the position of the next page.
    fn take(
        &mut self,
        heads: Vec<RunHead>,
        mut loaded: BTreeMap<AttemptKey, Run>,
    ) -> Option<AttemptKey> {
        for head in heads {
            let run = loaded.remove(&head.run);
            let passes = |run: &Run| self.search.status.is_none_or(|status| status == run.status());
            let Some(run) = run.filter(passes) else { continue };
            if self.to_skip > 0 {
                self.to_skip -= 1;
            } else if self.items.len() < self.limit {
                self.items.push(run);
            } else {
                return head.before;
            }
        }
        None
    }
}

/// Reads runs with their first and `newest` newest attempts, without the names of their jobs.
pub(crate) async fn load_runs(
    store: &dyn Store,
    scope: &Scope,
    keys: &[AttemptKey],
    newest: u32,
) -> Result<BTreeMap<AttemptKey, Run>> {
    let mut runs: BTreeMap<AttemptKey, Run> = BTreeMap::new();
    for keys in keys.chunks(RUNS_MAX) {
        for attempt in store.attempts_of_runs(scope, keys, newest).await? {
            let key = attempt.attempt.key.first_attempt();
            match runs.get_mut(&key) {
                Some(run) => {
                    let earlier = std::mem::replace(&mut run.latest, attempt);
                    run.earlier.push(earlier);
                }
                None => {
                    let job = attempt.attempt.job;
                    let run =
                        Run { key, job, job_name: None, latest: attempt, earlier: Vec::new() };
                    runs.insert(key, run);
                }
            }
        }
    }
    Ok(runs)
}

async fn name_jobs(store: &dyn Store, scope: &Scope, runs: &mut [Run]) -> Result<()> {
    let ids: BTreeSet<JobId> = runs.iter().map(|run| run.job).collect();
    let ids: Vec<JobId> = ids.into_iter().collect();
    let mut names = BTreeMap::new();
    for ids in ids.chunks(evenkeel_store::COMMANDS_MAX) {
        let jobs = store.get_jobs(scope, ids).await?;
        names.extend(jobs.into_iter().map(|job| (job.id, job.about.name)));
    }
    for run in runs {
        run.job_name = names.get(&run.job).cloned().flatten();
    }
    Ok(())
}
