//! `GET /api/v1/audit`

use axum::Json;
use evenkeel_access::DEFAULT_TENANT;
use evenkeel_core::Timestamp;
use evenkeel_store::{AuditCursor, AuditEntry, AuditFilter, PageRequest, Role};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::call::{Answer, Call};
use crate::page::{PageQuery, list_answer};
use crate::params::Params;

/// An entry of the audit log: a change that was made, or a request that was refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct AuditEntryView {
    /// Time of the request.
    pub at: Timestamp,
    /// The caller: the subject of its token, or `key:` plus the name of its API key. `unknown` if
    /// the credential was invalid.
    pub subject: String,
    /// Role of the caller, if known.
    #[schema(value_type = Option<String>, example = "operator")]
    pub role: Option<Role>,
    /// The operation, as its `operationId` in this OpenAPI document.
    #[schema(example = "create_job")]
    pub action: String,
    /// The object that the request named or changed, usually its id.
    pub target: Option<String>,
    /// HTTP status of the response.
    pub status: u16,
    /// True if the request was refused because the credential was invalid or had too few rights.
    pub denied: bool,
    /// The reason for the refusal, the error, or a summary of the change.
    pub detail: Option<String>,
    /// IP address of the client.
    pub remote: Option<String>,
    /// Id of the request; the response had it in the header `X-Request-Id`.
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

list_answer! {
    /// One page of the audit log.
    AuditList {
        /// The entries, newest first. With a filter, a page may have fewer entries than `limit`
        /// although more entries follow; continue with `next_cursor`.
        entries: AuditEntryView
    }
}

/// Filters of the audit log.
#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Lists only entries of this subject.
    subject: Option<String>,
    /// Lists only entries about this object.
    target: Option<String>,
    /// `true` lists only refused requests. `false` lists only changes.
    denied: Option<bool>,
    /// Lists only entries at or after this time.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<String>,
    /// Lists only entries before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    before: Option<String>,
}

/// Lists the entries of the audit log for the caller's tenant: changes and refused requests.
///
/// Administrators of the tenant `default` also see requests whose credential was invalid.
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    tag = "access",
    params(PageQuery, AuditQuery),
    responses((status = 200, description = "One page of the audit log", body = AuditList)),
    extensions(("x-required-role" = json!("admin"))),
)]
pub(crate) async fn list_audit(call: Call, mut params: Params) -> Answer<AuditList> {
    let request: PageRequest<AuditCursor> = PageQuery::take(&mut params);
    let filter = AuditFilter {
        subject: params.text("subject"),
        target: params.text("target"),
        denied: params.flag("denied"),
        from: params.time("from"),
        before: params.time("before"),
        with_unknown: call.caller.tenant == DEFAULT_TENANT,
    };
    params.finish()?;
    let page = call.store.list_audit(call.scope(), &filter, request).await?;
    Ok(Json(AuditList::new(&call, &request, page, |(_, entry)| entry.into())))
}
