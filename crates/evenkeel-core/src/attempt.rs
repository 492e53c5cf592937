//! The state machine of one attempt.

use serde::{Deserialize, Serialize};

use crate::ids::NodeNo;
use crate::job::OnLostWorker;
use crate::lease::Fence;
use crate::named_enum;

named_enum! {
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Outcome {
        Completed => "completed",
        Failed => "failed",
        /// The attempt produced no output or progress for longer than `timeout`, or ran longer than
        /// allowed.
        TimedOut => "timed_out",
        Cancelled => "cancelled",
        /// The attempt processed some of its items and failed on others.
        PartlyFailed => "partly_failed",
        /// A newer scheduled time of the job replaced this run.
        Superseded => "superseded",
    }
}

impl Outcome {
    /// True if the attempt processed all or some of its items. A successful attempt fulfils the
    /// job's deadline promise.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Completed | Self::PartlyFailed)
    }

    /// True if the job's retry policy applies to this outcome of an attempt.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut)
    }
}

named_enum! {
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AttemptStatus {
        /// Waits to be claimed.
        Pending => "pending",
        Running => "running",
        Completed => "completed",
        Failed => "failed",
        Cancelled => "cancelled",
        TimedOut => "timed_out",
        /// The attempt never ran, and the store has the reason.
        Skipped => "skipped",
        PartlyFailed => "partly_failed",
        Superseded => "superseded",
    }
}

impl AttemptStatus {
    /// The stored number.
    pub const fn code(self) -> i16 {
        self as i16
    }

    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// Returns `None` for an attempt that is not finished.
    pub fn outcome(self) -> Option<Outcome> {
        Outcome::ALL.into_iter().find(|outcome| Self::from(*outcome) == self)
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
    /// The node was declared dead, or its process restarted.
    NodeDied,
    /// The node could not reach the store until its lease expired, so it stopped the attempt.
    StoreUnreachable,
    /// The node's process was frozen for longer than its lease. The node stopped the attempt.
    NodeFrozen,
    /// The node shut down before the attempt finished.
    NodeDrained,
    /// The attempt finished, but the store refuses to record its outcome.
    EndRefused,
    /// The node never received the claim, or received it too late to start the attempt. No body
    /// ran.
    NeverStarted,
}

impl Loss {
    pub const ALL: [Self; 6] = [
        Self::NodeDied,
        Self::StoreUnreachable,
        Self::NodeFrozen,
        Self::NodeDrained,
        Self::EndRefused,
        Self::NeverStarted,
    ];

    /// True if the attempt may have started and so may have had side effects.
    pub const fn body_may_have_started(self) -> bool {
        !matches!(self, Self::NeverStarted)
    }

    /// True if the loss counts towards `max_crashes`. Only the death of a node may be the fault of
    /// the attempt, for example because it used too much memory.
    pub const fn is_crash(self) -> bool {
        matches!(self, Self::NodeDied)
    }

    /// Returns the error message of an attempt that `node` lost. `crashes` is the number of nodes
    /// that died while they ran this attempt, including `node`.
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

/// The state of an attempt, with the fence number of the node that claimed the attempt last.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AttemptState {
    /// Waits to be claimed.
    Ready {
        /// The fence number of the last owner, if a worker ever claimed the attempt.
        fence: Fence,
        /// Number of workers that died while they ran this attempt.
        crashes: u16,
    },
    Running {
        owner: NodeNo,
        fence: Fence,
        /// Number of earlier workers that died while they ran this attempt.
        crashes: u16,
    },
    Ended(Outcome),
}

/// An event that changes the state of an attempt.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A worker claims the attempt.
    Claimed { by: NodeNo },
    Finished {
        by: NodeNo,
        /// The fence number under which the worker ran the attempt.
        fence: Fence,
        outcome: Outcome,
    },
    Lost {
        by: NodeNo,
        fence: Fence,
        loss: Loss,
        /// The job's policy for a lost attempt that may have started.
        then: OnLostWorker,
        max_crashes: u16,
    },
    /// The attempt is cancelled before it starts.
    Withdrawn,
}

/// The error for an event that is not possible in the attempt's current state.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{event:?} is not possible in the state {state:?}")]
pub struct IllegalStep {
    pub state: AttemptState,
    pub event: Event,
}

/// Returns the state of an attempt after an event. Attempts change their state only through `step`.
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
        // All states are listed here instead of `_`, so that adding a state causes a compile error.
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
    fn stolen_attempt_refuses_its_former_owner() {
        let first = step(READY, Event::Claimed { by: NodeNo(1) }).unwrap();
        let stolen = lost(1, Loss::NodeDied, OnLostWorker::Retry, 3);
        let again = step(step(first, stolen).unwrap(), Event::Claimed { by: NodeNo(1) }).unwrap();
        let late = Event::Finished { by: NodeNo(1), fence: Fence(1), outcome: Outcome::Completed };
        assert_eq!(step(again, late), Err(IllegalStep { state: again, event: late }));
    }

    #[test]
    fn attempt_fails_after_too_many_crashes() {
        let mut state = READY;
        for fence in [1, 3, 5] {
            state = step(state, Event::Claimed { by: NodeNo(1) }).unwrap();
            state = step(state, lost(fence, Loss::NodeDied, OnLostWorker::Retry, 2)).unwrap();
        }
        assert_eq!(state, AttemptState::Ended(Outcome::Failed));
    }

    #[test]
    fn only_crashes_count_towards_max_crashes() {
        let mut state = READY;
        for fence in [1, 3, 5, 7] {
            state = step(state, Event::Claimed { by: NodeNo(1) }).unwrap();
            let loss = Loss::ALL[1 + fence as usize % 5];
            state = step(state, lost(fence, loss, OnLostWorker::Retry, 0)).unwrap();
        }
        assert_eq!(state, AttemptState::Ready { fence: Fence(8), crashes: 0 });
    }

    #[test]
    fn loss_message_names_the_node_and_the_reason() {
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
        /// Invariant I4: the fence number never decreases, only the current owner can finish the
        /// attempt, and an outcome is final.
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
        /// With `on_lost_worker: fail`, an attempt starts at most once, however its node loses it.
        /// Another node claims the attempt only if the previous owner certainly did not start it.
        #[test]
        fn on_lost_worker_fail_starts_one_body_at_most(
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
    fn status_codes_read_back() {
        for status in AttemptStatus::ALL {
            assert_eq!(AttemptStatus::from_code(status.code()), Some(status));
        }
        assert_eq!(AttemptStatus::from_code(9), None);
    }
}
