//! Waiting rooms of limits, and the places that nobody has any more.

mod rooms;

use std::collections::BTreeMap;

use async_trait::async_trait;
use evenkeel_core::limit::{LimitKey, LimitScope, Own};
use evenkeel_store::{
    LimitStore, LimitTerms, Now, Permit, RELEASED_MAX, ReleaseStep, Released, StoreError,
};

use crate::PostgresStore;
use crate::columns::{KeyColumns, attempt, count, get, key, micros, sequence};
use crate::error::Tried;
use crate::pool::Connection;
use rooms::Look;

/// Whoever ends looks past so many in a room that are held up by another limit as well,
const HELD_UP: u32 = 50;
/// and then so often at more. The next that looks into all rooms does the rest.
const LOOKS: usize = 3;
/// In so many rooms: each look is at a thousand of each lane. Whoever keeps house does the rest.
const LOOKED_AGAIN_MAX: usize = 10;

#[async_trait]
impl LimitStore for PostgresStore {
    async fn release_limited(
        &self,
        ended: &[Permit],
        terms: &LimitTerms,
        now: Now,
    ) -> Result<u64, StoreError> {
        let args = (ended.to_vec(), terms.clone(), micros(now.literal()));
        // Each statement is for itself: nobody is lost between them.
        self.hot
            .run(args, |connection, args| async move {
                let (ended, terms, now) = &*args;
                vacate(&connection, ended).await?;
                release_limited(&connection, ended, terms, *now).await
            })
            .await
    }

    async fn release_all_limited(
        &self,
        rooms: ReleaseStep,
        now: Now,
    ) -> Result<Released, StoreError> {
        let args = (rooms, micros(now.literal()));
        self.hot
            .run(args, |connection, args| async move {
                let (rooms, now) = &*args;
                rooms::release_all_limited(&connection, rooms, *now).await
            })
            .await
    }

    async fn prune_permits(
        &self,
        after: Option<Permit>,
        limit: u32,
    ) -> Result<Option<Permit>, StoreError> {
        self.hot
            .run((after, limit), |connection, args| async move {
                prune_permits(&connection, args.0, args.1).await
            })
            .await
    }
}

/// As many leave the rooms of these limits as have ended.
async fn release_limited(
    connection: &Connection,
    ended: &[Permit],
    terms: &LimitTerms,
    now: Option<i64>,
) -> Tried<u64> {
    let mut free: BTreeMap<LimitKey, u32> = BTreeMap::new();
    for place in ended {
        *free.entry(place.limit).or_default() += 1;
    }
    let mut moved = 0;
    for round in 0..LOOKS {
        let look = |(key, free): (&LimitKey, &u32)| {
            let past = if key.scope() == LimitScope::Key { 0 } else { HELD_UP };
            let look = if round == 0 { free.saturating_add(past) } else { RELEASED_MAX };
            Look { key: *key, look: look.min(RELEASED_MAX), own: Own::Free(*free) }
        };
        let looks = free.iter().map(look).collect();
        let (again, home) = rooms::let_out(connection, looks, terms, true, now).await?;
        moved += home;
        // Who went home may not start for another limit, so the next look is for as many again.
        let rest = free.into_iter().zip(again).filter(|(_, again)| *again);
        free = rest.map(|(room, _)| room).take(LOOKED_AGAIN_MAX).collect();
        if free.is_empty() {
            break;
        }
    }
    Ok(moved)
}

/// Forgets the places of attempts, if those have ended.
async fn vacate(connection: &Connection, ended: &[Permit]) -> Tried<()> {
    let limits: Vec<&[u8]> = ended.iter().map(|place| place.limit.as_bytes()).collect();
    let keys: KeyColumns = ended.iter().map(|place| place.run).collect();
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
    let sql = sql!("release_vacate");
    connection.change(sql, &[&limits, scheduled_at, job_no, sequence, attempt]).await?;
    Ok(())
}

async fn prune_permits(
    connection: &Connection,
    after: Option<Permit>,
    limit: u32,
) -> Tried<Option<Permit>> {
    // Nothing comes before an empty key.
    let from = after.map_or_else(Vec::new, |place| place.limit.as_bytes().to_vec());
    let run = after.map(|place| place.run);
    let at = run.map_or(0, |run| run.scheduled_at.as_micros());
    let job_no = run.map_or(0, |run| run.job_no.0);
    let (nth, of) = (run.map_or(0, |run| sequence(run.sequence)), run.map_or(0, attempt));
    let sql = sql!("prune_permits");
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&from, &at, &job_no, &nth, &of, &i64::from(limit)];
    let Some(row) = connection.maybe_row(sql, &params).await? else { return Ok(None) };
    if count(&row, 0)? < u64::from(limit) {
        return Ok(None);
    }
    let limit = LimitKey::from_bytes(get(&row, 1)?)
        .ok_or_else(|| StoreError::corrupt("place", "key", "not a limit"))?;
    Ok(Some(Permit { limit, run: key(&row, 2)? }))
}
