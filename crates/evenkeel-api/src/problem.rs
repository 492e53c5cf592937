//! Errors as RFC 9457 problem details.

use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use evenkeel_commands::Fault;
use evenkeel_core::JobId;
use evenkeel_core::status::JobStatus;
use serde::Serialize;
use utoipa::ToSchema;

use crate::etag::etag;

mod conversions;
mod kind;

pub use kind::ProblemType;

/// One error in a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct FieldError {
    /// The invalid field or parameter.
    pub field: String,
    /// What is wrong with the value, and which values are allowed.
    pub message: String,
    /// Position of the error within the value, in characters counted from 0; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
}

/// A job that has changed since the rebalance was planned, so that it cannot be moved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ChangedJobView {
    /// Id of the job.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// Reason: `not_active` (paused, cancelled, deleted or ended), `changed`, `ran`, `job_running`,
    /// or `too_late` (the planned start time has passed).
    #[schema(value_type = String)]
    pub reason: &'static str,
}

/// The rebalance that conflicts with the request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, ToSchema)]
pub struct RebalanceInTheWay {
    /// Id of the running rebalance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<uuid::Uuid>,
    /// State of the rebalance, if that state does not allow the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub state: Option<&'static str>,
    /// Number of jobs that have changed since the rebalance was planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_total: Option<u64>,
    /// The first 100 jobs that have changed since the rebalance was planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 100)]
    pub changed: Option<Vec<ChangedJobView>>,
}

/// An error as RFC 9457 problem details.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct Problem {
    /// The type of the problem.
    #[serde(rename = "type")]
    pub kind: ProblemType,
    /// Short title, the same for every problem of this type.
    pub title: &'static str,
    /// HTTP status.
    pub status: u16,
    /// Explanation of this occurrence.
    #[schema(value_type = String)]
    pub detail: Box<str>,
    /// Name of the first invalid field or parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub field: Option<Box<str>>,
    /// Position of the error within the value, in characters counted from 0; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// All errors in the request.
    #[serde(skip_serializing_if = "is_none")]
    #[schema(required = false, value_type = Vec<FieldError>)]
    pub errors: Box<[FieldError]>,
    /// Id of the conflicting job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    pub existing_id: Option<Box<JobId>>,
    /// Current version of the object, if the request expected another version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i32>,
    /// Status of the job, if the status does not allow the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub job_status: Option<JobStatus>,
    /// Commands that the present status of the job allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub allowed: Option<Box<[&'static str]>>,
    /// The conflicting rebalance.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RebalanceInTheWay>)]
    pub rebalance: Option<Box<RebalanceInTheWay>>,
}

impl Problem {
    const RETRY_AFTER_SECONDS: &'static str = "2";

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

    /// Creates a problem that lists invalid fields; the first one also becomes its `field`.
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

    /// Replaces a general `not-found` problem by one that names the kind of object.
    pub(crate) fn or_missing(self, missing: impl FnOnce() -> Self) -> Self {
        if self.kind == ProblemType::NotFound { missing() } else { self }
    }

    /// Creates an internal error; its cause is only in the log.
    pub(crate) fn internal() -> Self {
        Self::new(ProblemType::Internal, "internal error; the server's log has the cause")
    }

    pub(crate) fn parameter(name: &str, message: impl Into<String>) -> Self {
        vec![Fault::new(name, message)].into()
    }
}

fn is_none(errors: &[FieldError]) -> bool {
    errors.is_empty()
}

fn place(fault: &Fault) -> Option<u32> {
    fault.position.and_then(|position| u32::try_from(position).ok())
}

/// The detail of an error response, attached to the response for the audit log.
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
            // The connection is closed, because the rest of the request body is not read.
            ProblemType::RequestTimeout => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            ProblemType::Starting
            | ProblemType::ServerBusy
            | ProblemType::TooManyStreams
            | ProblemType::StoreUnavailable
            | ProblemType::StoreNotWritable
            | ProblemType::Timeout
            | ProblemType::RequestUnderWay => {
                let wait = HeaderValue::from_static(Self::RETRY_AFTER_SECONDS);
                headers.insert(header::RETRY_AFTER, wait);
            }
            _ => {}
        }
        response.extensions_mut().insert(refused);
        response.extensions_mut().insert(kind);
        response
    }
}
