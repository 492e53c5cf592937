//! `GET /api/v1/targets`

use axum::Json;

use super::TargetView;
use crate::call::{Answer, Call};
use crate::page::{PageQuery, Paged, list_answer};

list_answer! {
    /// One page of targets.
    TargetList {
        /// The targets, sorted by number.
        targets: TargetView
    }
}

/// Lists the targets of the caller's tenant.
#[utoipa::path(
    get, path = "/api/v1/targets", tag = "targets",
    params(PageQuery),
    responses((status = 200, description = "One page of the list", body = TargetList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_targets(call: Call, Paged(request): Paged<i64>) -> Answer<TargetList> {
    let page = call.store.list_targets(call.scope(), request).await?;
    Ok(Json(TargetList::new(&call, &request, page, |target| {
        TargetView::new(target).for_role(call.scope().role)
    })))
}
