//! The tables of the in-memory store and their indexes.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::advance::SkippedTimes;
use evenkeel_core::aging::Rise;
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::lease::Fence;
use evenkeel_core::limit::{KeyLimit, Limit, LimitKey};
use evenkeel_core::order::{DispatchKey, Priority};
use evenkeel_core::{
    About, AttemptKey, AttemptNo, Definition, History, JobId, JobNo, NodeNo, Shard, Slot, TenantNo,
    Timestamp,
};
use evenkeel_store::{
    Census, ClaimWindow, DueJob, JobState, NodeMessage, NodeState, Results, Roles, RunLink,
};
use uuid::Uuid;

use super::at_risk::AtRiskJobs;
use super::progress::NoteRow;

#[derive(Default)]
pub(super) struct Data {
    pub tenants: BTreeMap<String, TenantNo>,
    pub settings: BTreeMap<String, String>,
    /// Job number `n` is at index `n - 1`.
    pub jobs: Vec<JobRow>,
    pub ids: BTreeMap<JobId, JobNo>,
    /// Tenant and public number of all jobs, including deleted jobs.
    pub numbers: BTreeMap<(TenantNo, i64), JobNo>,
    /// Tenant, name and configuration of jobs that are not deleted.
    pub names: BTreeMap<(TenantNo, String, String), JobNo>,
    /// Active jobs by the time slot of their next scheduled time.
    pub due: BTreeSet<(Shard, Slot, JobNo)>,
    pub changed: BTreeSet<(Shard, JobNo)>,
    pub delayed: BTreeSet<(Shard, Timestamp, AttemptKey)>,
    /// Waiting attempts of each job: queued, or delayed until their due time.
    pub waiting: BTreeMap<(JobNo, AttemptKey), Waiting>,
    /// The queued attempts of each pool by lane, in dispatch order.
    pub queue: BTreeMap<String, [BTreeSet<Place>; 3]>,
    pub runs: BTreeMap<AttemptKey, RunRow>,
    pub running: BTreeSet<(NodeNo, AttemptKey)>,
    /// Attempts that were asked to stop, with `true` if a newer scheduled time replaces them.
    pub cancellations: BTreeMap<(NodeNo, AttemptKey), bool>,
    pub notes: BTreeMap<AttemptKey, NoteRow>,
    /// Checkpoints by the first attempt of their run.
    pub checkpoints: BTreeMap<AttemptKey, Vec<u8>>,
    /// Messages to each node, oldest first.
    pub messages: BTreeMap<NodeNo, Vec<NodeMessage>>,
    /// Node number `n` is at index `n - 1`.
    pub nodes: Vec<NodeRow>,
    pub pages: super::pages::Pages,
    pub at_risk: AtRiskJobs,
    pub requests: BTreeMap<(TenantNo, String), super::requests::Request>,
    pub sums: super::run_stats::Sums,
    pub access: super::access::Access,
    pub secrets: super::secrets::Secrets,
    pub profiles: super::load_profiles::LoadProfiles,
    pub rebalances: super::balance::Rebalances,
    pub targets: super::targets::Targets,
    pub next_targets: BTreeMap<TenantNo, i64>,
    pub scores: super::balance::Scores,
    pub letters_of_dead: super::dead_letters::Letters,
    pub failing: BTreeMap<JobNo, super::dead_letters::Failing>,
    pub permits: BTreeSet<(LimitKey, AttemptKey)>,
    pub keys: super::dedup::Keys,
}

/// A position in the queue. The job number orders attempts that are equal in dispatch order.
pub(super) type Place = (DispatchKey, JobNo, AttemptKey);

pub(super) enum Waiting {
    Delayed { due: Timestamp, priority: Option<Priority> },
    Ready(Ready),
}

pub(super) struct Ready {
    pub pool: String,
    pub order: DispatchKey,
    pub fence: Fence,
    pub crashes: u16,
    pub window: ClaimWindow,
    pub forbidden_nodes: Vec<String>,
    pub rise: Rise,
    pub is_own_priority: bool,
    pub limit: Option<KeyLimit>,
    /// Pool and limit of an attempt that waits in a limit queue.
    pub parked: Option<(String, Limit)>,
}

