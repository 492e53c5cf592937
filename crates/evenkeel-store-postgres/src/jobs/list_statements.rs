//! The statements of lists, put together from what leads to jobs and what is asked of them.

use evenkeel_store::{Route, SortBy};

/// All jobs that a route leads to and that pass, if those are few enough; in any case, in the last
/// column, how many rows were looked at.
pub(super) fn gathering(route: Route, most: u32) -> String {
    let (from, looked_at) = statements_of(route);
    let looked_at = looked_at.unwrap_or("SELECT count(*) FROM f");
    let passes = with_status(include_str!("../../queries/list_jobs_passes.sql"));
    timed(&format!(
        "WITH f AS MATERIALIZED (\n{from}), looked_at (n) AS MATERIALIZED (\n{looked_at}),
         c AS MATERIALIZED (SELECT job_no FROM f WHERE (SELECT n FROM looked_at) <= {most})
         SELECT p.*, l.n FROM looked_at l LEFT JOIN (\n{passes}) AS p ON p.passes"
    ))
}

/// The jobs that a statement leads to, and whether they pass.
pub(super) fn walking(from: &str) -> String {
    let passes = with_status(include_str!("../../queries/list_jobs_passes.sql"));
    timed(&format!("WITH c AS MATERIALIZED (\n{from})\n{passes}"))
}

/// How many jobs are in each state but the commonest: whether there may be more than were looked
/// at, the state, the count, and what decides on due jobs with blackouts.
pub(super) fn counting() -> String {
    let routes = [Route::Running, Route::Pending, Route::Paused, Route::Ended];
    let from =
        routes.map(|route| format!("SELECT job_no FROM (\n{}) AS f", statements_of(route).0));
    let looked_at = routes.map(|route| match statements_of(route) {
        (_, Some(looked_at)) => format!("(\n{looked_at})"),
        (from, None) => format!("(SELECT count(*) FROM (\n{from}) AS f)"),
    });
    let counts = with_status(include_str!("../../queries/job_counts.sql"));
    timed(&format!(
        "WITH looked_at (n) AS MATERIALIZED (SELECT greatest({})), c AS MATERIALIZED (\n{})
         SELECT l.n > 10000, p.* FROM looked_at l LEFT JOIN (\n{counts}) AS p ON true",
        looked_at.join(", "),
        from.join(" UNION "),
    ))
}

/// What leads through all jobs in an order, or in that of their creation along a route.
pub(super) fn walked(by: SortBy, route: Option<Route>) -> &'static str {
    match (by, route) {
        (_, Some(Route::Label)) => include_str!("../../queries/list_jobs_by_label.sql"),
        (_, Some(Route::Source)) => include_str!("../../queries/list_jobs_by_source.sql"),
        (_, Some(Route::Target)) => include_str!("../../queries/list_jobs_by_target.sql"),
        (_, Some(Route::Paused)) => include_str!("../../queries/list_jobs_by_paused.sql"),
        (SortBy::Updated, _) => include_str!("../../queries/list_jobs_by_updated.sql"),
        (SortBy::Name, _) => include_str!("../../queries/list_jobs_by_name.sql"),
        (SortBy::Created | SortBy::NextRun, _) => {
            include_str!("../../queries/list_jobs_by_created.sql")
        }
    }
}

/// The statement of a walk, the other way round.
pub(super) fn turned(sql: &str) -> String {
    sql.replace(" > ", " < ").replace(" >= ", " <= ").replace(" ASC", " DESC")
}

/// How many jobs of all tenants are due.
pub(super) fn counting_due() -> String {
    timed(include_str!("../../queries/all_job_counts_due.sql"))
}

fn with_status(sql: &str) -> String {
    let status = include_str!("../../queries/list_jobs_status.sql").trim_end();
    let held = include_str!("../../queries/list_jobs_held.sql").trim_end();
    sql.replace("{status}", status).replace("{held}", held)
}

/// The statement with the time at which it runs: one moment for all of it, so that an index can be
/// searched for it.
fn timed(sql: &str) -> String {
    sql.replace("{now}", "(extract(epoch FROM statement_timestamp()) * 1000000)::int8")
}

/// What leads along a route, and what counts how many rows that looks at, if those are not just
/// what it leads to.
fn statements_of(route: Route) -> (&'static str, Option<&'static str>) {
    match route {
        Route::Running => (
            include_str!("../../queries/list_jobs_from_running.sql"),
            Some(include_str!("../../queries/list_jobs_looked_running.sql")),
        ),
        Route::Pending => (
            include_str!("../../queries/list_jobs_from_pending.sql"),
            Some(include_str!("../../queries/list_jobs_looked_pending.sql")),
        ),
        Route::Waiting => (
            include_str!("../../queries/list_jobs_from_waiting.sql"),
            Some(include_str!("../../queries/list_jobs_looked_waiting.sql")),
        ),
        Route::NextTimes => (
            include_str!("../../queries/list_jobs_from_next_times.sql"),
            Some(include_str!("../../queries/list_jobs_looked_next_times.sql")),
        ),
        Route::AtRisk => (include_str!("../../queries/list_jobs_from_at_risk.sql"), None),
        Route::Label => (include_str!("../../queries/list_jobs_from_label.sql"), None),
        Route::Source => (include_str!("../../queries/list_jobs_from_source.sql"), None),
        Route::Target => (include_str!("../../queries/list_jobs_from_target.sql"), None),
        Route::Paused => (include_str!("../../queries/list_jobs_from_paused.sql"), None),
        Route::Ended => (include_str!("../../queries/list_jobs_from_ended.sql"), None),
        Route::Name => (include_str!("../../queries/list_jobs_from_name.sql"), None),
        Route::SourcePrefix => {
            (include_str!("../../queries/list_jobs_from_source_prefix.sql"), None)
        }
        Route::All => (include_str!("../../queries/list_jobs_from_all.sql"), None),
    }
}
