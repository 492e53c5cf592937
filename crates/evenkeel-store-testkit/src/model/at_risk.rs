//! Tracks the jobs that are at risk of missing their deadlines.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::condition::{Level, Reason};
use evenkeel_core::{AttemptKey, AttemptNo, JobNo, Shard, Timestamp};
use evenkeel_store::{
    AtRisk, AtRiskStore, ConditionCounts, JobState, JobToJudge, Judgement, Now, OverdueInQueue,
    Page, PageRequest, RiskCursor, RiskFilter, Scope, StoreError, ToJudge,
};

use super::ModelStore;
use super::data::{Data, JobRow, Waiting, attempts_of, count};
use super::lists::{cut, with_items};

/// Due time of a job that must be judged immediately, earlier than any other time.
const AT_ONCE: Timestamp = Timestamp::MIN;

#[derive(Default)]
pub(super) struct AtRiskJobs {
    rows: BTreeMap<JobNo, AtRiskRow>,
    /// For each shard, the times at which jobs are due to be judged.
    due: BTreeSet<(Shard, Timestamp, JobNo)>,
    /// Counts all changes, so that `touched` never has an earlier value when a job is marked as at
    /// risk again.
    happened: i32,
}

struct AtRiskRow {
    judge_at: Timestamp,
    touched: i32,
    judged: Option<Judged>,
}

#[derive(Copy, Clone)]
struct Judged {
    reason: Reason,
    error_at: Timestamp,
    since: Timestamp,
}

impl AtRiskJobs {
    pub fn len(&self) -> u64 {
        count(self.rows.len())
    }

    /// Returns the condition of a job at its last judgement.
    pub fn level(&self, no: JobNo) -> Option<Level> {
        self.rows.get(&no)?.judged.map(|judged| judged.reason.level())
    }

    pub fn forget(&mut self, no: JobNo) {
        if let Some(row) = self.rows.remove(&no) {
            self.due.remove(&(Shard::of(no), row.judge_at, no));
        }
    }

    fn put(&mut self, no: JobNo, row: AtRiskRow) {
        self.forget(no);
        self.due.insert((Shard::of(no), row.judge_at, no));
        self.rows.insert(no, row);
    }
}

impl Data {
    pub fn mark_at_risk(&mut self, jobs: &[JobNo]) {
        for no in jobs {
            if self.find(*no).is_none_or(|job| job.is_over()) {
                continue;
            }
            let judged = self.at_risk.rows.get(no).and_then(|row| row.judged);
            self.at_risk.happened += 1;
            let touched = self.at_risk.happened;
            self.at_risk.put(*no, AtRiskRow { judge_at: AT_ONCE, touched, judged });
        }
    }

    /// Makes a job due to be judged again if it is at risk.
    pub fn touch(&mut self, no: JobNo) {
        if self.at_risk.rows.contains_key(&no) {
            self.mark_at_risk(&[no]);
        }
    }

    fn to_judge(&self, shards: &[Shard], limit: u32, now: Timestamp) -> ToJudge {
        let of_shard = |shard: &Shard| {
            let first = (*shard, AT_ONCE, JobNo(i64::MIN));
            let last = (*shard, now, JobNo(i64::MAX));
            self.at_risk.due.range(first..=last).map(|(_, _, no)| *no)
        };
        let shards: BTreeSet<Shard> = shards.iter().copied().collect();
        let due = shards.iter().flat_map(of_shard).take(limit as usize);
        ToJudge { now, jobs: due.filter_map(|no| self.watched(no)).collect() }
    }

    fn watched(&self, no: JobNo) -> Option<JobToJudge> {
        let (job, row) = (self.find(no)?, self.at_risk.rows.get(&no)?);
        Some(JobToJudge {
            no,
            tenant: job.tenant,
            touched: row.touched,
            before: row.judged.map(|judged| judged.reason.level()),
            active: job.state == JobState::Active,
            next_at: job.next_at,
            last_fired_at: job.last_fired_at,
            live: job.live > 0,
            running_since: self.newest_running(job).map(|(_, since)| since),
            history: job.history,
            since: job.since,
            definition: job.text.clone(),
        })
    }

    /// Returns the newest attempt of the job's newest run, and when it started, if it is running.
    /// Ignores records of skipped times.
    pub fn newest_running(&self, job: &JobRow) -> Option<(AttemptKey, Timestamp)> {
        let attempts = job.run_links.iter().rev().filter_map(|link| {
            let (scheduled_at, sequence) = (link.scheduled_at, link.sequence);
            let attempt = AttemptNo::FIRST;
            let first = AttemptKey { scheduled_at, job_no: job.no, sequence, attempt };
            self.runs.range(attempts_of(first)).next_back()
        });
        let (key, newest) =
            attempts.into_iter().find(|(_, it)| it.status != AttemptStatus::Skipped)?;
        let since = newest.started_at.filter(|_| newest.status == AttemptStatus::Running)?;
        Some((*key, since))
    }

    fn judge(&mut self, batch: &[Judgement], now: Timestamp) {
        for judgement in batch {
            let no = judgement.job;
            let as_judged = |row: &&AtRiskRow| row.touched == judgement.touched;
            let Some(row) = self.at_risk.rows.get(&no).filter(as_judged) else { continue };
            let Some(judge_at) = judgement.again_at else {
                self.at_risk.forget(no);
                continue;
            };
            let Judgement { reason, error_at, .. } = *judgement;
            let same = |judged: &Judged| judged.reason.level() == reason.level();
            let since = row.judged.filter(same).map_or(now, |judged| judged.since);
            let judged = Some(Judged { reason, error_at, since });
            self.at_risk.happened += 1;
            let touched = self.at_risk.happened;
            self.at_risk.put(no, AtRiskRow { judge_at, touched, judged });
        }
    }