impl Ready {
    /// Returns the priority of this run, if it differs from the priority of the job.
    pub fn own_priority(&self) -> Option<Priority> {
        self.is_own_priority.then_some(self.order.priority.0)
    }
}

pub(super) struct JobRow {
    pub no: JobNo,
    pub id: JobId,
    pub number: i64,
    pub tenant: TenantNo,
    pub about: About,
    pub definition: Definition,
    /// The stored job definition.
    pub text: String,
    pub state: JobState,
    /// When the job was paused, cancelled or deleted.
    pub stopped_at: Option<Timestamp>,
    /// The note of the pause.
    pub note: Option<String>,
    pub generation: i32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Missed deadlines before this time are ignored.
    pub since: Timestamp,
    pub next_at: Option<Timestamp>,
    /// The time slot under which `due` contains the job.
    pub slot: Option<Slot>,
    pub last_fired_at: Option<Timestamp>,
    pub live: u32,
    pub executions: u64,
    /// Number of scheduled times that were fired.
    pub fired: u64,
    pub last_outcome: Option<Outcome>,
    pub succeeded_runs: u64,
    pub failed_runs: u64,
    pub history: History,
    /// The runs of the job, oldest first. Databases instead store the newest run in the job, and in
    /// each run a link to the previous run.
    pub run_links: Vec<RunLink>,
    pub newest_good: Option<AttemptKey>,
    pub newest_failed: Option<AttemptKey>,
    /// The load profile and cost that are counted while the job has a next scheduled time.
    pub counted: Option<super::load_profiles::Counted>,
    /// When the job got its current target; `None` if it was registered with this target.
    pub target_since: Option<Timestamp>,
}

pub(super) struct RunRow {
    /// Priority of this run, if it differs from the priority of the job.
    pub priority: Option<Priority>,
    pub tenant: TenantNo,
    pub status: AttemptStatus,
    pub fence: Fence,
    pub crashes: u16,
    pub node: Option<NodeNo>,
    pub number: Option<u64>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub results: Results,
    pub skipped: Option<SkippedTimes>,
}

pub(super) struct NodeRow {
    pub no: NodeNo,
    pub identity: Uuid,
    pub name: String,
    pub roles: Roles,
    pub pools: Vec<String>,
    pub state: NodeState,
    pub joined_at: Timestamp,
    pub last_ping_at: Timestamp,
    pub steal_start_at: Option<Timestamp>,
    pub bound: OwnedBound,
}

/// The scheduled time from which a database searches for the attempts of a node.
#[derive(Clone, Debug)]
pub(super) struct OwnedBound {
    /// The node has no unfinished attempt with an earlier scheduled time, except long-running
    /// attempts.
    pub oldest_open: Timestamp,
    /// Oldest scheduled time of the attempts that the node got since its last ping.
    pub oldest_new: Option<Timestamp>,
    pub long: BTreeSet<AttemptKey>,
}

impl JobRow {
    pub fn head(&self) -> Option<RunLink> {
        self.run_links.last().copied()
    }

    pub fn is_deleted(&self) -> bool {
        self.state == JobState::Deleted
    }

    /// Returns true if the job is cancelled or deleted.
    pub fn is_over(&self) -> bool {
        matches!(self.state, JobState::Cancelled | JobState::Deleted)
    }

    /// Returns true if a pause, cancellation or deletion stops runs with this scheduled time.
    pub fn stops(&self, scheduled_at: Timestamp) -> bool {
        self.is_over() || self.stopped_at.is_some_and(|stopped_at| scheduled_at <= stopped_at)
    }

    pub fn due_job(&self) -> DueJob {
        DueJob {
            no: self.no,
            tenant: self.tenant,
            next_at: self.next_at.filter(|_| self.state == JobState::Active),
            generation: self.generation,
            live: self.live,
            head: self.head(),
            history: self.history,
            since: self.since,
            fired: self.fired,
            definition: self.text.clone(),
        }
    }
}

impl Data {
    pub fn tenant(&mut self, name: &str) -> TenantNo {
        let next = TenantNo(count(self.tenants.len()) as i32 + 1);
        *self.tenants.entry(name.into()).or_insert(next)
    }

    /// Finds a job by a number that a caller passed, which may be unknown.
    pub fn find(&self, no: JobNo) -> Option<&JobRow> {
        self.jobs.get(index(no))
    }

