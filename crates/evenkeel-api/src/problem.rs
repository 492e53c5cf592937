//! Refusals, as RFC 9457 problem details.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use evenkeel_commands::{CommandError, Conflict, Fault, RebalanceConflict, state_word};
use evenkeel_core::JobId;
use evenkeel_core::status::JobStatus;
use evenkeel_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::etag::etag;

/// The types of problems: a closed list, so that programs can rely on it.
///
/// | type | status | when |
/// |---|---|---|
/// | `malformed-json` | 400 | the body is not JSON; the detail says where |
/// | `unauthorized` | 401 | there is no token, or it is worth nothing |
/// | `forbidden` | 403 | the token's role or tenant may not do this |
/// | `not-found` | 404 | there is no such thing, or not for this tenant |
/// | `method-not-allowed` | 405 | the path exists, but not with this method |
/// | `request-timeout` | 408 | nothing more of the body came for 30 seconds |
/// | `name-taken` | 409 | `existing_id` has the name and configuration |
/// | `key-name-taken` | 409 | another API key has the name |
/// | `target-taken` | 409 | another target, which the detail names, has the number or source_id |
/// | `target-in-use` | 409 | jobs name the target, the detail says how many; `force=true` detaches them |
/// | `job-busy` | 409 | a run goes on and the overlap policy allows no other |
/// | `job-state` | 409 | the job is in a state (`job_status`) that allows only what `allowed` says |
/// | `request-under-way` | 409 | a request with the same key is under way; ask again |
/// | `answer-not-kept` | 409 | the request was done before; its answer is not there any more |
/// | `run-over` | 409 | the run or attempt has ended, or was taken over |
/// | `letter-redriven` | 409 | the dead letter was taken up before |
/// | `rebalance-under-way` | 409 | another rebalance of the tenant goes on: `rebalance.id` |
/// | `rebalance-state` | 409 | the rebalance is in a state (`rebalance.state`) that does not allow it |
/// | `plan-changed` | 409 | jobs of the plan have changed (`rebalance.changed`); make a new preview |
/// | `plan-expired` | 409 | the plan is too old; make a new preview |
/// | `job-changed` | 412 | the job is no longer what it was to be; read it again |
/// | `target-changed` | 412 | the target is no longer what it was to be; read it again |
/// | `body-too-large` | 413 | the body has more than 1 MiB |
/// | `unsupported-media-type` | 415 | the body is not said to be JSON |
/// | `invalid-job` | 422 | the document of a job is wrong; see `errors` |
/// | `invalid-schedule` | 422 | the document of a schedule is wrong; see `errors` |
/// | `idempotency-key-reused` | 422 | another request had this `Idempotency-Key` |
/// | `invalid-parameter` | 422 | a parameter is wrong; see `errors` |
/// | `too-many-failures` | 429 | too many credentials were refused; wait as `Retry-After` says |
/// | `internal` | 500 | a fault of the server's |
/// | `starting` | 503 | this node has just been started; try again |
/// | `too-many-streams` | 503 | no more streams can be open at once; try again |
/// | `store-unavailable` | 503 | the database does not answer; try again |
/// | `timeout` | 503 | the request took too long; try again |
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub enum ProblemType {
    /// The body is not JSON.
    #[serde(rename = "/problems/malformed-json")]
    MalformedJson,
    /// There is no token, or it is worth nothing.
    #[serde(rename = "/problems/unauthorized")]
    Unauthorized,
    /// The token's role or tenant may not do this.
    #[serde(rename = "/problems/forbidden")]
    Forbidden,
    /// There is no such thing.
    #[serde(rename = "/problems/not-found")]
    NotFound,
    /// The path exists, but not with this method.
    #[serde(rename = "/problems/method-not-allowed")]
    MethodNotAllowed,
    /// Another job has the name and configuration.
    #[serde(rename = "/problems/name-taken")]
    NameTaken,
    /// A job that has the same dedup_key is in the way.
    #[serde(rename = "/problems/duplicate")]
    Duplicate,
    /// Another API key has the name.
    #[serde(rename = "/problems/key-name-taken")]
    KeyNameTaken,
    /// Another target has the number or the source's id.
    #[serde(rename = "/problems/target-taken")]
    TargetTaken,
    /// Jobs name the target.
    #[serde(rename = "/problems/target-in-use")]
    TargetInUse,
    /// The target is no longer what it was to be.
    #[serde(rename = "/problems/target-changed")]
    TargetChanged,
    /// A run of the job goes on and its overlap policy allows no other.
    #[serde(rename = "/problems/job-busy")]
    JobBusy,
    /// The job is in a state that does not allow it.
    #[serde(rename = "/problems/job-state")]
    JobState,
    /// The job is no longer what it was to be.
    #[serde(rename = "/problems/job-changed")]
    JobChanged,
    /// A request with the same key is under way.
    #[serde(rename = "/problems/request-under-way")]
    RequestUnderWay,
    /// The request was done before, and its answer is not there any more.
    #[serde(rename = "/problems/answer-not-kept")]
    AnswerNotKept,
    /// Another request had the same key.
    #[serde(rename = "/problems/idempotency-key-reused")]
    IdempotencyKeyReused,
    /// The run or attempt has ended, or was taken over.
    #[serde(rename = "/problems/run-over")]
    RunOver,
    /// The dead letter was taken up before.
    #[serde(rename = "/problems/letter-redriven")]
    LetterRedriven,
    /// Another rebalance of the tenant goes on.
    #[serde(rename = "/problems/rebalance-under-way")]
    RebalanceUnderWay,
    /// The rebalance is in a state that does not allow it.
    #[serde(rename = "/problems/rebalance-state")]
    RebalanceState,
    /// Jobs have changed since a rebalance was planned.
    #[serde(rename = "/problems/plan-changed")]
    PlanChanged,
    /// The plan of a rebalance is too old.
    #[serde(rename = "/problems/plan-expired")]
    PlanExpired,
    /// The body is too large.
    #[serde(rename = "/problems/body-too-large")]
    BodyTooLarge,
    /// The body is not said to be JSON.
    #[serde(rename = "/problems/unsupported-media-type")]
    UnsupportedMediaType,
    /// The document of a job is wrong.
    #[serde(rename = "/problems/invalid-job")]
    InvalidJob,
    /// The document of a schedule is wrong.
    #[serde(rename = "/problems/invalid-schedule")]
    InvalidSchedule,
    /// A parameter of the request is wrong.
    #[serde(rename = "/problems/invalid-parameter")]
    InvalidParameter,
    /// Too many credentials from one address were refused.
    #[serde(rename = "/problems/too-many-failures")]
    TooManyFailures,
    /// A fault of the server's.
    #[serde(rename = "/problems/internal")]
    Internal,
    /// The body did not go on.
    #[serde(rename = "/problems/request-timeout")]
    RequestTimeout,
    /// This node has just been started; try again.
    #[serde(rename = "/problems/starting")]
    Starting,
    /// No more streams can be open at once; try again.
    #[serde(rename = "/problems/too-many-streams")]
    TooManyStreams,
    /// The database does not answer; try again.
    #[serde(rename = "/problems/store-unavailable")]
    StoreUnavailable,
    /// The request took too long; try again.
    #[serde(rename = "/problems/timeout")]
    Timeout,
}

