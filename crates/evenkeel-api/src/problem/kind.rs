//! The kinds of problems.

use axum::http::StatusCode;
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
/// | `request-timeout` | 408 | the body did not come in time; nothing was done |
/// | `ambiguous-name` | 409 | several jobs have the name; the detail lists their ids |
/// | `duplicate` | 409 | `existing_id` has the key for deduplication, and counts |
/// | `name-taken` | 409 | `existing_id` has the name and configuration |
/// | `key-name-taken` | 409 | another API key has the name |
/// | `target-taken` | 409 | another target, which the detail names, has the number or source_id |
/// | `target-in-use` | 409 | jobs name the target, the detail says how many; `force=true` detaches them |
/// | `no-secret-key` | 409 | the server has no key to encrypt secrets with |
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
/// | `body-too-large` | 413 | the body has more than 1 MiB, or so many values that they take more than 16 MiB |
/// | `unsupported-media-type` | 415 | the body is not said to be JSON |
/// | `invalid-job` | 422 | the document of a job is wrong; see `errors` |
/// | `invalid-schedule` | 422 | the document of a schedule is wrong; see `errors` |
/// | `idempotency-key-reused` | 422 | another request had this `Idempotency-Key` |
/// | `invalid-parameter` | 422 | a parameter is wrong; see `errors` |
/// | `too-many-failures` | 429 | too many credentials were refused; wait as `Retry-After` says |
/// | `internal` | 500 | a fault of the server's |
/// | `starting` | 503 | this node has just been started; try again |
/// | `server-busy` | 503 | the requests in flight take all the memory there is for them; nothing was done, try again |
/// | `too-many-streams` | 503 | no more streams can be open at once; try again |
/// | `store-not-writable` | 503 | the database takes no changes, for instance because its disk is full; nothing was changed |
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
    /// Several jobs have the name.
    #[serde(rename = "/problems/ambiguous-name")]
    AmbiguousName,
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
    /// The server has no key to encrypt secrets with.
    #[serde(rename = "/problems/no-secret-key")]
    NoSecretKey,
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
    /// The requests in flight take all the memory there is for them; try again.
    #[serde(rename = "/problems/server-busy")]
    ServerBusy,
    /// No more streams can be open at once; try again.
    #[serde(rename = "/problems/too-many-streams")]
    TooManyStreams,
    /// The database takes no changes, and nothing was changed.
    #[serde(rename = "/problems/store-not-writable")]
    StoreNotWritable,
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
            | Self::AmbiguousName
            | Self::NameTaken
            | Self::Duplicate
            | Self::TargetTaken
            | Self::TargetInUse
            | Self::NoSecretKey
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
            Self::Starting
            | Self::ServerBusy
            | Self::TooManyStreams
            | Self::StoreUnavailable
            | Self::StoreNotWritable
            | Self::Timeout => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Was surely nothing changed by a request that is refused like this?
    pub fn changed_nothing(self) -> bool {
        !self.status().is_server_error()
            || matches!(self, Self::Starting | Self::ServerBusy | Self::StoreNotWritable)
    }

    /// The same words for every problem of the type.
    pub const fn title(self) -> &'static str {
        match self {
            Self::MalformedJson => "The body is not JSON",
            Self::Unauthorized => "A valid token is needed",
            Self::Forbidden => "The token does not allow this",
            Self::NotFound => "There is no such thing",
            Self::MethodNotAllowed => "The path does not have this method",
            Self::RequestTimeout => "The body did not come in time",
            Self::Starting => "This node is still starting",
            Self::AmbiguousName => "Several jobs have this name",
            Self::NameTaken => "Another job has this name",
            Self::Duplicate => "A job with this key is in the way",
            Self::KeyNameTaken => "Another API key has this name",
            Self::TargetTaken => "Another target has this number or source_id",
            Self::TargetInUse => "Jobs name this target",
            Self::TargetChanged => "The target was changed meanwhile",
            Self::NoSecretKey => "The server has no key for secrets",
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
            Self::ServerBusy => "Too much is in flight",
            Self::TooManyStreams => "Too many streams are open",
            Self::StoreNotWritable => "The database takes no changes",
            Self::StoreUnavailable => "The database does not answer",
            Self::Timeout => "The request took too long",
        }
    }
}
