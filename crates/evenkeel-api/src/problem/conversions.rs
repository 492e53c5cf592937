//! Converts errors of the commands and the store into problem responses.

use evenkeel_commands::{CommandError, Conflict, Fault, RebalanceConflict, state_name};
use evenkeel_store::StoreError;

use super::{ChangedJobView, Problem, ProblemType, RebalanceInTheWay};

impl From<Vec<Fault>> for Problem {
    fn from(faults: Vec<Fault>) -> Self {
        Self::of_fields(ProblemType::InvalidParameter, faults)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        // The database's message is only logged, because it may name tables, hosts and users.
        let source = &error as &dyn std::error::Error;
        if let Some(why) = error.unwritable() {
            // The engine logs once that the store is not writable, so a refused request is logged
            // only at debug level.
            tracing::debug!(error = source, "store is not writable; answering 503");
            let detail = format!(
                "{why}: nothing was changed; {}, then send the request again",
                why.way_out()
            );
            Self::new(ProblemType::StoreNotWritable, detail)
        } else if error.is_outage() {
            tracing::warn!(error = source, "store is unavailable; answering 503");
            Self::new(
                ProblemType::StoreUnavailable,
                "whether the request took effect is unknown; check before repeating it",
            )
        } else {
            tracing::error!(error = source, "store returned an unexpected error; answering 500");
            Self::internal()
        }
    }
}

impl From<CommandError> for Problem {
    fn from(error: CommandError) -> Self {
        let detail = error.to_string();
        match error {
            CommandError::NotFound | CommandError::NoJobNamed { .. } | CommandError::NoTarget => {
                Self::new(ProblemType::NotFound, detail)
            }
            CommandError::AmbiguousName { .. } => Self::new(ProblemType::AmbiguousName, detail),
            CommandError::Invalid(faults) => Self::of_fields(ProblemType::InvalidJob, faults),
            CommandError::InvalidTarget(faults) | CommandError::InvalidParameter(faults) => {
                Self::of_fields(ProblemType::InvalidParameter, faults)
            }
            CommandError::TargetTaken { field, .. } => {
                Self { field: Some(field.into()), ..Self::new(ProblemType::TargetTaken, detail) }
            }
            CommandError::TargetInUse { .. } => Self::new(ProblemType::TargetInUse, detail),
            CommandError::TargetStale { generation } => Self {
                generation: Some(generation),
                ..Self::new(ProblemType::TargetChanged, detail)
            },
            CommandError::InvalidSchedule(faults) => {
                Self::of_fields(ProblemType::InvalidSchedule, faults)
            }
            CommandError::OffsetTooLarge => Self {
                field: Some("offset".into()),
                ..Self::new(ProblemType::InvalidParameter, detail)
            },
            CommandError::NameTaken { id } => Self {
                existing_id: Some(Box::new(id)),
                field: Some("name".into()),
                ..Self::new(ProblemType::NameTaken, detail)
            },
            CommandError::Duplicate { id } => Self {
                existing_id: Some(Box::new(id)),
                field: Some("dedup_key".into()),
                ..Self::new(ProblemType::Duplicate, detail)
            },
            CommandError::Conflict(Conflict::Busy) => Self::new(ProblemType::JobBusy, detail),
            CommandError::NotAllowed(refusal) => Self {
                job_status: Some(refusal.status),
                allowed: Some(refusal.allowed.iter().map(|command| command.as_str()).collect()),
                ..Self::new(ProblemType::JobState, detail)
            },
            CommandError::Stale { generation } => {
                Self { generation: Some(generation), ..Self::new(ProblemType::JobChanged, detail) }
            }
            CommandError::Conflict(Conflict::Redriven { .. }) => {
                Self::new(ProblemType::LetterRedriven, detail)
            }
            CommandError::Conflict(
                Conflict::JobDeleted
                | Conflict::WrongStatus { .. }
                | Conflict::CannotRequeue
                | Conflict::NoLiveNode,
            ) => Self::new(ProblemType::JobState, detail),
            CommandError::Conflict(
                Conflict::NotRunning | Conflict::TakenOver | Conflict::RunEnded,
            ) => Self::new(ProblemType::RunOver, detail),
            CommandError::Rebalance(conflict) => of_rebalance(conflict, detail),
            CommandError::BadAttemptToken => Self::new(ProblemType::Unauthorized, detail),
            CommandError::OutOfTime => Self::new(ProblemType::Timeout, detail),
            CommandError::Store(error) => error.into(),
        }
    }
}

fn of_rebalance(conflict: RebalanceConflict, detail: String) -> Problem {
    let none = RebalanceInTheWay::default();
    let (kind, what) = match conflict {
        RebalanceConflict::UnderWay { id } => {
            (ProblemType::RebalanceUnderWay, RebalanceInTheWay { id: Some(id), ..none })
        }
        RebalanceConflict::State { state, .. } => {
            let state = Some(state_name(state));
            (ProblemType::RebalanceState, RebalanceInTheWay { state, ..none })
        }
        RebalanceConflict::PlanExpired { .. } => {
            return Problem::new(ProblemType::PlanExpired, detail);
        }
        RebalanceConflict::PlanChanged { changed, total } => {
            let changed = changed.into_iter();
            let changed = changed.map(|one| ChangedJobView { job_id: one.job, reason: one.reason });
            let (changed, total) = (Some(changed.collect()), Some(total));
            (ProblemType::PlanChanged, RebalanceInTheWay { changed, changed_total: total, ..none })
        }
    };
    Problem { rebalance: Some(Box::new(what)), ..Problem::new(kind, detail) }
}
