//! The HTTP interface: each handler reads a request, calls one command and renders the response.
//!
//! - Endpoints: one folder per resource (`jobs`, `executions`, `targets`…) with one file per
//!   endpoint. The doc comments of handlers and views are the descriptions in the OpenAPI document,
//!   and the name of a handler is its `operationId`.
//! - `routes`: all routes, and the layers that wrap them. Tests call [`router`] without opening a
//!   socket.
//! - Layers, from the outermost to the innermost: `oversight` (request ids, audit log), `observe`
//!   (metrics, log), `guard` (time limit, security headers), `auth` and `roles` (caller and role),
//!   `memory` (limits the memory of request bodies), `idempotency` (`Idempotency-Key`).
//! - Shared by handlers: `call` (caller and state), `params`, `body` and `weight` (input), `page`
//!   and `cursor` (lists), `view` (responses), `etag`, `streams` (server-sent events), `problem`
//!   (every error is a [`Problem`] of a closed list of types), `state`.
//! - `openapi` completes the OpenAPI document; `docs` renders it as an HTML page.
//!
//! To add an endpoint, write its file, add a line to `routes`, and refresh `docs/openapi.json`.

mod admin;
mod api_keys;
mod audit;
mod auth;
mod body;
mod call;
mod conditions;
mod cursor;
mod dead_letters;
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
mod timeline;
mod view;
mod weight;

pub use body::BODY_BYTES_MAX;
pub use evenkeel_access::{Access, DEFAULT_TENANT, SECRET_BYTES_MIN, TokenRequest, Tokens, Trust};
pub use guard::with_safe_headers;
pub use health::{Check, Readiness, ReadyView};
pub use oversight::ClientAddress;
pub use problem::{Problem, ProblemType};
pub use routes::{openapi, router};
pub use state::{AppParts, Clock, RenderMetrics, Settings};
pub use streams::{STREAMS_MAX_PER_TENANT, Streams};
