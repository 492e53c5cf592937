//! `GET /api/v1/pages/{id}`

use axum::Json;
use evenkeel_core::{JobId, PageId, Timestamp};
use evenkeel_store::StoredPage;
use serde_json::Value;

use crate::call::{Answer, Call};
use crate::params::{NoParams, PathId};
use crate::problem::{Problem, ProblemType};
use crate::view::view;

view! {
    /// A page stored by a crawl.
    PageView::new(page: StoredPage) {
        let content = page.content;
    }

    /// Id of the page.
    id: PageId as uuid::Uuid = content.id,
    /// Id of the job that crawled the page.
    job_id: JobId as uuid::Uuid = page.job,
    /// URL of the page.
    url: String = content.url,
    /// HTTP status of the page.
    status: u16 = content.status,
    /// Media type.
    content_type: String = content.content_type,
    /// Number of links that lead from the start page to this page.
    depth: u16 = content.depth,
    /// Title.
    title: Option<String> = content.title,
    /// Text without markup.
    text: String = content.text,
    /// URLs of the links on the page.
    links: Vec<String> = content.links,
    /// Metadata from the HTML head of the page.
    metadata: Value as Object = content.metadata,
    /// Values that the job's selectors extracted from the page.
    fields: Value as Object = content.fields,
    /// SHA-256 hash of the page's content, in hexadecimal.
    content_hash: String = content.content_hash.iter().map(|byte| format!("{byte:02x}")).collect(),
    /// `ETag` header of the page's HTTP response.
    etag: Option<String> = content.etag,
    /// `Last-Modified` header of the page's HTTP response.
    last_modified: Option<String> = content.last_modified,
    /// Time when the page was first stored.
    first_seen_at: Timestamp = page.first_seen_at,
    /// Time when the content of the page last changed.
    changed_at: Timestamp = page.changed_at,
    /// Time when a crawl last fetched the page.
    seen_at: Timestamp = page.seen_at,
}

/// Returns a crawled page with all its stored data.
#[utoipa::path(
    get, path = "/api/v1/pages/{id}", tag = "pages",
    params(("id" = uuid::Uuid, Path, description = "Id of the page")),
    responses((status = 200, description = "The page", body = PageView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_page(call: Call, PathId(id): PathId, _: NoParams) -> Answer<PageView> {
    let id: PageId = id.parse().map_err(|_| {
        let detail = "there is no such page: the id in the path is not a UUID";
        Problem::new(ProblemType::NotFound, detail)
    })?;
    Ok(Json(PageView::new(call.pages.get(call.scope(), id).await?)))
}
