//! `GET /api/v1/jobs`

use axum::Json;
use evenkeel_commands::{FILTER_NAMES, METADATA_PREFIX, read_filter, read_sort};
use evenkeel_core::JobId;
use evenkeel_store::{JobCursor, JobFilter, JobSort, PageRequest, RECENT_RUNS_MAX};
use futures::future::try_join;
use utoipa::IntoParams;

use super::JobView;
use crate::call::{Answer, Call};
use crate::page::{PageQuery, list_answer};
use crate::params::Params;
use crate::runs::RecentRunView;

list_answer! {
    /// One page of jobs.
    JobList {
        /// The jobs.
        jobs: JobView
    }
}

/// Filters and order of the list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents the parameters, which are read by name")]
pub(crate) struct JobQuery {
    /// Lists only jobs with this status.
    #[param(
        pattern = "^(pending|scheduled|running|paused|completed|failed|cancelled)$",
        example = "running"
    )]
    status: Option<String>,
    /// Lists only jobs in this condition, as of the last evaluation.
    #[param(pattern = "^(OK|WARNING|ERROR)$", example = "ERROR")]
    condition: Option<String>,
    /// Lists only jobs with this executor.
    #[param(example = "http")]
    executor: Option<String>,
    /// Lists only jobs in this lane.
    #[param(pattern = "^(critical|standard|batch)$", example = "batch")]
    lane: Option<String>,
    /// Lists only jobs whose name starts with this text.
    #[param(example = "news-")]
    name_prefix: Option<String>,
    /// Lists only jobs with this `source_id`.
    #[param(example = "news-site")]
    source_id: Option<String>,
    /// Lists only jobs whose `source_id` starts with this text.
    #[param(example = "news-")]
    source_prefix: Option<String>,
    /// Lists only jobs with this target number.
    #[param(minimum = 1, example = 40)]
    target: Option<i64>,
    /// Lists only jobs whose metadata have this value under the top-level key `KEY`. Strings are
    /// written without quotes; numbers and booleans are written as in JSON. The parameter can be
    /// repeated with other keys.
    #[param(rename = "metadata.KEY", max_length = 255, example = "high")]
    metadata: Option<String>,
    /// Lists only jobs whose next run time is at or after this time.
    #[param(format = DateTime, example = "2026-12-01T09:00:00Z")]
    next_run_after: Option<String>,
    /// Lists only jobs whose next run time is before this time.
    #[param(format = DateTime, example = "2026-12-01T10:00:00Z")]
    next_run_before: Option<String>,
    /// Lists only jobs whose name, description, URL, source, target or metadata contain every word
    /// of this text, in upper or lower case. A word of 3 or more characters is found anywhere, a
    /// shorter word only where a word begins. Credentials and query values of URLs are not searched.
    /// New and changed jobs are found within seconds, most at once.
    #[param(max_length = 256, example = "forum example.com")]
    q: Option<String>,
    /// Tenant whose jobs are listed; must be the tenant of the token.
    tenant: Option<String>,
    /// Sort key of the list; a leading `-` sorts in descending order. Sorting by `name` or
    /// `next_run_at` leaves out jobs that have no name or no next run.
    #[param(
        pattern = "^-?(created_at|updated_at|name|next_run_at)$",
        default = "created_at",
        example = "-updated_at"
    )]
    sort: Option<String>,
    /// Number of newest runs that the list shows of each job, in `recent_runs`; 0 shows none.
    #[param(minimum = 0, maximum = 20, default = 0, example = 10)]
    recent_runs: Option<u32>,
}

impl JobQuery {
    fn take(params: &mut Params, tenant: &str) -> (JobFilter, JobSort) {
        let mut filter = JobFilter::default();
        let mut given: Vec<(String, String)> = Vec::new();
        for name in FILTER_NAMES {
            given.extend(params.text(name).map(|value| (name.to_owned(), value)));
        }
        given.extend(params.starting(METADATA_PREFIX, "metadata.KEY"));
        for (name, value) in given {
            if let Err(fault) = read_filter(&mut filter, &name, &value) {
                params.add_fault(fault);
            }
        }
        if params.text("tenant").is_some_and(|named| named != tenant) {
            params.fault(
                "tenant",
                "is not the tenant of the token; jobs of other tenants are not shown",
            );
        }
        let sort = params.text("sort").map_or(Ok(JobSort::default()), |sort| read_sort(&sort));
        let sort = sort.unwrap_or_else(|fault| {
            params.add_fault(fault);
            JobSort::default()
        });
        (filter, sort)
    }
}

/// Lists the jobs that match all filters.
///
/// `total` is exact if an index narrows the list to at most 10,000 jobs. For larger lists `total`
/// is an estimate, and a page may have fewer jobs than `limit` although `next_cursor` is set.
/// Without filters, `total` is a count that the store maintains. A cursor is only valid with the
/// filters and the order of the request that returned it.
#[utoipa::path(
    get, path = "/api/v1/jobs", tag = "jobs",
    params(PageQuery, JobQuery),
    responses((status = 200, description = "One page of the list", body = JobList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_jobs(call: Call, mut params: Params) -> Answer<JobList> {
    let request: PageRequest<JobCursor> = PageQuery::take(&mut params);
    let (filter, sort) = JobQuery::take(&mut params, &call.caller.tenant);
    let each = params.number("recent_runs", 0..=RECENT_RUNS_MAX).unwrap_or_default();
    params.finish()?;
    let listed = call.store.list_jobs(call.scope(), &filter, sort, request);
    let (page, now) = try_join(listed, call.store.now()).await?;
    let ids: Vec<JobId> = page.items.iter().map(|job| job.id).collect();
    let mut recent = call.runs.recent(call.scope(), &ids, each).await?;
    let executors = call.jobs.executors().catalog();
    Ok(Json(JobList::new(&call, &request, page, |job| {
        let effective = call.jobs.priority_from_row(&job, now);
        let runs = recent.remove(&job.id).unwrap_or_default();
        let runs = runs.into_iter().map(|run| RecentRunView::new(run, &call.run_ids));
        let view = JobView::new(job, now, &call.run_ids)
            .waiting_as(effective)
            .for_role(call.scope().role, executors);
        JobView { recent_runs: (each > 0).then(|| runs.collect()), ..view }
    })))
}
