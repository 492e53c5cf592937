//! The SQL statements of this store; [`evenkeel_store::statements`] describes the format of the
//! files.

use std::sync::LazyLock;

use evenkeel_store::statements::{Placeholder, Statements};

static STATEMENTS: LazyLock<Statements> = LazyLock::new(|| {
    let files = [
        include_str!("../queries/access.sql"),
        include_str!("../queries/activity.sql"),
        include_str!("../queries/attempts.sql"),
        include_str!("../queries/balance_scores.sql"),
        include_str!("../queries/cancel.sql"),
        include_str!("../queries/claim.sql"),
        include_str!("../queries/claim_windows.sql"),
        include_str!("../queries/commands.sql"),
        include_str!("../queries/conditions.sql"),
        include_str!("../queries/dead_letters.sql"),
        include_str!("../queries/dedup.sql"),
        include_str!("../queries/due_jobs.sql"),
        include_str!("../queries/events.sql"),
        include_str!("../queries/finish.sql"),
        include_str!("../queries/fire.sql"),
        include_str!("../queries/fire_delayed.sql"),
        include_str!("../queries/job_counts.sql"),
        include_str!("../queries/job_search.sql"),
        include_str!("../queries/jobs.sql"),
        include_str!("../queries/limits.sql"),
        include_str!("../queries/list_jobs.sql"),
        include_str!("../queries/load_profiles.sql"),
        include_str!("../queries/nodes.sql"),
        include_str!("../queries/notes.sql"),
        include_str!("../queries/override.sql"),
        include_str!("../queries/owned.sql"),
        include_str!("../queries/pages.sql"),
        include_str!("../queries/prune.sql"),
        include_str!("../queries/purge.sql"),
        include_str!("../queries/queue.sql"),
        include_str!("../queries/rebalance.sql"),
        include_str!("../queries/register.sql"),
        include_str!("../queries/requests.sql"),
        include_str!("../queries/requeue.sql"),
        include_str!("../queries/run_stats.sql"),
        include_str!("../queries/secrets.sql"),
        include_str!("../queries/store.sql"),
        include_str!("../queries/supersede.sql"),
        include_str!("../queries/targets.sql"),
        include_str!("../queries/trigger.sql"),
    ];
    Statements::read(&files, Placeholder::Dollar, &evenkeel_store::codes())
});

/// Returns the SQL statement called `name`; use it through [`sql!`].
pub(crate) fn statement(name: &str) -> &'static str {
    STATEMENTS.get(name)
}

/// Returns the text of a SQL statement. Each call site of the macro looks its statement up only
/// once.
macro_rules! sql {
    ($name:literal) => {{
        static TEXT: std::sync::LazyLock<&'static str> =
            std::sync::LazyLock::new(|| $crate::sql::statement($name));
        *TEXT
    }};
}

#[cfg(test)]
mod tests {
    use evenkeel_store_testkit::used_statements;

    use super::*;

    #[test]
    fn every_statement_exists_and_is_used() {
        let defined = STATEMENTS.names().map(str::to_owned).collect();
        assert_eq!(used_statements(env!("CARGO_MANIFEST_DIR")), defined);
    }
}
