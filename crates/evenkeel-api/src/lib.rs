//! Evenkeel over HTTP: parse, authorise, call once, render.
//!
//! One file per endpoint. [`router`] is all of it; it can be tested without a socket. Every
//! refusal is a [`Problem`] of a closed list of types.

mod auth;
mod body;
mod conditions;
mod executions;
mod guard;
mod health;
mod jobs;
mod metrics;
mod observe;
mod openapi;
mod page;
mod pages;
mod params;
mod problem;
mod routes;
mod runs;
mod schedules;
mod state;
mod tenants;
mod tokens;

pub use auth::Caller;
pub use body::BODY_BYTES_MAX;
pub use conditions::{AtRiskView, ConditionCountsView, ConditionList};
pub use executions::{CancelledView, ExecutionList, ExecutionView, ProgressView, SkippedView};
pub use health::{Check, Readiness, ReadyView};
pub use jobs::{
    BlackoutView, CommandedView, ConditionView, DeletedView, ExplainView, HistoryView, JobDocument,
    JobList, JobView, NextTimeView, NextTimesView, ReasonView, ScheduleForm, ScheduleView,
    TriggeredView,
};
pub use page::{LIMIT_DEFAULT, LIMIT_MAX, OFFSET_MAX};
pub use pages::{PageHitView, PageList, PageView};
pub use problem::{FieldError, Problem, ProblemType};
pub use routes::{openapi, router};
pub use runs::{CompleteDocument, FailDocument, FailedView, ProgressDocument};
pub use schedules::{PreviewDocument, PreviewView, SlotLoadView};
pub use state::{App, Clock, RenderMetrics, Settings};
pub use tenants::{DEFAULT_TENANT, Tenants};
pub use tokens::{
    Claims, ISSUER, SECRET_BYTES_MIN, TokenError, TokenRefusal, TokenRequest, Tokens,
};
