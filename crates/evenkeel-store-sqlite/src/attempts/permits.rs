//! Permits of concurrency limits decide which of the chosen attempts may start.

use std::collections::BTreeSet;

use evenkeel_core::AttemptKey;
use evenkeel_core::limit::{Admission, Limit, LimitKey, Limits, PermitCounts};
use rusqlite::Connection;

use super::choose::Candidate;
use crate::connection::{RunPrepared, RunSql};
use crate::error::Answer;

/// The permits of concurrency limits that one claim gives out.
pub(super) struct Permits<'a> {
    connection: &'a Connection,
    limits: &'a Limits,
    ledger: PermitCounts,
    swept: BTreeSet<LimitKey>,
}

impl<'a> Permits<'a> {
    pub(super) fn new(connection: &'a Connection, limits: &'a Limits) -> Self {
        Self { connection, limits, ledger: PermitCounts::default(), swept: BTreeSet::new() }
    }

    /// Gives the attempt a permit of each of its limits, or moves it to the queue of a full limit.
    /// The caller must start an attempt that got permits before it calls this function again.
    pub(super) fn admit(&mut self, candidate: &Candidate) -> Answer<Option<Vec<LimitKey>>> {
        let limits = candidate.limits_under(self.limits);
        for limit in &limits {
            if !self.ledger.knows(limit.key) {
                self.count(limit.key)?;
            }
        }
        loop {
            match self.ledger.admit(&limits) {
                Admission::Start => break,
                // The limit may seem full because some permits belong to finished attempts.
                Admission::Park(full) if self.swept.insert(full.key) => {
                    self.connection.run(sql!("claim_permit_sweep"), &[&full.key])?;
                    self.count(full.key)?;
                }
                Admission::Park(full) => {
                    move_to_limit_queue(self.connection, candidate.key, full)?;
                    return Ok(None);
                }
                // The writer runs one claim at a time, so all permits that were given out are
                // counted.
                Admission::Defer => return Ok(None),
            }
        }
        let mut take = self.connection.prepare_cached(sql!("claim_permit_take"))?;
        for limit in &limits {
            take.run(&[&limit.key, &candidate.key])?;
        }
        Ok(Some(limits.into_iter().map(|limit| limit.key).collect()))
    }

    /// Moves attempts whose concurrency limit is full to the queue of that limit.
    pub(super) fn clear(&self, front: &[Candidate]) -> Answer<()> {
        for candidate in front {
            let is_full = |limit: &Limit| self.ledger.running(limit.key) >= Some(limit.most);
            if let Some(full) = candidate.limits_under(self.limits).into_iter().find(is_full) {
                move_to_limit_queue(self.connection, candidate.key, full)?;
            }
        }
        Ok(())
    }

    fn count(&mut self, key: LimitKey) -> Answer<()> {
        let running = self.connection.value(sql!("claim_permit_count"), &[&key])?;
        self.ledger.note(key, Some(running));
        Ok(())
    }
}

fn move_to_limit_queue(connection: &Connection, run: AttemptKey, full: Limit) -> Answer<()> {
    connection.run(sql!("claim_to_limit_queue"), &[&run, &full.key.queue_pool(), &full.most])
}
