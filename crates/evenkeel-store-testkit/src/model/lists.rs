//! Lists of attempts. Lists of attempts need not be fast in the model, because tests rarely read
//! them.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, AttemptNo, JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    Attempt, AttemptFilter, LAST_ERROR_MAX, Page, PageRequest, RECENT_JOBS_MAX, RECENT_RUNS_MAX,
    RecentRun, Results, RunAttempt, Scope,
};

use super::data::{Data, Waiting, attempts_of, count};

impl Data {
    pub fn list_runs(
        &self,
        scope: &Scope,
        filter: AttemptFilter,
        page: PageRequest<AttemptKey>,
    ) -> Page<Attempt, AttemptKey> {
        let page = match filter.job {
            None => cut(self.runs_of_tenant(scope.tenant), page, |key, after| key < after),
            Some(id) => {
                let no = self.ids.get(&id).copied();
                let keys = no.map(|no| self.runs_of_job(scope.tenant, no)).unwrap_or_default();
                let place = |key: AttemptKey| keys.iter().position(|one| *one == key);
                let is_after = |key: &AttemptKey, after: &AttemptKey| place(*key) > place(*after);
                cut(keys.clone(), page, is_after)
            }
        };
        with_items(page, |key| self.run(*key).map(Attempt::for_list))
    }

    /// Returns the attempts of a tenant, newest scheduled time first.
    fn runs_of_tenant(&self, tenant: TenantNo) -> Vec<AttemptKey> {
        let of_tenant = self.runs.iter().filter(|(_, run)| run.tenant == tenant);
        let mut keys: Vec<AttemptKey> = of_tenant.map(|(key, _)| *key).collect();
        let queued = self.waiting.iter().filter(|(_, one)| matches!(one, Waiting::Ready(_)));
        let queued = queued.map(|((_, key), _)| *key);
        keys.extend(queued.filter(|key| self.tenant_of(key.job_no) == Some(tenant)));
        keys.sort_unstable_by(|a, b| b.cmp(a));
        keys.dedup();
        keys
    }

    /// Returns the attempts of a job, newest run first, and within a run the newest attempt first.
    fn runs_of_job(&self, tenant: TenantNo, no: JobNo) -> Vec<AttemptKey> {
        let Some(job) = self.find(no).filter(|job| job.tenant == tenant) else {
            return Vec::new();
        };
        let mut keys = Vec::new();
        for link in job.run_links.iter().rev() {
            let first = AttemptKey {
                scheduled_at: link.scheduled_at,
                job_no: no,
                sequence: link.sequence,
                attempt: AttemptNo::FIRST,
            };
            keys.extend(self.attempts_seen(first).into_iter().rev());
        }
        keys
    }