impl ProblemType {
    /// The HTTP status it comes with.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::MalformedJson => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::KeyNameTaken
            | Self::NameTaken
            | Self::Duplicate
            | Self::TargetTaken
            | Self::TargetInUse
            | Self::JobBusy
            | Self::JobState
            | Self::RunOver
            | Self::LetterRedriven
            | Self::RebalanceUnderWay
            | Self::RebalanceState
            | Self::PlanChanged
            | Self::PlanExpired
            | Self::RequestUnderWay
            | Self::AnswerNotKept => StatusCode::CONFLICT,
            Self::JobChanged | Self::TargetChanged => StatusCode::PRECONDITION_FAILED,
            Self::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::InvalidJob | Self::InvalidSchedule | Self::InvalidParameter => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::TooManyFailures => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Starting | Self::TooManyStreams | Self::StoreUnavailable | Self::Timeout => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    /// The same words for every problem of the type.
    pub const fn title(self) -> &'static str {
        match self {
            Self::MalformedJson => "The body is not JSON",
            Self::Unauthorized => "A valid token is needed",
            Self::Forbidden => "The token does not allow this",
            Self::NotFound => "There is no such thing",
            Self::MethodNotAllowed => "The path does not have this method",
            Self::RequestTimeout => "The body did not go on",
            Self::Starting => "This node is still starting",
            Self::NameTaken => "Another job has this name",
            Self::Duplicate => "A job with this key is in the way",
            Self::KeyNameTaken => "Another API key has this name",
            Self::TargetTaken => "Another target has this number or source_id",
            Self::TargetInUse => "Jobs name this target",
            Self::TargetChanged => "The target was changed meanwhile",
            Self::JobBusy => "The job is busy",
            Self::JobState => "The state of the job does not allow this",
            Self::JobChanged => "The job was changed meanwhile",
            Self::RequestUnderWay => "The request is under way",
            Self::AnswerNotKept => "The request was done before",
            Self::IdempotencyKeyReused => "The key was used for another request",
            Self::RunOver => "The run has ended or was taken over",
            Self::LetterRedriven => "The dead letter was taken up before",
            Self::RebalanceUnderWay => "Another rebalance goes on",
            Self::RebalanceState => "The state of the rebalance does not allow this",
            Self::PlanChanged => "Jobs have changed since the plan was made",
            Self::PlanExpired => "The plan is too old",
            Self::BodyTooLarge => "The body is too large",
            Self::UnsupportedMediaType => "The body must be application/json",
            Self::InvalidJob => "The job is not acceptable",
            Self::InvalidSchedule => "The schedule is not acceptable",
            Self::InvalidParameter => "A parameter is not acceptable",
            Self::TooManyFailures => "Too many credentials were refused",
            Self::Internal => "Something went wrong in the server",
            Self::TooManyStreams => "Too many streams are open",
            Self::StoreUnavailable => "The database does not answer",
            Self::Timeout => "The request took too long",
        }
    }
}

