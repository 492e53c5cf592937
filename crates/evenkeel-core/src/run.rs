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
    pub const fn is_good(self) -> bool {
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
pub enum RunStatus {
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

impl RunStatus {
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

impl From<Outcome> for RunStatus {
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

/// Where an attempt stands. The fence is that of its latest owner.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RunState {
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
    /// A worker gives it back unharmed, because it is shutting down.
    HandedBack {
        /// Which one.
        by: NodeNo,
        /// What it thinks its right is.
        fence: Fence,
    },
    /// Its worker is lost.
    Stolen {
        /// From whom.
        from: NodeNo,
        /// What the job wants done then.
        then: OnLostWorker,
        /// How many lost workers are too many.
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
    pub state: RunState,
    /// What was tried.
    pub event: Event,
}

/// The only way an attempt's state changes.
pub fn step(state: RunState, event: Event) -> Result<RunState, IllegalStep> {
    use RunState::{Ended, Ready, Running};
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
        (Running { owner, fence, crashes }, Event::HandedBack { by, fence: held })
            if owner == by && fence == held =>
        {
            Ok(Ready { fence: fence.next(), crashes })
        }
        (Running { owner, fence, crashes }, Event::Stolen { from, then, max_crashes })
            if owner == from =>
        {
            let crashes = crashes.saturating_add(1);
            match then {
                OnLostWorker::Retry if crashes <= max_crashes => {
                    Ok(Ready { fence: fence.next(), crashes })
                }
                OnLostWorker::Retry | OnLostWorker::Fail => Ok(Ended(Outcome::Failed)),
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

    const READY: RunState = RunState::Ready { fence: Fence::NONE, crashes: 0 };

    fn any_event() -> impl Strategy<Value = Event> {
        let node = (1_i32..4).prop_map(NodeNo);
        let fence = (0_u32..8).prop_map(Fence);
        let outcome = prop::sample::select(vec![Outcome::Completed, Outcome::Failed]);
        prop_oneof![
            node.clone().prop_map(|by| Event::Claimed { by }),
            (node.clone(), fence.clone(), outcome)
                .prop_map(|(by, fence, outcome)| Event::Finished { by, fence, outcome }),
            (node.clone(), fence).prop_map(|(by, fence)| Event::HandedBack { by, fence }),
            node.prop_map(|from| Event::Stolen { from, then: OnLostWorker::Retry, max_crashes: 3 }),
            Just(Event::Withdrawn),
        ]
    }

    #[test]
    fn a_stolen_attempt_refuses_its_former_owner() {
        let first = step(READY, Event::Claimed { by: NodeNo(1) }).unwrap();
        let stolen = Event::Stolen { from: NodeNo(1), then: OnLostWorker::Retry, max_crashes: 3 };
        let again = step(step(first, stolen).unwrap(), Event::Claimed { by: NodeNo(1) }).unwrap();
        let late = Event::Finished { by: NodeNo(1), fence: Fence(1), outcome: Outcome::Completed };
        assert_eq!(step(again, late), Err(IllegalStep { state: again, event: late }));
    }

    #[test]
    fn a_body_that_kills_its_workers_is_given_up() {
        let mut state = READY;
        for _ in 0..3 {
            state = step(state, Event::Claimed { by: NodeNo(1) }).unwrap();
            let stolen =
                Event::Stolen { from: NodeNo(1), then: OnLostWorker::Retry, max_crashes: 2 };
            state = step(state, stolen).unwrap();
        }
        assert_eq!(state, RunState::Ended(Outcome::Failed));
    }

    fn fence_of(state: RunState) -> Option<Fence> {
        match state {
            RunState::Ready { fence, .. } | RunState::Running { fence, .. } => Some(fence),
            RunState::Ended(_) => None,
        }
    }

    proptest! {
        /// I4: the fence never falls, nobody but the owner ends it, and an end is final.
        #[test]
        fn fences_only_rise_and_ends_are_final(events in prop::collection::vec(any_event(), 0..60)) {
            let mut state = READY;
            for event in events {
                let Ok(next) = step(state, event) else { continue };
                prop_assert!(!matches!(state, RunState::Ended(_)));
                if let (Some(before), Some(after)) = (fence_of(state), fence_of(next)) {
                    prop_assert!(after > before);
                }
                if let (RunState::Running { owner, fence, .. }, Event::Finished { by, fence: f, .. })
                    = (state, event) {
                    prop_assert_eq!((owner, fence), (by, f));
                }
                state = next;
            }
        }
    }

    #[test]
    fn stored_numbers_read_back() {
        for status in RunStatus::ALL {
            assert_eq!(RunStatus::from_code(status.code()), Some(status));
        }
        assert_eq!(RunStatus::from_code(9), None);
    }
}
