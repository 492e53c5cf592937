//! The life of one attempt.

use serde::{Deserialize, Serialize};

use crate::ids::NodeNo;
use crate::job::OnLostWorker;
use crate::lease::Fence;

/// How an attempt ended.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Well.
    Completed,
    /// Badly.
    Failed,
    /// It was silent, or went on, for too long.
    TimedOut,
    /// Somebody ended it.
    Cancelled,
    /// It did its work, but for some of its items.
    PartlyFailed,
    /// A newer time of its job took its place.
    Superseded,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Completed,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::PartlyFailed,
        Self::Superseded,
    ];

    /// Did it do its work, if not for all of its items? Then it counts for the job's rhythm.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Completed | Self::PartlyFailed)
    }

    /// May the run be tried again after this?
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut)
    }
}

/// What users see of an attempt.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptStatus {
    /// It may be claimed.
    Pending,
    /// A worker has it.
    Running,
    /// It ended well.
    Completed,
    /// It ended badly.
    Failed,
    /// Somebody ended it.
    Cancelled,
    /// It took too long.
    TimedOut,
    /// It never ran, for a recorded reason.
    Skipped,
    /// It did its work, but for some of its items.
    PartlyFailed,
    /// A newer time of its job took its place.
    Superseded,
}

impl AttemptStatus {
    /// All of them, in the order of their stored numbers.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::TimedOut,
        Self::Skipped,
        Self::PartlyFailed,
        Self::Superseded,
    ];

    /// The number it is stored as.
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// From its stored number.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// The word users see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::Skipped => "skipped",
            Self::PartlyFailed => "partly_failed",
            Self::Superseded => "superseded",
        }
    }
}

impl From<Outcome> for AttemptStatus {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::Failed => Self::Failed,
            Outcome::TimedOut => Self::TimedOut,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::PartlyFailed => Self::PartlyFailed,
            Outcome::Superseded => Self::Superseded,
        }
    }
}

/// How a node lost an attempt without a known result.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Loss {
    /// The node died: it was declared dead, or started anew.
    NodeDied,
    /// The node could not reach the store for as long as its lease lasted, and ended the body.
    StoreUnreachable,
    /// The node's process did not run for longer than its lease, and the body was ended.
    NodeFrozen,
    /// The node shut down before the body ended.
    NodeDrained,
    /// The body ended, but the store refuses to record it.
    EndRefused,
    /// The node never learned of the claim, or too late to start the body: no body ran.
    NeverStarted,
}

impl Loss {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::NodeDied,
        Self::StoreUnreachable,
        Self::NodeFrozen,
        Self::NodeDrained,
        Self::EndRefused,
        Self::NeverStarted,
    ];

    /// Can the body have had effects?
    pub const fn body_may_have_started(self) -> bool {
        !matches!(self, Self::NeverStarted)
    }

    /// Does it count towards `max_crashes`? Only a node's death can be the body's fault.
    pub const fn is_crash(self) -> bool {
        matches!(self, Self::NodeDied)
    }

    /// Why a run failed that `node` lost like this. `crashes` counts the nodes that died with it,
    /// this one included.
    pub fn describe(self, node: &str, crashes: u16) -> String {
        let what = match self {
            Self::NodeDied => {
                let nodes = if crashes == 1 { "node" } else { "nodes" };
                return format!("node {node} died while it ran; {crashes} {nodes} lost in all");
            }
            Self::StoreUnreachable => "lost contact with the store and ended its body",
            Self::NodeFrozen => "was frozen for longer than its lease, and its body was ended",
            Self::NodeDrained => "shut down before its body ended",
            Self::EndRefused => "could not store its end: the store refuses it",
            Self::NeverStarted => "never started its body",
        };
        format!("node {node} {what}")
    }
}

/// Where an attempt stands. The fence is that of its latest owner.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AttemptState {
    /// It waits to be claimed.
    Ready {
        /// Of the last owner, if it had one.
        fence: Fence,
        /// How many workers it has lost.
        crashes: u16,
    },
    /// A worker has it.
    Running {
        /// Which one.
        owner: NodeNo,
        /// Its right to write.
        fence: Fence,
        /// How many workers it has lost before.
        crashes: u16,
    },
    /// It is over.
    Ended(Outcome),
}