/// One thing that is wrong with a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct FieldError {
    /// The field or parameter to blame.
    pub field: String,
    /// What is wrong with it, and what would be right.
    pub message: String,
    /// The character of its text that the fault begins at, counted from 0, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
}

/// A job that is not what it was when a rebalance was planned.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ChangedJobView {
    /// Which.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// Why: `not_active` (paused, cancelled, deleted or over), `changed`, `ran`, `job_running`, or
    /// `too_late` (its new time has passed).
    #[schema(value_type = String)]
    pub reason: &'static str,
}

/// What of a rebalance is in the way.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, ToSchema)]
pub struct RebalanceInTheWay {
    /// The one that goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<uuid::Uuid>,
    /// The state that does not allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub state: Option<&'static str>,
    /// How many jobs have changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_total: Option<u64>,
    /// The first 100 of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 100)]
    pub changed: Option<Vec<ChangedJobView>>,
}

/// A refusal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct Problem {
    /// What kind of problem it is.
    #[serde(rename = "type")]
    pub kind: ProblemType,
    /// The same words for every problem of the type.
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What it is this time.
    #[schema(value_type = String)]
    pub detail: Box<str>,
    /// The first field or parameter to blame, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub field: Option<Box<str>>,
    /// The character of its text that the fault begins at, counted from 0, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// All that is wrong with the request.
    #[serde(skip_serializing_if = "is_none")]
    #[schema(required = false, value_type = Vec<FieldError>)]
    pub errors: Box<[FieldError]>,
    /// The job that is in the way, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    pub existing_id: Option<Box<JobId>>,
    /// The version the job has now, if another was meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i32>,
    /// The state of the job, if that is in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub job_status: Option<JobStatus>,
    /// What the job would allow instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub allowed: Option<Box<[&'static str]>>,
    /// What of a rebalance is in the way, if something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RebalanceInTheWay>)]
    pub rebalance: Option<Box<RebalanceInTheWay>>,
}