    /// Returns a job that is known to exist.
    pub fn job(&mut self, no: JobNo) -> &mut JobRow {
        &mut self.jobs[index(no)]
    }

    /// Updates the index `due` after a change of the job's next scheduled time or state.
    pub fn place(&mut self, no: JobNo) {
        let shard = Shard::of(no);
        let job = &mut self.jobs[index(no)];
        let active = job.state == JobState::Active;
        let slot = job.next_at.filter(|_| active).map(Slot::of);
        if job.slot == slot {
            return;
        }
        if let Some(old) = std::mem::replace(&mut job.slot, slot) {
            self.due.remove(&(shard, old, no));
        }
        if let Some(new) = slot {
            self.due.insert((shard, new, no));
        }
    }

    /// Makes a run the newest run of its job.
    pub fn link(&mut self, key: AttemptKey) {
        let link = RunLink { scheduled_at: key.scheduled_at, sequence: key.sequence };
        self.job(key.job_no).run_links.push(link);
    }

    /// Removes an attempt from the waiting attempts.
    pub fn stop_waiting(&mut self, key: AttemptKey) -> Option<Waiting> {
        let waiting = self.waiting.remove(&(key.job_no, key))?;
        match &waiting {
            Waiting::Delayed { due, .. } => {
                self.delayed.remove(&(Shard::of(key.job_no), *due, key));
            }
            Waiting::Ready(ready) => {
                if let Some(lanes) = self.queue.get_mut(&ready.pool) {
                    let lane = ready.order.lane as usize;
                    lanes[lane].remove(&(ready.order, key.job_no, key));
                }
            }
        }
        Some(waiting)
    }

    /// Adds an attempt that waits until its due time, with its own priority if the run has one.
    pub fn add_delayed(&mut self, key: AttemptKey, due: Timestamp, priority: Option<Priority>) {
        self.delayed.insert((Shard::of(key.job_no), due, key));
        self.waiting.insert((key.job_no, key), Waiting::Delayed { due, priority });
    }

    /// Returns the run-specific priority of an attempt that waits until its due time.
    pub fn delayed_priority(&self, key: AttemptKey) -> Option<Priority> {
        match self.waiting.get(&(key.job_no, key))? {
            Waiting::Delayed { priority, .. } => *priority,
            Waiting::Ready(_) => None,
        }
    }

    pub fn waiting_of(&self, job: JobNo) -> impl Iterator<Item = (AttemptKey, &Waiting)> {
        let first = AttemptKey::regular(job, Timestamp::from_micros(i64::MIN));
        self.waiting
            .range((job, first)..)
            .take_while(move |((of, _), _)| *of == job)
            .map(|((_, key), waiting)| (*key, waiting))
    }

    pub fn end_chain(&mut self, job: JobNo) {
        let job = self.job(job);
        job.live = job.live.saturating_sub(1);
    }

    pub fn running_of(&self, job: JobNo) -> Vec<(NodeNo, AttemptKey)> {
        self.running.iter().filter(|(_, key)| key.job_no == job).copied().collect()
    }

    pub fn census(&self) -> Census {
        let is_ready = |waiting: &&Waiting| matches!(waiting, Waiting::Ready(_));
        let skipped = self.runs.values().filter_map(|run| run.skipped);
        Census {
            jobs: count(self.jobs.iter().filter(|job| !job.is_deleted()).count()),
            runs: count(self.runs.len()),
            running: count(self.running.len()),
            ready: count(self.waiting.values().filter(is_ready).count()),
            delayed: count(self.delayed.len()),
            skipped_times: skipped.map(|times| times.count).sum(),
            live: self.jobs.iter().map(|job| u64::from(job.live)).sum(),
            at_risk: self.at_risk.len(),
        }
    }
}

/// Returns the range of the keys of all attempts of a run.
pub(super) fn attempts_of(key: AttemptKey) -> std::ops::RangeInclusive<AttemptKey> {
    key.with_attempt(AttemptNo::FIRST)..=key.with_attempt(AttemptNo(u16::MAX))
}

pub(super) fn count(length: usize) -> u64 {
    length as u64
}

pub(super) fn index(no: JobNo) -> usize {
    usize::try_from(no.0 - 1).unwrap_or(usize::MAX)
}
