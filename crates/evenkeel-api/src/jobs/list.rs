//! `GET /api/v1/jobs`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::{FILTER_NAMES, METADATA_PREFIX, read_filter, read_sort};
use evenkeel_store::{JobCursor, JobFilter, JobSort, PageRequest};
use futures::future::try_join;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::JobView;
use crate::auth::Caller;
use crate::page::PageQuery;
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

/// A part of the list of jobs.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct JobList {
    /// What is on it.
    pub jobs: Vec<JobView>,
    /// How many there are on all pages.
    pub total: u64,
    /// Is that only roughly right?
    pub total_is_estimate: bool,
    /// How many were asked for.
    pub limit: u32,
    /// How many were left out first.
    pub offset: u32,
    /// The `cursor` of the next page, if there is one.
    pub next_cursor: Option<String>,
}

/// Which jobs to list, and in which order.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes the parameters, which are read by their names")]
pub(crate) struct JobQuery {
    /// Those in this state.
    #[param(
        pattern = "^(pending|scheduled|running|paused|completed|failed|cancelled)$",
        example = "running"
    )]
    status: Option<String>,
    /// Those in this condition, as they were judged a moment ago.
    #[param(pattern = "^(OK|WARNING|ERROR)$", example = "ERROR")]
    condition: Option<String>,
    /// Those with this executor.
    #[param(example = "http")]
    executor: Option<String>,
    /// Those in this lane.
    #[param(pattern = "^(critical|standard|batch)$", example = "batch")]
    lane: Option<String>,
    /// Those whose name starts with this.
    #[param(example = "news-")]
    name_prefix: Option<String>,
    /// Those about this source.
    #[param(example = "news-site")]
    source_id: Option<String>,
    /// Those about a source whose id starts with this.
    #[param(example = "news-")]
    source_prefix: Option<String>,
    /// Those that name the target with this number.
    #[param(minimum = 1, example = 40)]
    target: Option<i64>,
    /// Those whose metadata have this value at the key `KEY`, for any key at their top: a text as
    /// it is, a number or truth value as JSON writes it. May be given for several keys.
    #[param(rename = "metadata.KEY", max_length = 255, example = "high")]
    metadata: Option<String>,
    /// Those whose next run is at this moment or later.
    #[param(format = DateTime, example = "2026-12-01T09:00:00Z")]
    next_run_after: Option<String>,
    /// Those whose next run is before this moment.
    #[param(format = DateTime, example = "2026-12-01T10:00:00Z")]
    next_run_before: Option<String>,
    /// The tenant of the token, which is the only one there is.
    tenant: Option<String>,
    /// The order; with `-` before it, the largest first. By `name` or `next_run_at`, jobs without
    /// one are left out.
    #[param(
        pattern = "^-?(created_at|updated_at|name|next_run_at)$",
        default = "created_at",
        example = "-updated_at"
    )]
    sort: Option<String>,
}

impl JobQuery {
    /// Takes filter and order.
    fn take(params: &mut Params, tenant: &str) -> (JobFilter, JobSort) {
        let mut filter = JobFilter::default();
        let mut said: Vec<(String, String)> = Vec::new();
        for name in FILTER_NAMES {
            said.extend(params.text(name).map(|value| (name.to_owned(), value)));
        }
        said.extend(params.starting(METADATA_PREFIX, "metadata.KEY"));
        for (name, value) in said {
            if let Err(fault) = read_filter(&mut filter, &name, &value) {
                params.add_fault(fault);
            }
        }
        if params.text("tenant").is_some_and(|named| named != tenant) {
            params.fault("tenant", "is not the token's; jobs of others are not shown");
        }
        let sort = params.text("sort").map_or(Ok(JobSort::default()), |sort| read_sort(&sort));
        let sort = sort.unwrap_or_else(|fault| {
            params.add_fault(fault);
            JobSort::default()
        });
        (filter, sort)
    }
}

/// The jobs that pass all filters.
///
/// If an index leads to at most 10,000 jobs, `total` is exact; else it is an estimate, and a page may
/// have fewer jobs than were asked for and still a `next_cursor`. Without filters `total` is a kept
/// count. A cursor goes on in the list with the same filters and order.
#[utoipa::path(
    get,
    path = "/api/v1/jobs",
    operation_id = "list_jobs",
    tag = "jobs",
    params(PageQuery, JobQuery),
    responses((status = 200, description = "A part of the list", body = JobList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<JobList>, Problem> {
    let request: PageRequest<JobCursor> = PageQuery::take(&mut params);
    let (filter, sort) = JobQuery::take(&mut params, &caller.tenant);
    params.finish()?;
    let listed = app.jobs.list(&caller.scope, &filter, sort, request);
    let (page, now) = try_join(listed, app.jobs.now()).await?;
    let executors = app.jobs.executors().catalog();
    Ok(Json(JobList {
        jobs: page
            .items
            .into_iter()
            .map(|job| {
                let effective = app.jobs.effective_if_due(&job, now);
                JobView::new(job, now, &app.run_ids)
                    .waiting_as(effective)
                    .for_role(caller.scope.role, executors)
            })
            .collect(),
        total: page.total,
        total_is_estimate: page.total_is_estimate,
        limit: request.limit,
        offset: request.offset,
        next_cursor: app.cursor(page.next),
    }))
}
