//! The types of problems, one row each.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

/// Declares [`ProblemType`] from rows of name, URI, status and title.
macro_rules! problem_types {
    ($(#[$about:meta])* $($name:ident $uri:tt $status:ident $title:literal;)*) => {
        $(#[$about])*
        #[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
        pub enum ProblemType {
            $(#[serde(rename = $uri)] $name,)*
        }

        impl ProblemType {
            pub const fn status(self) -> StatusCode {
                match self {
                    $(Self::$name => StatusCode::$status,)*
                }
            }

            /// Returns the title, which is the same for every problem of this type.
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$name => $title,)*
                }
            }
        }
    };
}

problem_types! {
    /// The type of a problem, from a closed list that programs can rely on.
    ///
    /// | type | status | meaning |
    /// |---|---|---|
    /// | `malformed-json` | 400 | the body is not valid JSON; the detail has the position |
    /// | `unauthorized` | 401 | the token is missing or invalid |
    /// | `forbidden` | 403 | the token's role or tenant does not allow this |
    /// | `not-found` | 404 | the object does not exist, or belongs to another tenant |
    /// | `method-not-allowed` | 405 | the path exists, but not with this method |
    /// | `request-timeout` | 408 | the body did not arrive in time; nothing was changed |
    /// | `ambiguous-name` | 409 | several jobs have the name; the detail lists their ids |
    /// | `duplicate` | 409 | the job `existing_id` has the same deduplication key |
    /// | `name-taken` | 409 | the job `existing_id` has the same name and configuration |
    /// | `key-name-taken` | 409 | another API key has the name |
    /// | `target-taken` | 409 | another target, named in the detail, has the number or `source_id` |
    /// | `target-in-use` | 409 | jobs refer to the target; `force=true` detaches them |
    /// | `no-secret-key` | 409 | the server has no key to encrypt secrets with |
    /// | `job-busy` | 409 | a run is active and the overlap policy allows no other |
    /// | `job-state` | 409 | the state of the job (`job_status`) allows only the commands in `allowed` |
    /// | `request-under-way` | 409 | a request with the same Idempotency-Key is in progress; try again |
    /// | `answer-not-kept` | 409 | the request was already executed, but its response is not stored |
    /// | `run-over` | 409 | the run or attempt has finished, or another worker took it over |
    /// | `letter-redriven` | 409 | the dead letter was already redriven |
    /// | `rebalance-under-way` | 409 | another rebalance of the tenant is running: `rebalance.id` |
    /// | `rebalance-state` | 409 | the state of the rebalance (`rebalance.state`) does not allow this |
    /// | `plan-changed` | 409 | jobs of the plan have changed (`rebalance.changed`); make a new preview |
    /// | `plan-expired` | 409 | the plan has expired; make a new preview |
    /// | `job-changed` | 412 | the job does not match `If-Match`; read it again |
    /// | `target-changed` | 412 | the target does not match `If-Match`; read it again |
    /// | `body-too-large` | 413 | the body has more than 1 MiB, or would take more than 16 MiB of memory |
    /// | `unsupported-media-type` | 415 | the Content-Type is not JSON |
    /// | `invalid-job` | 422 | fields of the job are invalid; see `errors` |
    /// | `invalid-schedule` | 422 | fields of the schedule are invalid; see `errors` |
    /// | `idempotency-key-reused` | 422 | another request had this `Idempotency-Key` |
    /// | `invalid-parameter` | 422 | parameters or fields are invalid; see `errors` |
    /// | `too-many-failures` | 429 | too many invalid credentials; wait for the time in `Retry-After` |
    /// | `internal` | 500 | an internal error; the server's log has the cause |
    /// | `starting` | 503 | this node is starting; try again |
    /// | `server-busy` | 503 | other requests use all the memory; nothing was changed, try again |
    /// | `too-many-streams` | 503 | too many streams are open; try again |
    /// | `store-not-writable` | 503 | the database is read-only, for example because its disk is full; nothing was changed |
    /// | `store-unavailable` | 503 | the database is unavailable; try again |
    /// | `timeout` | 503 | the request took too long; try again |
    MalformedJson "/problems/malformed-json" BAD_REQUEST "The body is not valid JSON";
    Unauthorized "/problems/unauthorized" UNAUTHORIZED "A valid token is required";
    Forbidden "/problems/forbidden" FORBIDDEN "The token does not allow this";
    NotFound "/problems/not-found" NOT_FOUND "Not found";
    MethodNotAllowed "/problems/method-not-allowed" METHOD_NOT_ALLOWED "The path does not support this method";
    AmbiguousName "/problems/ambiguous-name" CONFLICT "Several jobs have this name";
    NameTaken "/problems/name-taken" CONFLICT "Another job has this name";
    Duplicate "/problems/duplicate" CONFLICT "Another job has this deduplication key";
    KeyNameTaken "/problems/key-name-taken" CONFLICT "Another API key has this name";
    TargetTaken "/problems/target-taken" CONFLICT "Another target has this number or source_id";
    TargetInUse "/problems/target-in-use" CONFLICT "Jobs refer to this target";
    TargetChanged "/problems/target-changed" PRECONDITION_FAILED "The target has changed since it was read";
    NoSecretKey "/problems/no-secret-key" CONFLICT "The server has no key for secrets";
    JobBusy "/problems/job-busy" CONFLICT "A run of the job is active";
    JobState "/problems/job-state" CONFLICT "The state of the job does not allow this";
    JobChanged "/problems/job-changed" PRECONDITION_FAILED "The job has changed since it was read";
    RequestUnderWay "/problems/request-under-way" CONFLICT "The request is in progress";
    AnswerNotKept "/problems/answer-not-kept" CONFLICT "The request was carried out before";
    IdempotencyKeyReused "/problems/idempotency-key-reused" UNPROCESSABLE_ENTITY "The key was used for another request";
    RunOver "/problems/run-over" CONFLICT "The run has ended or was taken over";
    LetterRedriven "/problems/letter-redriven" CONFLICT "The dead letter was already redriven";
    RebalanceUnderWay "/problems/rebalance-under-way" CONFLICT "Another rebalance is running";
    RebalanceState "/problems/rebalance-state" CONFLICT "The state of the rebalance does not allow this";
    PlanChanged "/problems/plan-changed" CONFLICT "Jobs have changed since the plan was made";
    PlanExpired "/problems/plan-expired" CONFLICT "The plan has expired";
    BodyTooLarge "/problems/body-too-large" PAYLOAD_TOO_LARGE "The body is too large";
    UnsupportedMediaType "/problems/unsupported-media-type" UNSUPPORTED_MEDIA_TYPE "The body must be application/json";
    InvalidJob "/problems/invalid-job" UNPROCESSABLE_ENTITY "The job is invalid";
    InvalidSchedule "/problems/invalid-schedule" UNPROCESSABLE_ENTITY "The schedule is invalid";
    InvalidParameter "/problems/invalid-parameter" UNPROCESSABLE_ENTITY "A parameter is invalid";
    TooManyFailures "/problems/too-many-failures" TOO_MANY_REQUESTS "Too many invalid credentials";
    Internal "/problems/internal" INTERNAL_SERVER_ERROR "Internal error";
    RequestTimeout "/problems/request-timeout" REQUEST_TIMEOUT "The body did not arrive in time";
    Starting "/problems/starting" SERVICE_UNAVAILABLE "This node is starting";
    ServerBusy "/problems/server-busy" SERVICE_UNAVAILABLE "The server is overloaded";
    TooManyStreams "/problems/too-many-streams" SERVICE_UNAVAILABLE "Too many streams are open";
    StoreNotWritable "/problems/store-not-writable" SERVICE_UNAVAILABLE "The database is not writable";
    StoreUnavailable "/problems/store-unavailable" SERVICE_UNAVAILABLE "The database is unavailable";
    Timeout "/problems/timeout" SERVICE_UNAVAILABLE "The request took too long";
}

impl ProblemType {
    /// True if a request that got this problem certainly changed nothing.
    pub fn changed_nothing(self) -> bool {
        !self.status().is_server_error()
            || matches!(self, Self::Starting | Self::ServerBusy | Self::StoreNotWritable)
    }
}
