//! New jobs, some of which are not to be there twice.

use std::collections::HashMap;

use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{DedupClaim, NewJob, Registered};

use super::order::read_clock;
use super::register::find_names;
use crate::dedup::Keys;
use crate::error::Tried;
use crate::pool::Connection;

/// What each job of a batch will be answered: `None` if it is to be made.
pub(super) type Fates = Vec<Option<Registered>>;

/// Has one of them a key?
pub(super) fn are_keyed(jobs: &[NewJob]) -> bool {
    jobs.iter().any(|job| job.about.dedup.is_some())
}

/// Who is kept out for certain, without a lock: however many ask for what is there, they wait for
/// nobody.
pub(super) async fn kept_out(
    connection: &Connection,
    tenant: i32,
    jobs: &[NewJob],
    now: Option<i64>,
) -> Tried<Fates> {
    let now = clock(connection, now).await?;
    let wanted = wanted(jobs, now);
    let keys = wanted.iter().flatten().map(|wanted| wanted.key);
    let keys = Keys::look(connection, tenant, keys).await?;
    let fate = |wanted: &Option<DedupClaim>| {
        let held = keys.kept_out_by(wanted.as_ref()?, now)?;
        Some(Registered::Duplicate(held.job))
    };
    Ok(wanted.iter().map(fate).collect())
}

/// Locks the keys that jobs want and decides which are made, one after the other. Those that are
/// have their keys then; that is to be written once they are made.
pub(super) async fn decide(
    connection: &Connection,
    tenant: i32,
    jobs: &[NewJob],
    now: Option<i64>,
) -> Tried<(Fates, Keys)> {
    let locked = wanted(jobs, Timestamp::from_micros(now.unwrap_or_default()));
    let locked = locked.iter().flatten().map(|wanted| (wanted.key, wanted.job));
    let mut keys = Keys::lock(connection, tenant, locked, now).await?;
    let now = clock(connection, now).await?;
    let mut names = find_names(connection, tenant, jobs).await?;
    let mut fates = Vec::with_capacity(jobs.len());
    for (job, wanted) in jobs.iter().zip(wanted(jobs, now)) {
        let held = wanted.as_ref().and_then(|wanted| keys.kept_out_by(wanted, now));
        if let Some(held) = held {
            fates.push(Some(Registered::Duplicate(held.job)));
            continue;
        }
        let name = name_of(job);
        if let Some(other) = name.and_then(|name| names.get(&name)) {
            fates.push(Some(Registered::NameTaken(*other)));
            continue;
        }
        names.extend(name.map(|name| (name, job.id)));
        wanted.iter().for_each(|wanted| keys.take(wanted));
        fates.push(None);
    }
    Ok((fates, keys))
}

async fn clock(connection: &Connection, now: Option<i64>) -> Tried<Timestamp> {
    let now = match now {
        Some(now) => now,
        None => read_clock(connection, None).await?,
    };
    Ok(Timestamp::from_micros(now))
}

/// A name and a configuration.
pub(super) type Name<'a> = (&'a str, &'a str);

pub(super) fn name_of(job: &NewJob) -> Option<Name<'_>> {
    let configuration = job.about.configuration.as_deref().unwrap_or_default();
    Some((job.about.name.as_deref()?, configuration))
}

/// Who has names.
pub(super) type Names<'a> = HashMap<Name<'a>, JobId>;

fn wanted(jobs: &[NewJob], now: Timestamp) -> Vec<Option<DedupClaim>> {
    jobs.iter().map(|job| DedupClaim::by_new(job, now)).collect()
}
