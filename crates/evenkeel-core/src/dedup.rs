//! Deduplication: decides whether a job or run may exist while another job has the same
//! deduplication key.
//!
//! The holder of a deduplication key is the job that took the key last. When another job needs the
//! deduplication key, the holder's current state decides whether the holder blocks the other job.
//! Claiming or finishing a run therefore updates no deduplication records.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::job::{About, Definition};
use crate::schedule::Schedule;
use crate::status::JobState;
use crate::time::{Span, Timestamp};

/// The deduplication setting of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Dedup {
    /// Only jobs of the same tenant and executor can be duplicates of each other.
    pub key: String,
    /// True if the deduplication key is derived from the job's target and changes with the target.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_target: bool,
    #[serde(default)]
    pub scope: DedupScope,
}

pub const LONGEST_WINDOW: Span = Span::from_secs(365 * 86_400);

/// In which state the holder of a deduplication key blocks other jobs with the same key.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DedupScope {
    /// The holder of the deduplication key blocks other jobs while it has a next or a waiting run.
    #[default]
    Pending,
    /// The holder of the deduplication key blocks other jobs while it has a next scheduled time, a
    /// waiting run or an active run.
    PendingOrRunning,
    /// The holder of the deduplication key blocks other jobs for this long after it took the key.
    Window(Span),
}

/// The stored hash of the deduplication key and executor type of a job.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DedupKey([u8; 16]);

impl DedupKey {
    /// Returns the hash of the deduplication key `text` for jobs of the executor `kind`.
    pub fn of(kind: &str, text: &str) -> Self {
        let hash = Sha256::new().chain_update(kind).chain_update([0]).chain_update(text).finalize();
        Self(std::array::from_fn(|at| hash[at]))
    }

    pub fn of_job(about: &About, definition: &Definition) -> Option<Self> {
        about.dedup.as_ref().map(|dedup| Self::of(&definition.executor.kind, &dedup.key))
    }

    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for DedupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DedupKey({:032x})", u128::from_be_bytes(self.0))
    }
}

/// The operation for which a job needs its deduplication key.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DedupPurpose {
    /// The job is created, changes its deduplication key or is resumed.
    Exist,
    /// A triggered run starts.
    Run,
    /// A user retries or redrives a failed run.
    RunAgain,
    /// A user puts an active run back into the queue.
    Requeue,
}

/// The state of the job that took a deduplication key last.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct KeyHolder {
    pub state: JobState,
    /// True if the holder's schedule has more than one run time.
    pub recurs: bool,
    pub next_at: Option<Timestamp>,
    /// True if a run of the holder waits for a worker or for its start time.
    pub waits: bool,
    /// Active runs.
    pub live: u32,
    pub taken_at: Timestamp,
}

impl KeyHolder {
    /// Returns the state of a new job that takes the deduplication key at `now`.
    pub fn new(schedule: &Schedule, next_at: Option<Timestamp>, now: Timestamp) -> Self {
        Self {
            state: JobState::Active,
            recurs: schedule.recurs(),
            next_at,
            waits: false,
            live: 0,
            taken_at: now,
        }
    }

    /// True if the job has a waiting run or a next scheduled time. A paused recurring job counts as
    /// pending, because its schedule continues after the pause.
    fn is_pending(&self) -> bool {
        let resumes = self.recurs && self.state == JobState::Paused;
        self.waits || self.next_at.is_some() || resumes
    }

    /// True if a run of the job waits or is due. A future scheduled time of a recurring job does
    /// not count, because otherwise a user could not trigger a run between two scheduled times.
    fn has_pending_run(&self, now: Timestamp) -> bool {
        let is_due = |next_at: Timestamp| next_at <= now || !self.recurs;
        self.waits || self.next_at.is_some_and(is_due)
    }
}

impl DedupScope {
    /// True if `holder` blocks another job that needs the same deduplication key.
    pub fn blocks_others(self, holder: &KeyHolder, now: Timestamp) -> bool {
        if holder.state == JobState::Deleted {
            return false;
        }
        match self {
            Self::Pending => holder.is_pending(),
            Self::PendingOrRunning => holder.is_pending() || holder.live > 0,
            Self::Window(window) => holder.taken_at.saturating_add(window) > now,
        }
    }

