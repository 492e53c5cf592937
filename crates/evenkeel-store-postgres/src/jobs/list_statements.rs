//! The statements of lists, put together from what leads to jobs and what is asked of them.

use evenkeel_store::{ListIndex, SortBy};

/// All jobs that a route leads to and that pass, if those are few enough; in any case, in the last
/// column, how many rows were looked at.
pub(super) fn gathering(route: ListIndex, most: u32) -> String {
    let (from, looked_at) = statements_of(route);
    let looked_at = looked_at.unwrap_or("SELECT count(*) FROM f");
    let passes = with_status(sql!("list_jobs_passes"));
    timed(&format!(
        "WITH f AS MATERIALIZED (\n{from}), looked_at (n) AS MATERIALIZED (\n{looked_at}),
         c AS MATERIALIZED (SELECT job_no FROM f WHERE (SELECT n FROM looked_at) <= {most})
         SELECT p.*, l.n FROM looked_at l LEFT JOIN (\n{passes}) AS p ON p.passes"
    ))
}

/// The jobs that a statement leads to, and whether they pass.
pub(super) fn walking(from: &str) -> String {
    let passes = with_status(sql!("list_jobs_passes"));
    timed(&format!("WITH c AS MATERIALIZED (\n{from})\n{passes}"))
}

/// How many jobs are in each state but the commonest: whether there may be more than were looked
/// at, the state, the count, and what decides on due jobs with blackouts.
pub(super) fn counting() -> String {
    let routes = [ListIndex::Running, ListIndex::Pending, ListIndex::Paused, ListIndex::Ended];
    let from =
        routes.map(|route| format!("SELECT job_no FROM (\n{}) AS f", statements_of(route).0));
    let looked_at = routes.map(|route| match statements_of(route) {
        (_, Some(looked_at)) => format!("(\n{looked_at})"),
        (from, None) => format!("(SELECT count(*) FROM (\n{from}) AS f)"),
    });
    let counts = with_status(sql!("job_counts"));
    timed(&format!(
        "WITH looked_at (n) AS MATERIALIZED (SELECT greatest({})), c AS MATERIALIZED (\n{})
         SELECT l.n > 10000, p.* FROM looked_at l LEFT JOIN (\n{counts}) AS p ON true",
        looked_at.join(", "),
        from.join(" UNION "),
    ))
}

/// What leads through all jobs in an order, or in that of their creation along a route.
pub(super) fn walked(by: SortBy, route: Option<ListIndex>) -> &'static str {
    match (by, route) {
        (_, Some(ListIndex::Label)) => sql!("list_jobs_by_label"),
        (_, Some(ListIndex::Source)) => sql!("list_jobs_by_source"),
        (_, Some(ListIndex::Target)) => sql!("list_jobs_by_target"),
        (_, Some(ListIndex::Paused)) => sql!("list_jobs_by_paused"),
        (SortBy::Updated, _) => sql!("list_jobs_by_updated"),
        (SortBy::Name, _) => sql!("list_jobs_by_name"),
        (SortBy::Created | SortBy::NextRun, _) => {
            sql!("list_jobs_by_created")
        }
    }
}

/// The statement of a walk, the other way round.
pub(super) fn turned(sql: &str) -> String {
    sql.replace(" > ", " < ").replace(" >= ", " <= ").replace(" ASC", " DESC")
}

/// How many jobs of all tenants are due.
pub(super) fn counting_due() -> String {
    timed(sql!("all_job_counts_due"))
}

fn with_status(sql: &str) -> String {
    let status = sql!("list_jobs_status").trim_end();
    let held = sql!("list_jobs_held").trim_end();
    sql.replace("{status}", status).replace("{held}", held)
}

/// The statement with the time at which it runs: one moment for all of it, so that an index can be
/// searched for it.
fn timed(sql: &str) -> String {
    sql.replace("{now}", "(extract(epoch FROM statement_timestamp()) * 1000000)::int8")
}

/// What leads along a route, and what counts how many rows that looks at, if those are not just
/// what it leads to.
fn statements_of(route: ListIndex) -> (&'static str, Option<&'static str>) {
    match route {
        ListIndex::Running => {
            (sql!("list_jobs_from_running"), Some(sql!("list_jobs_looked_running")))
        }
        ListIndex::Pending => {
            (sql!("list_jobs_from_pending"), Some(sql!("list_jobs_looked_pending")))
        }
        ListIndex::Waiting => {
            (sql!("list_jobs_from_waiting"), Some(sql!("list_jobs_looked_waiting")))
        }
        ListIndex::NextTimes => {
            (sql!("list_jobs_from_next_times"), Some(sql!("list_jobs_looked_next_times")))
        }
        ListIndex::AtRisk => (sql!("list_jobs_from_at_risk"), None),
        ListIndex::Label => (sql!("list_jobs_from_label"), None),
        ListIndex::Source => (sql!("list_jobs_from_source"), None),
        ListIndex::Target => (sql!("list_jobs_from_target"), None),
        ListIndex::Paused => (sql!("list_jobs_from_paused"), None),
        ListIndex::Ended => (sql!("list_jobs_from_ended"), None),
        ListIndex::Name => (sql!("list_jobs_from_name"), None),
        ListIndex::SourcePrefix => (sql!("list_jobs_from_source_prefix"), None),
        ListIndex::All => (sql!("list_jobs_from_all"), None),
    }
}
