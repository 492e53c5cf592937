//! Ends active runs of a job because a newer run replaces them.

use evenkeel_store::{Now, Supersede};
use rusqlite::{Connection, params};

use crate::attempts::cancel::supersede_all;
use crate::conditions::mark_after_failure;
use crate::connection::clock::resolve;
use crate::error::Answer;

pub(crate) fn supersede(connection: &Connection, batch: &[Supersede], now: Now) -> Answer<()> {
    let now = resolve(now);
    let mut find = connection.prepare_cached(sql!("supersede_find"))?;
    for Supersede { job, generation, due } in batch {
        if find.exists(params![job.0, generation, due.as_micros()])?
            && supersede_all(connection, *job, now)?
        {
            mark_after_failure(connection, *job)?;
        }
    }
    Ok(())
}
