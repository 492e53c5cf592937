//! `GET /api/v1/audit`

use axum::Json;
use axum::extract::State;
use evenkeel_access::DEFAULT_TENANT;
use evenkeel_core::Timestamp;
use evenkeel_store::{AuditCursor, AuditEntry, AuditFilter, PageRequest, Role};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::auth::Caller;
use crate::page::PageQuery;
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

/// Something that was done, or was refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct AuditEntryView {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Who: the subject of a token, or `key:` and the name of an API key; `unknown` if their
    /// credential was refused.
    pub subject: String,
    /// What they may do, if that is known.
    #[schema(value_type = Option<String>, example = "operator")]
    pub role: Option<Role>,
    /// What they asked for: the `operationId` of this document.
    #[schema(example = "create_job")]
    pub action: String,
    /// What it is about: mostly an id.
    pub target: Option<String>,
    /// The status of the answer.
    pub status: u16,
    /// Was it refused because they may not?
    pub denied: bool,
    /// Why it was refused, what went wrong, or what was done.
    pub detail: Option<String>,
    /// The address the request came from.
    pub remote: Option<String>,
    /// The request's id, which its answer had as `X-Request-Id`.
    pub request_id: String,
}

impl From<AuditEntry> for AuditEntryView {
    fn from(entry: AuditEntry) -> Self {
        Self {
            at: entry.at,
            subject: entry.subject,
            role: entry.role,
            action: entry.action,
            target: entry.target,
            status: entry.status,
            denied: entry.denied,
            detail: entry.detail,
            remote: entry.remote,
            request_id: entry.request_id,
        }
    }
}

/// A part of the audit log.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct AuditList {
    /// What is on it, newest first. A filter that few pass may leave it short although more follow:
    /// go on with `next_cursor`.
    pub entries: Vec<AuditEntryView>,
    /// How many pass, of the 10,000 that are counted at most.
    pub total: u64,
    /// Are there more than were counted?
    pub total_is_estimate: bool,
    /// How many were asked for.
    pub limit: u32,
    /// How many were left out first.
    pub offset: u32,
    /// The `cursor` of the next page, if there is one.
    pub next_cursor: Option<String>,
}

/// Which entries to list.
#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Those of this subject.
    subject: Option<String>,
    /// Those about this.
    target: Option<String>,
    /// Only refusals, or only what was done.
    denied: Option<bool>,
    /// Those of this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<String>,
    /// Those from before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    before: Option<String>,
}

/// What was changed and what was refused in the caller's tenant. Administrators of the tenant
/// `default` also see the refusals of those whose credential was worth nothing.
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    operation_id = "list_audit",
    tag = "access",
    params(PageQuery, AuditQuery),
    responses((status = 200, description = "A part of the log", body = AuditList)),
    extensions(("x-required-role" = json!("admin"))),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<AuditList>, Problem> {
    let request: PageRequest<AuditCursor> = PageQuery::take(&mut params);
    let filter = AuditFilter {
        subject: params.text("subject"),
        target: params.text("target"),
        denied: flag(&mut params, "denied"),
        from: moment(&mut params, "from"),
        before: moment(&mut params, "before"),
        with_unknown: caller.tenant == DEFAULT_TENANT,
    };
    params.finish()?;
    let page = app.store.list_audit(&caller.scope, &filter, request).await?;
    Ok(Json(AuditList {
        entries: page.items.into_iter().map(|(_, entry)| entry.into()).collect(),
        total: page.total,
        total_is_estimate: page.total_is_estimate,
        limit: request.limit,
        offset: request.offset,
        next_cursor: app.cursor(page.next),
    }))
}

fn flag(params: &mut Params, name: &'static str) -> Option<bool> {
    let text = params.text(name)?;
    let flag = text.parse().ok();
    if flag.is_none() {
        params.fault(name, format!("{text:?} is not true or false"));
    }
    flag
}

fn moment(params: &mut Params, name: &'static str) -> Option<Timestamp> {
    let text = params.text(name)?;
    let moment = text.parse().ok();
    if moment.is_none() {
        params.fault(name, format!("{text:?} is not a time like 2026-12-01T09:00:00Z"));
    }
    moment
}