    /// True if an earlier run of the deduplication key's holder blocks its new run.
    pub fn blocks_itself(self, holder: &KeyHolder, purpose: DedupPurpose, now: Timestamp) -> bool {
        match (purpose, self) {
            // A requeued run already passed the deduplication check when it was created.
            (DedupPurpose::Exist | DedupPurpose::Requeue, _) => false,
            // A retry replaces the failed run, so the retry is not a duplicate.
            (DedupPurpose::RunAgain, Self::Window(_)) => false,
            (_, Self::Pending) => holder.has_pending_run(now),
            (_, Self::PendingOrRunning) => holder.has_pending_run(now) || holder.live > 0,
            (DedupPurpose::Run, Self::Window(window)) => {
                holder.taken_at.saturating_add(window) > now
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(NOW.as_micros() + secs * 1_000_000)
    }

    fn idle() -> KeyHolder {
        KeyHolder {
            state: JobState::Active,
            recurs: false,
            next_at: None,
            waits: false,
            live: 0,
            taken_at: at(-60),
        }
    }

    const WINDOW: DedupScope = DedupScope::Window(Span::from_secs(3600));

    #[test]
    fn one_time_job_is_pending_until_it_starts() {
        let scope = DedupScope::Pending;
        assert!(scope.blocks_others(&KeyHolder { next_at: Some(at(60)), ..idle() }, NOW));
        assert!(scope.blocks_others(&KeyHolder { waits: true, live: 1, ..idle() }, NOW));
        assert!(!scope.blocks_others(&KeyHolder { live: 1, ..idle() }, NOW));
        assert!(DedupScope::PendingOrRunning.blocks_others(&KeyHolder { live: 1, ..idle() }, NOW));
        assert!(!DedupScope::PendingOrRunning.blocks_others(&idle(), NOW));
    }

    #[test]
    fn paused_job_is_pending_if_it_recurs() {
        let paused = KeyHolder { state: JobState::Paused, ..idle() };
        assert!(!DedupScope::Pending.blocks_others(&paused, NOW));
        assert!(DedupScope::Pending.blocks_others(&KeyHolder { recurs: true, ..paused }, NOW));
    }

    #[test]
    fn window_depends_only_on_the_time_the_key_was_taken() {
        assert!(WINDOW.blocks_others(&idle(), NOW));
        assert!(!WINDOW.blocks_others(&KeyHolder { taken_at: at(-3600), ..idle() }, NOW));
        let pending = KeyHolder { taken_at: at(-3600), next_at: Some(at(60)), ..idle() };
        assert!(!WINDOW.blocks_others(&pending, NOW));
    }

    #[test]
    fn run_may_be_triggered_between_two_scheduled_times() {
        let recurring = KeyHolder { recurs: true, next_at: Some(at(60)), ..idle() };
        assert!(!DedupScope::Pending.blocks_itself(&recurring, DedupPurpose::Run, NOW));
        let due = KeyHolder { next_at: Some(NOW), ..recurring };
        assert!(DedupScope::Pending.blocks_itself(&due, DedupPurpose::Run, NOW));
        let once = KeyHolder { recurs: false, ..recurring };
        assert!(DedupScope::Pending.blocks_itself(&once, DedupPurpose::Run, NOW));
    }

    #[test]
    fn keys_belong_to_one_executor_and_read_back() {
        let key = DedupKey::of("crawl", "https://example.com/");
        assert_ne!(key, DedupKey::of("http", "https://example.com/"));
        // The hash depends on where the executor name ends and the deduplication key begins.
        assert_ne!(DedupKey::of("a", "bc"), DedupKey::of("ab", "c"));
        assert_eq!(DedupKey::from_bytes(key.to_bytes()), key);
        assert_eq!(format!("{:?}", DedupKey::of("noop", "x")).len(), "DedupKey()".len() + 32);
    }

    #[test]
    fn dedup_setting_reads_back_as_stored() {
        for scope in [DedupScope::Pending, DedupScope::PendingOrRunning, WINDOW] {
            for by_target in [false, true] {
                let dedup = Dedup { key: "example.com".into(), by_target, scope };
                let stored = serde_json::to_string(&dedup).unwrap();
                assert_eq!(serde_json::from_str::<Dedup>(&stored).unwrap(), dedup);
            }
        }
    }

    fn scopes() -> impl Strategy<Value = DedupScope> {
        prop_oneof![
            Just(DedupScope::Pending),
            Just(DedupScope::PendingOrRunning),
            (1_u64..7200).prop_map(|secs| DedupScope::Window(Span::from_secs(secs))),
        ]
    }

    prop_compose! {
        fn holders()(
            state in prop::sample::select(JobState::ALL.to_vec()),
            recurs: bool,
            next in prop::option::of(-3600_i64..3600),
            waits: bool,
            more in 0_u32..3,
            taken in -7200_i64..1,
        ) -> KeyHolder {
            let live = more + u32::from(waits);
            // Only an active job has a next scheduled time.
            let next_at = next.filter(|_| state == JobState::Active).map(at);
            KeyHolder { state, recurs, next_at, waits, live, taken_at: at(taken) }
        }
    }

    proptest! {
        #[test]
        fn deleted_job_blocks_no_other_job(holder in holders(), scope in scopes()) {
            let deleted = KeyHolder { state: JobState::Deleted, ..holder };
            prop_assert!(!scope.blocks_others(&deleted, NOW));
        }

        #[test]
        fn scope_pending_or_running_blocks_whatever_pending_blocks(holder in holders()) {
            let narrow = DedupScope::Pending.blocks_others(&holder, NOW);
            prop_assert!(!narrow || DedupScope::PendingOrRunning.blocks_others(&holder, NOW));
        }

        #[test]
        fn scope_pending_or_running_allows_one_job_with_work(holder in holders()) {
            let is_there = holder.state != JobState::Deleted;
            let has_work = holder.live > 0 || holder.next_at.is_some();
            let is_blocked = DedupScope::PendingOrRunning.blocks_others(&holder, NOW);
            prop_assert!(is_blocked || !(is_there && has_work));
        }

        #[test]
        fn job_never_blocks_its_own_existence(holder in holders(), scope in scopes()) {
            prop_assert!(!scope.blocks_itself(&holder, DedupPurpose::Exist, NOW));
        }

        #[test]
        fn job_never_has_two_requested_runs_waiting(holder in holders(), scope in scopes()) {
            let waits = KeyHolder { waits: true, live: holder.live.max(1), ..holder };
            for purpose in [DedupPurpose::Run, DedupPurpose::RunAgain] {
                let is_blocked = scope.blocks_itself(&waits, purpose, NOW);
                prop_assert!(is_blocked || matches!(scope, DedupScope::Window(_)));
            }
        }

        #[test]
        fn expired_window_stays_expired(holder in holders(), secs in 1_u64..7200, more in 0_u64..7200) {
            let scope = DedupScope::Window(Span::from_secs(secs));
            let later = NOW.saturating_add(Span::from_secs(more));
            prop_assert!(scope.blocks_others(&holder, NOW) || !scope.blocks_others(&holder, later));
        }
    }
}