    /// Returns all stored and queued attempts of a run, oldest first.
    fn attempts_seen(&self, key: AttemptKey) -> Vec<AttemptKey> {
        let (first, last) = attempts_of(key).into_inner();
        let mut keys: Vec<AttemptKey> =
            self.runs.range(first..=last).map(|(key, _)| *key).collect();
        let waiting = self.waiting.range((key.job_no, first)..=(key.job_no, last));
        let queued = waiting.filter(|(_, one)| matches!(one, Waiting::Ready(_)));
        keys.extend(queued.map(|((_, key), _)| *key));
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn tenant_of(&self, no: JobNo) -> Option<TenantNo> {
        self.find(no).map(|job| job.tenant)
    }

    pub fn get_run(&self, scope: &Scope, key: AttemptKey) -> Option<Attempt> {
        if self.tenant_of(key.job_no) != Some(scope.tenant) {
            return None;
        }
        let key = match key.attempt {
            AttemptNo::FIRST => self.latest_attempt(key)?,
            _ => key,
        };
        let mut run = self.run(key)?;
        if let Some(note) = self.note_of(key) {
            run.progress = note.progress.clone();
            run.log = note.log.clone();
        }
        Some(run)
    }

    pub fn attempts_of_runs(
        &self,
        scope: &Scope,
        runs: &[AttemptKey],
        newest: u32,
    ) -> Vec<RunAttempt> {
        let is_own = |run: &&AttemptKey| self.tenant_of(run.job_no) == Some(scope.tenant);
        let mut keys = Vec::new();
        for run in runs.iter().filter(is_own) {
            let (first, last) = attempts_of(*run).into_inner();
            let stored: Vec<AttemptKey> =
                self.runs.range(first..=last).map(|(key, _)| *key).collect();
            let older = stored.len().saturating_sub(newest as usize);
            let is_shown =
                |(at, key): &(usize, &AttemptKey)| *at >= older || key.attempt == AttemptNo::FIRST;
            keys.extend(stored.iter().enumerate().filter(is_shown).map(|(_, key)| *key));
            let waiting = self.waiting.range((run.job_no, first)..=(run.job_no, last));
            keys.extend(waiting.map(|((_, key), _)| *key));
        }
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter().filter_map(|key| self.run_attempt(key)).collect()
    }

    pub fn recent_runs(&self, scope: &Scope, jobs: &[JobId], each: u32) -> Vec<RecentRun> {
        let each = each.min(RECENT_RUNS_MAX) as usize;
        let jobs = jobs.iter().take(RECENT_JOBS_MAX);
        jobs.flat_map(|id| self.recent_runs_of(scope, *id, each)).collect()
    }

    fn recent_runs_of(&self, scope: &Scope, id: JobId, each: usize) -> Vec<RecentRun> {
        let job = self.ids.get(&id).and_then(|no| self.find(*no));
        let Some(job) = job.filter(|job| job.tenant == scope.tenant && !job.is_deleted()) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for link in job.run_links.iter().rev().take(each) {
            let key = AttemptKey {
                scheduled_at: link.scheduled_at,
                job_no: job.no,
                sequence: link.sequence,
                attempt: AttemptNo::FIRST,
            };
            let attempts = self.attempts_of_runs(scope, &[key], 1);
            let Some(RunAttempt { attempt: newest, .. }) = attempts.last() else { break };
            let first = attempts.iter().map(|one| &one.attempt).find(|one| one.key == key);
            found.push(RecentRun {
                job: id,
                key,
                status: newest.status,
                started_at: first.and_then(|first| first.started_at),
                finished_at: newest.finished_at,
            });
            // The first attempt has the link to the previous run.
            if first.is_none() {
                break;
            }
        }
        found
    }

    fn run_attempt(&self, key: AttemptKey) -> Option<RunAttempt> {
        let mut attempt = self.run(key)?;
        attempt.results.output = None;
        let error = attempt.results.error.take();
        attempt.results.error = error.map(|error| error.chars().take(LAST_ERROR_MAX).collect());
        let due = match self.waiting.get(&(key.job_no, key)) {
            Some(Waiting::Delayed { due, .. }) => Some(*due),
            Some(Waiting::Ready(_)) | None => None,
        };
        Some(RunAttempt { attempt, due })
    }

    /// Returns the attempt to show for attempt number 0: the newest attempt that started or is
    /// queued, else the attempt that waits for its due time.
    fn latest_attempt(&self, key: AttemptKey) -> Option<AttemptKey> {
        let (first, last) = attempts_of(key).into_inner();
        let mut waiting = self.waiting.range((key.job_no, first)..=(key.job_no, last));
        let latest = self.attempts_seen(key).last().copied();
        latest.or_else(|| waiting.next_back().map(|((_, key), _)| *key))
    }

    fn run(&self, key: AttemptKey) -> Option<Attempt> {
        let job = self.find(key.job_no)?.id;
        if let Some(run) = self.runs.get(&key) {
            return Some(Attempt {
                key,
                job,
                status: run.status,
                fence: run.fence,
                crashes: run.crashes,
                node: run
                    .node
                    .and_then(|no| self.node(no))
                    .map(|node| (node.no, node.name.clone())),
                number: run.number,
                started_at: run.started_at,
                finished_at: run.finished_at,
                results: run.results.clone(),
                skipped: run.skipped,
                progress: None,
                log: None,
            });
        }
        match self.waiting.get(&(key.job_no, key))? {
            Waiting::Delayed { .. } => Some(pending(key, job, Fence::NONE, 0)),
            Waiting::Ready(ready) => Some(pending(key, job, ready.fence, ready.crashes)),
        }
    }
}

fn pending(key: AttemptKey, job: JobId, fence: Fence, crashes: u16) -> Attempt {
    let never: Option<Timestamp> = None;
    Attempt {
        key,
        job,
        status: AttemptStatus::Pending,
        fence,
        crashes,
        node: None,
        number: None,
        started_at: never,
        finished_at: never,
        results: Results::default(),
        skipped: None,
        progress: None,
        log: None,
    }
}

/// Cuts a page out of a whole list.
pub(super) fn cut<C: Clone>(
    whole: Vec<C>,
    page: PageRequest<C>,
    is_after: impl Fn(&C, &C) -> bool,
) -> Page<C, C> {
    let total = count(whole.len());
    let follows = |one: &C| page.after.as_ref().is_none_or(|after| is_after(one, after));
    let mut rest = whole.into_iter().filter(follows).skip(page.offset as usize);
    let items: Vec<C> = rest.by_ref().take(page.limit as usize).collect();
    let next = rest.next().and_then(|_| items.last().cloned());
    Page { items, total, total_is_estimate: false, next }
}

pub(super) fn with_items<T, C>(page: Page<C, C>, view: impl Fn(&C) -> Option<T>) -> Page<T, C> {
    let Page { items, total, total_is_estimate, next } = page;
    Page { items: items.iter().filter_map(view).collect(), total, total_is_estimate, next }
}