/// What can happen to an attempt.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A worker takes it.
    Claimed {
        /// Which one.
        by: NodeNo,
    },
    /// A worker reports its end.
    Finished {
        /// Which one.
        by: NodeNo,
        /// What it thinks its right is.
        fence: Fence,
        /// How it ended.
        outcome: Outcome,
    },
    /// The node that had it lost it without a known result.
    Lost {
        /// Which node.
        by: NodeNo,
        /// The fence that the node had.
        fence: Fence,
        /// How it was lost.
        loss: Loss,
        /// What the job wants done if its body may have started.
        then: OnLostWorker,
        /// How many crashes are too many.
        max_crashes: u16,
    },
    /// Somebody ends it before it starts.
    Withdrawn,
}

/// An event that does not fit the state; nothing changed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{event:?} does not fit {state:?}")]
pub struct IllegalStep {
    /// Where the attempt stands.
    pub state: AttemptState,
    /// What was tried.
    pub event: Event,
}

/// The only way an attempt's state changes.
pub fn step(state: AttemptState, event: Event) -> Result<AttemptState, IllegalStep> {
    use AttemptState::{Ended, Ready, Running};
    match (state, event) {
        (Ready { fence, crashes }, Event::Claimed { by }) => {
            Ok(Running { owner: by, fence: fence.next(), crashes })
        }
        (Ready { .. }, Event::Withdrawn) => Ok(Ended(Outcome::Cancelled)),
        (Running { owner, fence, .. }, Event::Finished { by, fence: held, outcome })
            if owner == by && fence == held =>
        {
            Ok(Ended(outcome))
        }
        (
            Running { owner, fence, crashes },
            Event::Lost { by, fence: held, loss, then, max_crashes },
        ) if owner == by && fence == held => {
            let crashes = crashes.saturating_add(u16::from(loss.is_crash()));
            let may_run_again = match then {
                OnLostWorker::Retry => !loss.is_crash() || crashes <= max_crashes,
                OnLostWorker::Fail => !loss.body_may_have_started(),
            };
            if may_run_again {
                Ok(Ready { fence: fence.next(), crashes })
            } else {
                Ok(Ended(Outcome::Failed))
            }
        }
        // Listed, never `_`: a new state must fail to compile here.
        (state @ (Ready { .. } | Running { .. } | Ended(_)), event) => {
            Err(IllegalStep { state, event })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const READY: AttemptState = AttemptState::Ready { fence: Fence::NONE, crashes: 0 };

    fn any_policy() -> impl Strategy<Value = OnLostWorker> {
        prop::sample::select(vec![OnLostWorker::Retry, OnLostWorker::Fail])
    }

    /// The loss of the attempt by the first node, as its first owner.
    fn lost(fence: u32, loss: Loss, then: OnLostWorker, max_crashes: u16) -> Event {
        Event::Lost { by: NodeNo(1), fence: Fence(fence), loss, then, max_crashes }
    }

    fn any_event() -> impl Strategy<Value = Event> {
        let node = (1_i32..4).prop_map(NodeNo);
        let fence = (0_u32..8).prop_map(Fence);
        let outcome = prop::sample::select(vec![Outcome::Completed, Outcome::Failed]);
        prop_oneof![
            node.clone().prop_map(|by| Event::Claimed { by }),
            (node.clone(), fence.clone(), outcome)
                .prop_map(|(by, fence, outcome)| Event::Finished { by, fence, outcome }),
            (node, fence, prop::sample::select(&Loss::ALL[..]), any_policy()).prop_map(
                |(by, fence, loss, then)| Event::Lost { by, fence, loss, then, max_crashes: 3 }
            ),
            Just(Event::Withdrawn),
        ]
    }

    #[test]
    fn a_stolen_attempt_refuses_its_former_owner() {
        let first = step(READY, Event::Claimed { by: NodeNo(1) }).unwrap();
        let stolen = lost(1, Loss::NodeDied, OnLostWorker::Retry, 3);
        let again = step(step(first, stolen).unwrap(), Event::Claimed { by: NodeNo(1) }).unwrap();
        let late = Event::Finished { by: NodeNo(1), fence: Fence(1), outcome: Outcome::Completed };
        assert_eq!(step(again, late), Err(IllegalStep { state: again, event: late }));
    }

    #[test]
    fn a_body_that_kills_its_workers_is_given_up() {
        let mut state = READY;
        for fence in [1, 3, 5] {
            state = step(state, Event::Claimed { by: NodeNo(1) }).unwrap();
            state = step(state, lost(fence, Loss::NodeDied, OnLostWorker::Retry, 2)).unwrap();
        }
        assert_eq!(state, AttemptState::Ended(Outcome::Failed));
    }

    #[test]
    fn a_loss_that_is_no_crash_uses_up_no_crashes() {
        let mut state = READY;
        for fence in [1, 3, 5, 7] {
            state = step(state, Event::Claimed { by: NodeNo(1) }).unwrap();
            let loss = Loss::ALL[1 + fence as usize % 5];
            state = step(state, lost(fence, loss, OnLostWorker::Retry, 0)).unwrap();
        }
        assert_eq!(state, AttemptState::Ready { fence: Fence(8), crashes: 0 });
    }

    #[test]
    fn reasons_name_the_node_and_what_happened_to_it() {
        assert_eq!(Loss::NodeDied.describe("a", 1), "node a died while it ran; 1 node lost in all");
        assert_eq!(
            Loss::NodeDied.describe("a", 4),
            "node a died while it ran; 4 nodes lost in all"
        );
        assert_eq!(Loss::NodeDrained.describe("a", 0), "node a shut down before its body ended");
        let texts: std::collections::BTreeSet<String> =
            Loss::ALL.iter().map(|loss| loss.describe("a", 1)).collect();
        assert_eq!(texts.len(), Loss::ALL.len());
    }

    fn fence_of(state: AttemptState) -> Option<Fence> {
        match state {
            AttemptState::Ready { fence, .. } | AttemptState::Running { fence, .. } => Some(fence),
            AttemptState::Ended(_) => None,
        }
    }

    proptest! {
        /// I4: the fence never falls, nobody but the owner ends it, and an end is final.
        #[test]
        fn fences_only_rise_and_ends_are_final(events in prop::collection::vec(any_event(), 0..60)) {
            let mut state = READY;
            for event in events {
                let Ok(next) = step(state, event) else { continue };
                prop_assert!(!matches!(state, AttemptState::Ended(_)));
                if let (Some(before), Some(after)) = (fence_of(state), fence_of(next)) {
                    prop_assert!(after > before);
                }
                if let (AttemptState::Running { owner, fence, .. }, Event::Finished { by, fence: f, .. })
                    = (state, event) {
                    prop_assert_eq!((owner, fence), (by, f));
                }
                state = next;
            }
        }
    }

    proptest! {
        /// With `on_lost_worker: fail` a body starts at most once, however its node loses it: after a
        /// claim it is only claimed again if the one before surely had no body.
        #[test]
        fn a_job_that_fails_with_its_worker_has_one_body_at_most(
            events in prop::collection::vec(any_event(), 0..60), max_crashes in 0_u16..5,
        ) {
            let (mut state, mut may_have_run) = (READY, false);
            for event in events {
                let event = match event {
                    Event::Lost { by, fence, loss, .. } => {
                        Event::Lost { by, fence, loss, then: OnLostWorker::Fail, max_crashes }
                    }
                    event => event,
                };
                let Ok(next) = step(state, event) else { continue };
                if let Event::Lost { loss, .. } = event {
                    may_have_run |= loss != Loss::NeverStarted;
                }
                let runs_again = matches!(next, AttemptState::Ready { .. });
                prop_assert!(!(may_have_run && runs_again), "{:?} after {:?}", next, event);
                state = next;
            }
        }
    }

    #[test]
    fn stored_numbers_read_back() {
        for status in AttemptStatus::ALL {
            assert_eq!(AttemptStatus::from_code(status.code()), Some(status));
        }
        assert_eq!(AttemptStatus::from_code(9), None);
    }
}