impl Problem {
    /// How long to wait before trying again.
    const RETRY_AFTER_SECONDS: &'static str = "2";

    /// A problem of a type.
    pub fn new(kind: ProblemType, detail: impl Into<String>) -> Self {
        Self {
            kind,
            title: kind.title(),
            status: kind.status().as_u16(),
            detail: detail.into().into_boxed_str(),
            field: None,
            position: None,
            errors: Box::default(),
            existing_id: None,
            generation: None,
            job_status: None,
            allowed: None,
            rebalance: None,
        }
    }

    /// A problem with fields to blame, the first of which is named at the top as well.
    pub fn of_fields(kind: ProblemType, faults: Vec<Fault>) -> Self {
        let detail = match &faults[..] {
            [] => String::new(),
            [fault] => fault.to_string(),
            [fault, others @ ..] => format!("{fault} (and {} more, see errors)", others.len()),
        };
        Self {
            field: faults.first().map(|fault| fault.field.as_str().into()),
            position: faults.first().and_then(place),
            errors: faults
                .into_iter()
                .map(|fault| FieldError {
                    position: place(&fault),
                    field: fault.field,
                    message: fault.message,
                })
                .collect(),
            ..Self::new(kind, detail)
        }
    }

    /// A parameter that is wrong.
    pub(crate) fn parameter(name: &str, message: impl Into<String>) -> Self {
        Self::of_fields(ProblemType::InvalidParameter, vec![Fault::new(name, message)])
    }
}

fn is_none(errors: &[FieldError]) -> bool {
    errors.is_empty()
}

fn place(fault: &Fault) -> Option<u32> {
    fault.position.and_then(|position| u32::try_from(position).ok())
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        // What the database said is for the log: it may name tables, hosts and users.
        let source = &error as &dyn std::error::Error;
        if error.is_outage() {
            tracing::warn!(error = source, "the store does not answer");
            Self::new(
                ProblemType::StoreUnavailable,
                "whether the request took effect is unknown; look before repeating it",
            )
        } else {
            tracing::error!(error = source, "the store failed");
            Self::new(ProblemType::Internal, "the log of the server says more")
        }
    }
}

impl From<CommandError> for Problem {
    fn from(error: CommandError) -> Self {
        let detail = error.to_string();
        match error {
            CommandError::NotFound | CommandError::NoTarget => {
                Self::new(ProblemType::NotFound, detail)
            }
            CommandError::Invalid(faults) => Self::of_fields(ProblemType::InvalidJob, faults),
            CommandError::InvalidTarget(faults) => {
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
            CommandError::Conflict(Conflict::JobGone | Conflict::NotSo { .. }) => {
                Self::new(ProblemType::JobState, detail)
            }
            CommandError::Conflict(Conflict::NotRunning | Conflict::TakenOver | Conflict::Over) => {
                Self::new(ProblemType::RunOver, detail)
            }
            CommandError::Rebalance(conflict) => of_rebalance(conflict, detail),
            CommandError::BadAttemptToken => Self::new(ProblemType::Unauthorized, detail),
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
            let state = Some(state_word(state));
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

/// Why a request was refused, left in the answer for the audit log.
#[derive(Clone)]
pub(crate) struct Refused(pub(crate) String);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (kind, generation) = (self.kind, self.generation);
        let refused = Refused(self.detail.clone().into());
        let mut response = (kind.status(), Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match kind {
            ProblemType::Unauthorized => {
                let challenge = HeaderValue::from_static("Bearer realm=\"evenkeel\"");
                headers.insert(header::WWW_AUTHENTICATE, challenge);
            }
            ProblemType::JobChanged => {
                headers.extend(generation.map(|generation| (header::ETAG, etag(generation))));
            }
            ProblemType::Starting
            | ProblemType::TooManyStreams
            | ProblemType::StoreUnavailable
            | ProblemType::Timeout
            | ProblemType::RequestUnderWay => {
                let wait = HeaderValue::from_static(Self::RETRY_AFTER_SECONDS);
                headers.insert(header::RETRY_AFTER, wait);
            }
            _ => {}
        }
        response.extensions_mut().insert(refused);
        response
    }
}
