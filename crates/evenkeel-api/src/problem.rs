//! Refusals, as RFC 9457 problem details.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use evenkeel_commands::{CommandError, Conflict, Fault};
use evenkeel_core::JobId;
use evenkeel_core::status::JobStatus;
use evenkeel_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

/// The types of problems: a closed list, so that programs can rely on it.
///
/// | type | status | when |
/// |---|---|---|
/// | `malformed-json` | 400 | the body is not JSON; the detail says where |
/// | `unauthorized` | 401 | there is no token, or it is worth nothing |
/// | `forbidden` | 403 | the token's role or tenant may not do this |
/// | `not-found` | 404 | there is no such thing, or not for this tenant |
/// | `method-not-allowed` | 405 | the path exists, but not with this method |
/// | `name-taken` | 409 | `existing_id` has the name and configuration |
/// | `job-busy` | 409 | a run goes on and the overlap policy allows no other |
/// | `job-state` | 409 | the job is in a state (`job_status`) that allows only what `allowed` says |
/// | `run-over` | 409 | the run or attempt has ended, or was taken over |
/// | `job-changed` | 412 | the job is no longer what it was to be; read it again |
/// | `body-too-large` | 413 | the body has more than 1 MiB |
/// | `unsupported-media-type` | 415 | the body is not said to be JSON |
/// | `invalid-job` | 422 | the document of a job is wrong; see `errors` |
/// | `invalid-schedule` | 422 | the document of a schedule is wrong; see `errors` |
/// | `invalid-parameter` | 422 | a parameter is wrong; see `errors` |
/// | `internal` | 500 | a fault of the server's |
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
    /// A run of the job goes on and its overlap policy allows no other.
    #[serde(rename = "/problems/job-busy")]
    JobBusy,
    /// The job is in a state that does not allow it.
    #[serde(rename = "/problems/job-state")]
    JobState,
    /// The job is no longer what it was to be.
    #[serde(rename = "/problems/job-changed")]
    JobChanged,
    /// The run or attempt has ended, or was taken over.
    #[serde(rename = "/problems/run-over")]
    RunOver,
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
    /// A fault of the server's.
    #[serde(rename = "/problems/internal")]
    Internal,
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
            Self::NameTaken | Self::JobBusy | Self::JobState | Self::RunOver => {
                StatusCode::CONFLICT
            }
            Self::JobChanged => StatusCode::PRECONDITION_FAILED,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::InvalidJob | Self::InvalidSchedule | Self::InvalidParameter => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::StoreUnavailable | Self::Timeout => StatusCode::SERVICE_UNAVAILABLE,
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
            Self::NameTaken => "Another job has this name",
            Self::JobBusy => "The job is busy",
            Self::JobState => "The state of the job does not allow this",
            Self::JobChanged => "The job was changed meanwhile",
            Self::RunOver => "The run has ended or was taken over",
            Self::BodyTooLarge => "The body is too large",
            Self::UnsupportedMediaType => "The body must be application/json",
            Self::InvalidJob => "The job is not acceptable",
            Self::InvalidSchedule => "The schedule is not acceptable",
            Self::InvalidParameter => "A parameter is not acceptable",
            Self::Internal => "Something went wrong in the server",
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<FieldError>,
    /// The job that is in the way, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    pub existing_id: Option<JobId>,
    /// The state of the job, if that is in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub job_status: Option<JobStatus>,
    /// What the job would allow instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub allowed: Option<Box<[&'static str]>>,
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
            errors: Vec::new(),
            existing_id: None,
            job_status: None,
            allowed: None,
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
            CommandError::NotFound => Self::new(ProblemType::NotFound, detail),
            CommandError::Invalid(faults) => Self::of_fields(ProblemType::InvalidJob, faults),
            CommandError::InvalidSchedule(faults) => {
                Self::of_fields(ProblemType::InvalidSchedule, faults)
            }
            CommandError::NameTaken { id } => Self {
                existing_id: Some(id),
                field: Some("name".into()),
                ..Self::new(ProblemType::NameTaken, detail)
            },
            CommandError::Conflict(Conflict::Busy) => Self::new(ProblemType::JobBusy, detail),
            CommandError::NotAllowed(refusal) => Self {
                job_status: Some(refusal.status),
                allowed: Some(refusal.allowed.iter().map(|command| command.as_str()).collect()),
                ..Self::new(ProblemType::JobState, detail)
            },
            CommandError::Stale { .. } => Self::new(ProblemType::JobChanged, detail),
            CommandError::Conflict(Conflict::NotRunning | Conflict::TakenOver | Conflict::Over) => {
                Self::new(ProblemType::RunOver, detail)
            }
            CommandError::BadAttemptToken => Self::new(ProblemType::Unauthorized, detail),
            CommandError::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let kind = self.kind;
        let mut response = (kind.status(), Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match kind {
            ProblemType::Unauthorized => {
                let challenge = HeaderValue::from_static("Bearer realm=\"evenkeel\"");
                headers.insert(header::WWW_AUTHENTICATE, challenge);
            }
            ProblemType::StoreUnavailable | ProblemType::Timeout => {
                let wait = HeaderValue::from_static(Self::RETRY_AFTER_SECONDS);
                headers.insert(header::RETRY_AFTER, wait);
            }
            _ => {}
        }
        response
    }
}
