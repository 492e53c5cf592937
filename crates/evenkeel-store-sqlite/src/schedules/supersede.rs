//! Ends active runs of a job because a newer run replaces them.

use evenkeel_core::Timestamp;
use evenkeel_store::Supersede;
use rusqlite::Connection;

use crate::attempts::cancel::supersede_all;
use crate::conditions::mark_after_failure;
use crate::connection::RunPrepared;
use crate::error::Answer;

pub(crate) fn supersede(
    connection: &Connection,
    batch: &[Supersede],
    now: Timestamp,
) -> Answer<()> {
    let mut find = connection.prepare_cached(sql!("supersede_find"))?;
    for Supersede { job, generation, due } in batch {
        if find.has_row(&[job, generation, due])? && supersede_all(connection, *job, now)? {
            mark_after_failure(connection, *job)?;
        }
    }
    Ok(())
}
