//! Reads all attempts of given runs.

use evenkeel_store::RunAttempt;
use tokio_postgres::Row;

use super::list::read_attempt;
use crate::error::Tried;
use crate::rows::maybe_time;

pub(super) fn read_run_attempt(row: &Row) -> Tried<RunAttempt> {
    Ok(RunAttempt { attempt: read_attempt(row)?, due: maybe_time(row, "due")? })
}