    fn overdue_in_queue(
        &self,
        shards: &[Shard],
        after: Option<AttemptKey>,
        limit: u32,
        now: Timestamp,
    ) -> OverdueInQueue {
        let queued = self.waiting.iter().filter_map(|((_, key), waiting)| match waiting {
            Waiting::Ready(ready) => Some((*key, ready.order.should_start_by)),
            Waiting::Delayed { .. } => None,
        });
        let mut looked_at: Vec<(AttemptKey, Timestamp)> =
            queued.filter(|(key, _)| after.is_none_or(|after| *key > after)).collect();
        looked_at.sort_unstable();
        looked_at.truncate(limit as usize);
        let is_full = looked_at.len() == limit as usize;
        let wanted =
            |no: &JobNo| shards.contains(&Shard::of(*no)) && !self.at_risk.rows.contains_key(no);
        let overdue = looked_at.iter().filter(|(_, start_by)| *start_by < now);
        let jobs: BTreeSet<JobNo> = overdue.map(|(key, _)| key.job_no).filter(wanted).collect();
        OverdueInQueue {
            jobs: jobs.into_iter().collect(),
            next: looked_at.last().map(|(key, _)| *key).filter(|_| is_full),
        }
    }

    /// Returns the judged jobs of one tenant or of all tenants.
    fn judged(&self, scope: Option<&Scope>) -> impl Iterator<Item = (&JobRow, Judged)> {
        let tenant = scope.map(|scope| scope.tenant);
        self.at_risk.rows.iter().filter_map(move |(no, row)| {
            let job = self.find(*no)?;
            let seen = tenant.is_none_or(|tenant| job.tenant == tenant);
            row.judged.filter(|_| seen).map(|judged| (job, judged))
        })
    }

    fn condition_counts(&self, scope: Option<&Scope>) -> ConditionCounts {
        let seen = |job: &&JobRow| scope.is_none_or(|scope| job.tenant == scope.tenant);
        let jobs = self.jobs.iter().filter(|job| !job.is_deleted()).filter(seen).count();
        let of =
            |level| count(self.judged(scope).filter(|(_, it)| it.reason.level() == level).count());
        let held = self.judged(scope).filter(|(_, it)| it.reason == Reason::HeldByBlackout);
        ConditionCounts {
            jobs: count(jobs),
            warning: of(Level::Warning),
            error: of(Level::Error),
            held: count(held.count()),
        }
    }

    fn list_at_risk(
        &self,
        scope: &Scope,
        filter: RiskFilter,
        page: PageRequest<RiskCursor>,
    ) -> Page<AtRisk, RiskCursor> {
        let wanted = |level| level > Level::Ok && filter.level.is_none_or(|one| one == level);
        let listed = self.judged(Some(scope)).filter(|(_, it)| wanted(it.reason.level()));
        let mut listed: Vec<RiskCursor> = listed.map(|(job, it)| (it.error_at, job.no)).collect();
        listed.sort_unstable();
        let page = cut(listed, page, |one, after| one > after);
        with_items(page, |(_, no)| {
            let (job, row) = (self.find(*no)?, self.at_risk.rows.get(no)?);
            let judged = row.judged?;
            Some(AtRisk {
                no: *no,
                job: job.id,
                name: job.about.name.clone().or_else(|| job.about.source_name.clone()),
                reason: judged.reason,
                error_at: judged.error_at,
                since: judged.since,
            })
        })
    }
}

#[async_trait]
impl AtRiskStore for ModelStore {
    async fn mark_at_risk(&self, jobs: &[JobNo]) -> Result<(), StoreError> {
        self.lock().mark_at_risk(jobs);
        Ok(())
    }

    async fn to_judge(
        &self,
        shards: &[Shard],
        limit: u32,
        now: Now,
    ) -> Result<ToJudge, StoreError> {
        Ok(self.lock().to_judge(shards, limit, self.resolve(now)))
    }

    async fn judge(&self, batch: Vec<Judgement>, now: Now) -> Result<(), StoreError> {
        self.lock().judge(&batch, self.resolve(now));
        Ok(())
    }

    async fn overdue_in_queue(
        &self,
        shards: &[Shard],
        after: Option<AttemptKey>,
        limit: u32,
        now: Now,
    ) -> Result<OverdueInQueue, StoreError> {
        Ok(self.lock().overdue_in_queue(shards, after, limit, self.resolve(now)))
    }

    async fn condition_counts(&self, scope: &Scope) -> Result<ConditionCounts, StoreError> {
        Ok(self.lock().condition_counts(Some(scope)))
    }

    async fn all_condition_counts(&self) -> Result<ConditionCounts, StoreError> {
        Ok(self.lock().condition_counts(None))
    }

    async fn list_at_risk(
        &self,
        scope: &Scope,
        filter: RiskFilter,
        page: PageRequest<RiskCursor>,
    ) -> Result<Page<AtRisk, RiskCursor>, StoreError> {
        Ok(self.lock().list_at_risk(scope, filter, page))
    }
}
