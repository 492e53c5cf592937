//! Makes room for a newer time of jobs.

use evenkeel_store::{Now, Supersede};
use rusqlite::{Connection, params};

use crate::attempts::cancel::supersede_all;
use crate::conditions::tell_of_end;
use crate::connection::clock::resolve;
use crate::error::Answer;

pub(crate) fn supersede(connection: &Connection, batch: &[Supersede], now: Now) -> Answer<()> {
    let now = resolve(now);
    let mut look = connection.prepare_cached(sql!("supersede_find"))?;
    for Supersede { job, generation, due } in batch {
        if look.exists(params![job.0, generation, due.as_micros()])?
            && supersede_all(connection, *job, now)?
        {
            tell_of_end(connection, *job)?;
        }
    }
    Ok(())
}
