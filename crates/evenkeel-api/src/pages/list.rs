//! `GET /api/v1/pages`

use axum::Json;
use evenkeel_core::{JobId, PageId, SearchQuery, Timestamp};
use evenkeel_store::{PageFilter, PageHit, PageNo, PageRequest, SEARCH_LIMIT_MAX};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::snippet::to_html;
use crate::call::{Answer, Call};
use crate::page::{PageQuery, list_answer};
use crate::params::{Params, job_in_query};

/// A page in a list or search result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct PageHitView {
    /// Id of the page.
    #[schema(value_type = uuid::Uuid)]
    pub id: PageId,
    /// Id of the job that crawled the page.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// URL of the page.
    pub url: String,
    /// Title.
    pub title: Option<String>,
    /// Excerpt of the page's text as HTML; search matches are inside `<mark>`.
    pub snippet: String,
    /// Time when the content of the page last changed.
    pub changed_at: Timestamp,
    /// Time when a crawl last fetched the page.
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

list_answer! {
    /// One page of a list of crawled web pages.
    PageList {
        /// The crawled pages: best match first in a search, otherwise oldest first.
        pages: PageHitView
    }
}

/// Filters of the list.
#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PagesQuery {
    /// Full-text search, for example `rust "job scheduler" sched* -python`. A search allows a
    /// `limit` of at most 100.
    q: Option<String>,
    /// Lists only pages that this job crawled, given by id or name.
    job_id: Option<String>,
    /// Lists only pages whose URL starts with this text.
    url_prefix: Option<String>,
}

/// Lists the web pages stored by crawls, with full-text search in titles and texts.
#[utoipa::path(
    get,
    path = "/api/v1/pages",
    tag = "pages",
    params(PageQuery, PagesQuery),
    responses((status = 200, description = "One page of the list", body = PageList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_pages(call: Call, mut params: Params) -> Answer<PageList> {
    let request: PageRequest<PageNo> = PageQuery::take(&mut params);
    let mut query = PagesQuery {
        q: params.text("q"),
        job_id: params.text("job_id"),
        url_prefix: params.text("url_prefix"),
    };
    let job = query.job_id.take();
    let mut filter = read(query, request, &mut params);
    params.finish()?;
    filter.job = job_in_query(&call, job).await?;
    let page = call.pages.list(call.scope(), &filter, request).await?;
    Ok(Json(PageList::new(&call, &request, page, PageHitView::from)))
}

fn read(query: PagesQuery, request: PageRequest<PageNo>, params: &mut Params) -> PageFilter {
    let PagesQuery { q, url_prefix, .. } = query;
    if q.is_some() && request.after.is_some() {
        params.fault("cursor", "cannot be combined with q; use offset");
    }
    if q.is_some() && request.limit > SEARCH_LIMIT_MAX {
        params.fault("limit", format!("is at most {SEARCH_LIMIT_MAX} with q"));
    }
    if q.is_some() && request.offset > SEARCH_OFFSET_MAX {
        let message =
            format!("is at most {SEARCH_OFFSET_MAX} with q; search for more specific words");
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

/// Maximum `offset` of a search, because the store has to find all skipped results as well.
const SEARCH_OFFSET_MAX: u32 = 10_000;
