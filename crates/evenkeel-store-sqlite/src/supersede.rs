//! Makes room for a newer time of jobs.

use evenkeel_core::JobNo;
use evenkeel_core::run::Outcome;
use evenkeel_store::Now;
use rusqlite::Connection;

use crate::clock::resolve;
use crate::delete::end_all;
use crate::error::Answer;

pub(crate) fn supersede(connection: &Connection, jobs: &[JobNo], now: Now) -> Answer<()> {
    let now = resolve(now);
    for job in jobs {
        end_all(connection, *job, Outcome::Superseded, now)?;
    }
    Ok(())
}
