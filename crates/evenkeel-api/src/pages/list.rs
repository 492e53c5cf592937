//! `GET /api/v1/pages`

use axum::Json;
use evenkeel_core::{JobId, PageId, SearchQuery, Timestamp};
use evenkeel_store::{PageFilter, PageHit, PageNo, PageRequest, SEARCH_LIMIT_MAX};

use super::snippet::to_html;
use crate::call::{Answer, Call};
use crate::page::{PageQuery, list_answer};
use crate::params::{Params, job_in_query};
use crate::view::view;

view! {
    /// A page in a list or search result.
    PageHitView::new(hit: PageHit) {}

    /// Id of the page.
    id: PageId as uuid::Uuid = hit.id,
    /// Id of the job that crawled the page.
    job_id: JobId as uuid::Uuid = hit.job,
    /// URL of the page.
    url: String = hit.url,
    /// Title.
    title: Option<String> = hit.title,
    /// Excerpt of the page's text as HTML; search matches are inside `<mark>`.
    snippet: String = to_html(&hit.snippet),
    /// Time when the content of the page last changed.
    changed_at: Timestamp = hit.changed_at,
    /// Time when a crawl last fetched the page.
    seen_at: Timestamp = hit.seen_at,
}

list_answer! {
    /// One page of a list of crawled web pages.
    PageList {
        /// The crawled pages: best match first in a search, otherwise oldest first.
        pages: PageHitView
    }
}

/// Lists the web pages stored by crawls, with full-text search in titles and texts.
#[utoipa::path(
    get, path = "/api/v1/pages", tag = "pages",
    params(
        PageQuery,
        ("q" = Option<String>, Query,
         description = "Full-text search, for example `rust \"job scheduler\" sched* -python`. A search allows a\n\
            `limit` of at most 100."),
        ("job_id" = Option<String>, Query,
         description = "Lists only pages that this job crawled, given by id or name."),
        ("url_prefix" = Option<String>, Query,
         description = "Lists only pages whose URL starts with this text."),
    ),
    responses((status = 200, description = "One page of the list", body = PageList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_pages(call: Call, mut params: Params) -> Answer<PageList> {
    let request: PageRequest<PageNo> = PageQuery::take(&mut params);
    let (q, job) = (params.text("q"), params.text("job_id"));
    let url_prefix = params.text("url_prefix");
    let query = q.and_then(|q| read_search(&q, request, &mut params));
    params.finish()?;
    let filter = PageFilter { query, job: job_in_query(&call, job).await?, url_prefix };
    let page = call.pages.list(call.scope(), &filter, request).await?;
    Ok(Json(PageList::new(&call, &request, page, PageHitView::new)))
}

fn read_search(q: &str, request: PageRequest<PageNo>, params: &mut Params) -> Option<SearchQuery> {
    if request.after.is_some() {
        params.fault("cursor", "cannot be combined with q; use offset");
    }
    if request.limit > SEARCH_LIMIT_MAX {
        params.fault("limit", format!("is at most {SEARCH_LIMIT_MAX} with q"));
    }
    if request.offset > SEARCH_OFFSET_MAX {
        let message =
            format!("is at most {SEARCH_OFFSET_MAX} with q; search for more specific words");
        params.fault("offset", message);
    }
    SearchQuery::parse(q).map_err(|error| params.fault("q", error.to_string())).ok()
}

/// Maximum `offset` of a search, because the store has to find all skipped results as well.
const SEARCH_OFFSET_MAX: u32 = 10_000;
