//! Explains why a field that the server shows is refused in a job document.

/// Fields that the server shows with a job, but that clients cannot set.
const SET_BY_THE_SERVER: [&str; 38] = [
    "average_duration_ms", "average_good_duration", "cancelled_at", "completed_at", "condition",
    "condition_reason", "consecutive_failures", "created_at", "created_by", "current_retry_count",
    "deduplicated", "duration_deviation_ms", "effective_priority", "error_message",
    "execution_count", "failure_count", "generation", "id", "is_paused", "last_end_at",
    "last_good_end_at", "last_good_start_at", "last_run_at", "last_scheduled_at", "last_start_at",
    "lock_acquired_at", "lock_token", "next_run_at", "next_scheduled_at", "number", "pause_note",
    "paused_at", "run_count", "started_at", "status", "still_running", "updated_at", "warnings",
];

/// True if only the server sets the field.
pub fn is_set_by_the_server(field: &str) -> bool {
    SET_BY_THE_SERVER.contains(&field)
}

/// Returns why a field is refused, if it is a field that only the server sets.
pub(super) fn reason(field: &str) -> Option<String> {
    is_set_by_the_server(field).then(|| "is set by the server; leave it out".into())
}
