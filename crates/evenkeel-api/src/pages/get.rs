//! `GET /api/v1/pages/{id}`

use axum::Json;
use axum::extract::State;
use evenkeel_core::{JobId, PageId, Timestamp};
use evenkeel_store::StoredPage;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::params::{NoParams, PathId};
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// A page as a crawl found it.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct PageView {
    /// Its id.
    #[schema(value_type = uuid::Uuid)]
    pub id: PageId,
    /// The job that crawled it.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// Where it is.
    pub url: String,
    /// The status its server answered with.
    pub status: u16,
    /// Its media type.
    pub content_type: String,
    /// How many links from the start.
    pub depth: u16,
    /// Its title.
    pub title: Option<String>,
    /// Its text, without markup.
    pub text: String,
    /// Where it links to.
    pub links: Vec<String>,
    /// What its head says of it.
    #[schema(value_type = Object)]
    pub metadata: Value,
    /// What the job's selectors found.
    #[schema(value_type = Object)]
    pub fields: Value,
    /// SHA-256 of its content, in hexadecimal.
    pub content_hash: String,
    /// Its server's mark of this version.
    pub etag: Option<String>,
    /// When its server says it was changed.
    pub last_modified: Option<String>,
    /// When it was first kept.
    #[schema(value_type = String, format = DateTime)]
    pub first_seen_at: Timestamp,
    /// When its content last changed.
    #[schema(value_type = String, format = DateTime)]
    pub changed_at: Timestamp,
    /// When a crawl last saw it.
    #[schema(value_type = String, format = DateTime)]
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

/// One page with all that was kept of it.
#[utoipa::path(
    get,
    path = "/api/v1/pages/{id}",
    operation_id = "get_page",
    tag = "pages",
    params(("id" = uuid::Uuid, Path, description = "Which page")),
    responses((status = 200, description = "The page", body = PageView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
) -> Result<Json<PageView>, Problem> {
    let id: PageId = id.parse().map_err(|_| {
        let detail = "there is no such page: the id in the path is not a UUID";
        Problem::new(ProblemType::NotFound, detail)
    })?;
    Ok(Json(app.pages.get(&caller.scope, id).await?.into()))
}
