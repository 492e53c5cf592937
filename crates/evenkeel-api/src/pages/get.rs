//! `GET /api/v1/pages/{id}`

use axum::Json;
use evenkeel_core::{JobId, PageId, Timestamp};
use evenkeel_store::StoredPage;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::call::{Answer, Call};
use crate::params::{NoParams, PathId};
use crate::problem::{Problem, ProblemType};

/// A page stored by a crawl.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct PageView {
    /// Id of the page.
    #[schema(value_type = uuid::Uuid)]
    pub id: PageId,
    /// Id of the job that crawled the page.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// URL of the page.
    pub url: String,
    /// HTTP status of the page.
    pub status: u16,
    /// Media type.
    pub content_type: String,
    /// Number of links that lead from the start page to this page.
    pub depth: u16,
    /// Title.
    pub title: Option<String>,
    /// Text without markup.
    pub text: String,
    /// URLs of the links on the page.
    pub links: Vec<String>,
    /// Metadata from the HTML head of the page.
    #[schema(value_type = Object)]
    pub metadata: Value,
    /// Values that the job's selectors extracted from the page.
    #[schema(value_type = Object)]
    pub fields: Value,
    /// SHA-256 hash of the page's content, in hexadecimal.
    pub content_hash: String,
    /// `ETag` header of the page's HTTP response.
    pub etag: Option<String>,
    /// `Last-Modified` header of the page's HTTP response.
    pub last_modified: Option<String>,
    /// Time when the page was first stored.
    pub first_seen_at: Timestamp,
    /// Time when the content of the page last changed.
    pub changed_at: Timestamp,
    /// Time when a crawl last fetched the page.
    pub seen_at: Timestamp,
}

impl From<StoredPage> for PageView {
    fn from(page: StoredPage) -> Self {
        let StoredPage { job, content, first_seen_at, changed_at, seen_at } = page;
        Self {
            id: content.id,
            job_id: job,
            url: content.url,
            status: content.status,
            content_type: content.content_type,
            depth: content.depth,
            title: content.title,
            text: content.text,
            links: content.links,
            metadata: content.metadata,
            fields: content.fields,
            content_hash: content.content_hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            etag: content.etag,
            last_modified: content.last_modified,
            first_seen_at,
            changed_at,
            seen_at,
        }
    }
}

/// Returns a crawled page with all its stored data.
#[utoipa::path(
    get,
    path = "/api/v1/pages/{id}",
    tag = "pages",
    params(("id" = uuid::Uuid, Path, description = "Id of the page")),
    responses((status = 200, description = "The page", body = PageView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_page(call: Call, PathId(id): PathId, _: NoParams) -> Answer<PageView> {
    let id: PageId = id.parse().map_err(|_| {
        let detail = "there is no such page: the id in the path is not a UUID";
        Problem::new(ProblemType::NotFound, detail)
    })?;
    Ok(Json(call.pages.get(call.scope(), id).await?.into()))
}
