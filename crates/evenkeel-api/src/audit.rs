//! `GET /api/v1/audit`

use axum::Json;
use evenkeel_access::DEFAULT_TENANT;
use evenkeel_core::Timestamp;
use evenkeel_store::{AuditCursor, AuditEntry, AuditFilter, PageRequest, Role};

use crate::call::{Answer, Call};
use crate::page::{PageQuery, list_answer};
use crate::params::Params;
use crate::view::view;

view! {
    /// An entry of the audit log: a change that was made, or a request that was refused.
    AuditEntryView::new(entry: AuditEntry) {}

    /// Time of the request.
    at: Timestamp = entry.at,
    /// The caller: the subject of its token, or `key:` plus the name of its API key. The subject is
    /// `unknown` if the credential was invalid.
    subject: String = entry.subject,
    /// Role of the caller, if known.
    #[schema(value_type = Option<String>, example = "operator")]
    role: Option<Role> = entry.role,
    /// The operation that the request called: its `operationId` in this OpenAPI document.
    #[schema(example = "create_job")]
    action: String = entry.action,
    /// The object that the request named or changed, usually its id.
    target: Option<String> = entry.target,
    /// HTTP status of the response.
    status: u16 = entry.status,
    /// True if the request was refused because the credential was invalid or had too few rights.
    denied: bool = entry.denied,
    /// The reason for the refusal, the error, or a summary of the change.
    detail: Option<String> = entry.detail,
    /// IP address of the client.
    remote: Option<String> = entry.remote,
    /// Id of the request; the response had it in the header `X-Request-Id`.
    request_id: String = entry.request_id,
}

list_answer! {
    /// One page of the audit log.
    AuditList {
        /// The entries, newest first. With a filter, a page may have fewer entries than `limit`
        /// although more entries follow; continue with `next_cursor`.
        entries: AuditEntryView
    }
}

/// Lists the entries of the audit log for the caller's tenant: changes and refused requests.
///
/// Administrators of the tenant `default` also see requests whose credential was invalid.
#[utoipa::path(
    get, path = "/api/v1/audit", tag = "access",
    params(
        PageQuery,
        ("subject" = Option<String>, Query, description = "Lists only entries of this subject."),
        ("target" = Option<String>, Query, description = "Lists only entries about this object."),
        ("denied" = Option<bool>, Query,
         description = "`true` lists only refused requests. `false` lists only changes."),
        ("from" = Option<Timestamp>, Query, description = "Lists only entries at or after this time."),
        ("before" = Option<Timestamp>, Query, description = "Lists only entries before this time."),
    ),
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
    Ok(Json(AuditList::new(&call, &request, page, |(_, entry)| AuditEntryView::new(entry))))
}
