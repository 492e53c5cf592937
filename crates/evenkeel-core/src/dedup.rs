//! Whether a job or run may be there beside another with the same key.
//!
//! A key has a holder: the job that took it last. Whether that still counts is decided at the moment
//! when somebody else wants the key, from what is true of the holder then. So nothing is written when
//! a run is claimed or ends.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::job::{About, Definition};
use crate::schedule::Schedule;
use crate::status::JobState;
use crate::time::{Span, Timestamp};

/// That a job is not to be there twice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Dedup {
    /// What tells it from others of its executor.
    pub key: String,
    /// Nobody chose the key: it is what the job is about, and follows that.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_target: bool,
    /// Against whom.
    #[serde(default)]
    pub scope: DedupScope,
}

/// No window is longer.
pub const LONGEST_WINDOW: Span = Span::from_secs(365 * 86_400);

/// Which holder of a key keeps others out.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DedupScope {
    /// One that has something to come or waiting.
    #[default]
    Pending,
    /// The same, or one that runs.
    PendingOrRunning,
    /// One that took the key no longer ago than this.
    Window(Span),
}

/// Stands for a key of an executor within a tenant.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DedupKey([u8; 16]);

impl DedupKey {
    /// The key `text` among jobs of the executor `kind`.
    pub fn of(kind: &str, text: &str) -> Self {
        let hash = Sha256::new().chain_update(kind).chain_update([0]).chain_update(text).finalize();
        let mut key = [0; 16];
        key.copy_from_slice(&hash[..16]);
        Self(key)
    }

    /// The key of a job, if it has one.
    pub fn of_job(about: &About, definition: &Definition) -> Option<Self> {
        about.dedup.as_ref().map(|dedup| Self::of(&definition.executor.kind, &dedup.key))
    }

    /// As it is stored.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// From how it is stored.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for DedupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DedupKey({:032x})", u128::from_be_bytes(self.0))
    }
}

/// What a key is wanted for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DedupPurpose {
    /// To be there: a job that is new, takes another key or goes on.
    Exist,
    /// To run now, because somebody asks for it.
    Run,
    /// To run a failed run again, because somebody asks for it.
    RunAgain,
    /// To wait once more with a run that runs, because somebody asks for it.
    Requeue,
}

/// What is known of the job that took a key last.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct KeyHolder {
    /// Whether it takes part.
    pub state: JobState,
    /// Has it more than one time?
    pub recurs: bool,
    /// Its next regular time.
    pub next_at: Option<Timestamp>,
    /// Does something of it wait, for a worker or for its time?
    pub waits: bool,
    /// Chains of it that are not over.
    pub live: u32,
    /// When it took the key.
    pub taken_at: Timestamp,
}

impl KeyHolder {
    /// A job that nothing has become of, and takes the key at `now`.
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

    /// It is there, and something of it is to come. A job that recurs goes on after a pause.
    fn is_pending(&self) -> bool {
        let goes_on = self.recurs && self.state == JobState::Paused;
        self.waits || self.next_at.is_some() || goes_on
    }

    /// A run of it waits, or would if the schedulers were quicker. A time to come of a job that
    /// recurs is none: else nobody could ask for a run between two times.
    fn has_pending_run(&self, now: Timestamp) -> bool {
        let is_due = |next_at: Timestamp| next_at <= now || !self.recurs;
        self.waits || self.next_at.is_some_and(is_due)
    }
}

impl DedupScope {
    /// Does a holder keep another job from what it wishes?
    pub fn keeps_out(self, holder: &KeyHolder, now: Timestamp) -> bool {
        if holder.state == JobState::Deleted {
            return false;
        }
        match self {
            Self::Pending => holder.is_pending(),
            Self::PendingOrRunning => holder.is_pending() || holder.live > 0,
            Self::Window(window) => holder.taken_at.saturating_add(window) > now,
        }
    }

