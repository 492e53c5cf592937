//! The HTTP interface: each handler reads a request, calls one command and renders the answer.
//!
//! - Endpoints: one folder per resource (`jobs`, `executions`, `targets`…), one file per endpoint.
//!   The doc comments of handlers and views are the descriptions in the OpenAPI document.
//! - `routes`: all routes and the layers around them. [`router`] can be tested without a socket.
//! - Layers, from the outside in: `oversight` (request ids, audit log), `observe` (metrics, log),
//!   `guard` (time limit, safe headers), `auth` and `roles` (caller and role), `memory` (limits the
//!   memory of bodies), `idempotency` (`Idempotency-Key`).
//! - Shared by handlers: `params`, `body` and `weight` (input), `page` and `cursor` (lists), `etag`,
//!   `streams` (server-sent events), `problem` (every error is a [`Problem`] of a closed list of
//!   types), `state`.
//! - `openapi` completes the document that `docs` shows as a page.
//!
//! A new endpoint is its file, a line in `routes`, and the refreshed `docs/openapi.json`.

mod admin;
mod api_keys;
mod audit;
mod auth;
mod body;
mod conditions;
mod cursor;
mod dead_letters;
mod docs;
mod etag;
mod events;
mod executions;
mod failures;
mod guard;
mod health;
mod idempotency;
mod jobs;
mod memory;
mod metrics;
mod nodes;
mod observe;
mod openapi;
mod oversight;
mod page;
mod pages;
mod params;
mod problem;
mod roles;
mod routes;
mod runs;
mod scheduler;
mod schedules;
mod secrets;
mod state;
mod streams;
mod targets;
mod weight;

pub use admin::{
    AdminJobList, AdminJobView, AdminResultView, AdminResultsView, AdminStatsView, BoostDocument,
    BulkRetryDocument, BulkStatusDocument, DeletedScheduledView, EnabledDocument, PriorityDocument,
    ScheduledDocument, ScheduledJobList, ScheduledJobView, StatusDocument,
};
pub use api_keys::{ApiKeyDocument, ApiKeyList, ApiKeyView, MadeApiKeyView, RevokedApiKeyView};
pub use audit::{AuditEntryView, AuditList};
pub use auth::Caller;
pub use body::{BODY_BYTES_MAX, BULK_BYTES_MAX};
pub use conditions::{AtRiskView, ConditionCountsView, ConditionList};
pub use dead_letters::{
    DeadLetterList, DeadLetterView, DeletedLetterView, DeletedLettersView, LetterIdsDocument,
    LetterResultView, RedrivenLettersView, RedrivenView,
};
pub use evenkeel_access::{
    Access, Authenticator, Claims, DEFAULT_TENANT, ISSUER, SECRET_BYTES_MIN, Tenants, TokenError,
    TokenRefusal, TokenRequest, Tokens, Trust,
};
pub use events::EventView;
pub use executions::{
    CancelledView, ExecutionList, ExecutionView, LogView, ProgressView, SkippedView,
};
pub use failures::{FailureList, FailureView};
pub use guard::with_safe_headers;
pub use health::{Check, Readiness, ReadyView};
pub use jobs::{
    BlackoutView, BulkCommandDocument, BulkDocument, BulkOutcomeView, BulkResultView, BulkView,
    CommandedView, ConditionView, DeletedView, ExplainView, FilterDocument, HistoryView, HoursView,
    JobDocument, JobList, JobStats, JobView, NextTimeView, NextTimesView, OnFailureDocument,
    OnFailureView, ReasonView, RefusalView, ScheduleForm, ScheduleView, TriggerDocument,
    TriggeredView,
};
pub use nodes::{NodeList, NodeView};
pub use oversight::{ClientAddress, Target};
pub use page::{LIMIT_DEFAULT, LIMIT_MAX, OFFSET_MAX};
pub use pages::{PageHitView, PageList, PageView};
pub use problem::{ChangedJobView, FieldError, Problem, ProblemType, RebalanceInTheWay};
pub use routes::{openapi, router};
pub use runs::{CompleteDocument, FailDocument, FailedView, ProgressDocument};
pub use scheduler::{
    DistributionView, ExecutionFigures, HourCount, HourView, JobFigures, MeasuredScores, MoveList,
    MoveView, MovedView, PlanDocument, PlannedMoveView, PreviewedView, ProjectedView,
    RebalanceDocument, RebalanceList, RebalanceView, RebalancedView, SchedulerMetrics, ScoreList,
    ScoreView, ScoresView, ShapeView, SkippedJobView, SlotView, UndoDocument,
};
pub use schedules::{PreviewDocument, PreviewView, SlotLoadView};
pub use secrets::{
    DeletedSecretView, RotatedView, SecretDocument, SecretList, SecretView, UnreadableSecretView,
};
pub use state::{AppParts, Clock, RenderMetrics, Settings};
pub use streams::{STREAMS_MAX, STREAMS_MAX_PER_TENANT, StreamEvent, Streams};
pub use targets::{
    ChangedTargetView, DeletedTargetView, TargetChange, TargetDocument, TargetList, TargetView,
};
