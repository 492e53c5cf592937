//! Fields that the server shows with a job, but that a job document must not contain.

/// Fields that the server shows with a job, but that clients cannot set.
const SET_BY_THE_SERVER: [&str; 39] = [
    "average_duration_ms", "average_good_duration", "cancelled_at", "completed_at", "condition",
    "condition_reason", "consecutive_failures", "created_at", "created_by", "current_retry_count",
    "deduplicated", "duration_deviation_ms", "effective_priority", "error_message",
    "execution_count", "failure_count", "generation", "id", "is_paused", "last_end_at",
    "last_good_end_at", "last_good_start_at", "last_run_at", "last_scheduled_at", "last_start_at",
    "lock_acquired_at", "lock_token", "next_run_at", "next_scheduled_at", "number", "pause_note",
    "paused_at", "recent_runs", "run_count", "started_at", "status", "still_running", "updated_at",
    "warnings",
];

pub fn is_set_by_the_server(field: &str) -> bool {
    SET_BY_THE_SERVER.contains(&field)
}