    /// Does a job that holds its own key keep itself from what it wishes?
    pub fn keeps_itself_out(
        self,
        holder: &KeyHolder,
        purpose: DedupPurpose,
        now: Timestamp,
    ) -> bool {
        match (purpose, self) {
            // What goes back is the run that it had.
            (DedupPurpose::Exist | DedupPurpose::Requeue, _) => false,
            // What failed is made good, which is nothing new.
            (DedupPurpose::RunAgain, Self::Window(_)) => false,
            (_, Self::Pending) => holder.has_pending_run(now),
            (_, Self::PendingOrRunning) => holder.has_pending_run(now) || holder.live > 0,
            (DedupPurpose::Run, Self::Window(window)) => {
                holder.taken_at.saturating_add(window) > now
            }
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
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
    fn a_one_off_job_counts_until_it_is_taken_up() {
        let scope = DedupScope::Pending;
        assert!(scope.keeps_out(&KeyHolder { next_at: Some(at(60)), ..idle() }, NOW));
        assert!(scope.keeps_out(&KeyHolder { waits: true, live: 1, ..idle() }, NOW));
        assert!(!scope.keeps_out(&KeyHolder { live: 1, ..idle() }, NOW));
        assert!(DedupScope::PendingOrRunning.keeps_out(&KeyHolder { live: 1, ..idle() }, NOW));
        assert!(!DedupScope::PendingOrRunning.keeps_out(&idle(), NOW));
    }

    #[test]
    fn a_paused_job_counts_if_it_has_more_than_one_time() {
        let paused = KeyHolder { state: JobState::Paused, ..idle() };
        assert!(!DedupScope::Pending.keeps_out(&paused, NOW));
        assert!(DedupScope::Pending.keeps_out(&KeyHolder { recurs: true, ..paused }, NOW));
    }

    #[test]
    fn within_a_time_only_the_moment_counts() {
        assert!(WINDOW.keeps_out(&idle(), NOW));
        assert!(!WINDOW.keeps_out(&KeyHolder { taken_at: at(-3600), ..idle() }, NOW));
        let pending = KeyHolder { taken_at: at(-3600), next_at: Some(at(60)), ..idle() };
        assert!(!WINDOW.keeps_out(&pending, NOW));
    }

    #[test]
    fn a_run_may_be_asked_for_between_two_times() {
        let recurring = KeyHolder { recurs: true, next_at: Some(at(60)), ..idle() };
        assert!(!DedupScope::Pending.keeps_itself_out(&recurring, DedupPurpose::Run, NOW));
        let due = KeyHolder { next_at: Some(NOW), ..recurring };
        assert!(DedupScope::Pending.keeps_itself_out(&due, DedupPurpose::Run, NOW));
        let once = KeyHolder { recurs: false, ..recurring };
        assert!(DedupScope::Pending.keeps_itself_out(&once, DedupPurpose::Run, NOW));
    }

    #[test]
    fn keys_are_of_one_executor_and_stay_what_they_are() {
        let key = DedupKey::of("crawl", "https://example.com/");
        assert_ne!(key, DedupKey::of("http", "https://example.com/"));
        // What ends the one and begins the other counts.
        assert_ne!(DedupKey::of("a", "bc"), DedupKey::of("ab", "c"));
        assert_eq!(DedupKey::from_bytes(key.to_bytes()), key);
        assert_eq!(format!("{:?}", DedupKey::of("noop", "x")).len(), "DedupKey()".len() + 32);
    }

    #[test]
    fn it_is_read_as_it_was_stored() {
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
            // Who does not take part has no next time.
            let next_at = next.filter(|_| state == JobState::Active).map(at);
            KeyHolder { state, recurs, next_at, waits, live, taken_at: at(taken) }
        }
    }

    proptest! {
        #[test]
        fn who_is_gone_keeps_nobody_out(holder in holders(), scope in scopes()) {
            let gone = KeyHolder { state: JobState::Deleted, ..holder };
            prop_assert!(!scope.keeps_out(&gone, NOW));
        }

        #[test]
        fn who_keeps_others_out_while_pending_does_so_while_pending_or_running(holder in holders()) {
            let narrow = DedupScope::Pending.keeps_out(&holder, NOW);
            prop_assert!(!narrow || DedupScope::PendingOrRunning.keeps_out(&holder, NOW));
        }

        #[test]
        fn while_pending_or_running_nothing_of_two_jobs_is_live(holder in holders()) {
            let is_there = holder.state != JobState::Deleted;
            let has_work = holder.live > 0 || holder.next_at.is_some();
            let is_kept_out = DedupScope::PendingOrRunning.keeps_out(&holder, NOW);
            prop_assert!(is_kept_out || !(is_there && has_work));
        }

        #[test]
        fn nobody_keeps_itself_from_being_there(holder in holders(), scope in scopes()) {
            prop_assert!(!scope.keeps_itself_out(&holder, DedupPurpose::Exist, NOW));
        }

        #[test]
        fn a_job_never_has_two_runs_waiting_by_request(holder in holders(), scope in scopes()) {
            let waits = KeyHolder { waits: true, live: holder.live.max(1), ..holder };
            for purpose in [DedupPurpose::Run, DedupPurpose::RunAgain] {
                let is_kept_out = scope.keeps_itself_out(&waits, purpose, NOW);
                prop_assert!(is_kept_out || matches!(scope, DedupScope::Window(_)));
            }
        }

        #[test]
        fn a_window_ends_for_good(holder in holders(), secs in 1_u64..7200, more in 0_u64..7200) {
            let scope = DedupScope::Window(Span::from_secs(secs));
            let later = NOW.saturating_add(Span::from_secs(more));
            prop_assert!(scope.keeps_out(&holder, NOW) || !scope.keeps_out(&holder, later));
        }
    }
}
