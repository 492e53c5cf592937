//! `GET /api/v1/pages`

use axum::Json;
use axum::extract::State;
use evenkeel_core::{JobId, PageId, SearchQuery, Timestamp};
use evenkeel_store::{PageFilter, PageHit, PageNo, PageRequest, SEARCH_LIMIT_MAX};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::snippet::to_html;
use crate::auth::Caller;
use crate::page::PageQuery;
use crate::params::{Params, job_in_query};
use crate::problem::Problem;
use crate::state::App;

/// A page that was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct PageHitView {
    /// Its id.
    #[schema(value_type = uuid::Uuid)]
    pub id: PageId,
    /// The job that crawled it.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// Where it is.
    pub url: String,
    /// Its title.
    pub title: Option<String>,
    /// A piece of its text as HTML; what was looked for stands in `<mark>`.
    pub snippet: String,
    /// When its content last changed.
    #[schema(value_type = String, format = DateTime)]
    pub changed_at: Timestamp,
    /// When a crawl last saw it.
    #[schema(value_type = String, format = DateTime)]
    pub seen_at: Timestamp,
}

impl From<PageHit> for PageHitView {
    fn from(hit: PageHit) -> Self {
        Self {
            id: hit.id,
            job_id: hit.job,
            url: hit.url,
            title: hit.title,
            snippet: to_html(&hit.snippet),
            changed_at: hit.changed_at,
            seen_at: hit.seen_at,
        }
    }
}

/// A part of the list of pages.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct PageList {
    /// What is on it: best first if something was looked for, else oldest first.
    pub pages: Vec<PageHitView>,
    /// How many there are on all pages.
    pub total: u64,
    /// Is that only roughly right?
    pub total_is_estimate: bool,
    /// How many were asked for.
    pub limit: u32,
    /// How many were left out first.
    pub offset: u32,
    /// The `cursor` of the next page, if there is one. A search has none: it goes on by `offset`.
    pub next_cursor: Option<String>,
}

/// Which pages to list.
#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PagesQuery {
    /// Those with these words: `rust "job scheduler" sched* -python`. With it, `limit` is at most
    /// 100.
    q: Option<String>,
    /// Those of this job (its id or name).
    job_id: Option<String>,
    /// Those whose address starts with this.
    url_prefix: Option<String>,
}

/// The pages that crawls have kept, with a search over their titles and texts.
#[utoipa::path(
    get,
    path = "/api/v1/pages",
    operation_id = "list_pages",
    tag = "pages",
    params(PageQuery, PagesQuery),
    responses((status = 200, description = "A part of the list", body = PageList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<PageList>, Problem> {
    let request: PageRequest<PageNo> = PageQuery::take(&mut params);
    let mut query = PagesQuery {
        q: params.text("q"),
        job_id: params.text("job_id"),
        url_prefix: params.text("url_prefix"),
    };
    let job = query.job_id.take();
    let mut filter = read(query, request, &mut params);
    params.finish()?;
    filter.job = job_in_query(&app, &caller, job).await?;
    let page = app.pages.list(&caller.scope, &filter, request).await?;
    Ok(Json(PageList {
        pages: page.items.into_iter().map(PageHitView::from).collect(),
        total: page.total,
        total_is_estimate: page.total_is_estimate,
        limit: request.limit,
        offset: request.offset,
        next_cursor: app.cursor(page.next),
    }))
}

fn read(query: PagesQuery, request: PageRequest<PageNo>, params: &mut Params) -> PageFilter {
    let PagesQuery { q, url_prefix, .. } = query;
    if q.is_some() && request.after.is_some() {
        params.fault("cursor", "goes with no search; go on with offset");
    }
    if q.is_some() && request.limit > SEARCH_LIMIT_MAX {
        params.fault("limit", format!("of a search is at most {SEARCH_LIMIT_MAX}"));
    }
    if q.is_some() && request.offset > SEARCH_OFFSET_MAX {
        let message = format!("of a search is at most {SEARCH_OFFSET_MAX}; search for more words");
        params.fault("offset", message);
    }
    let words = q.and_then(|q| match SearchQuery::parse(&q) {
        Ok(query) => Some(query),
        Err(error) => {
            params.fault("q", error.to_string());
            None
        }
    });
    PageFilter { query: words, job: None, url_prefix }
}

/// Beyond this nobody looks, and every page of a search costs what all before it cost.
const SEARCH_OFFSET_MAX: u32 = 10_000;
