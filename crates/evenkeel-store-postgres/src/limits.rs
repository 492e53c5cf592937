//! Waiting rooms of limits, and the places that nobody has any more.

use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;
use evenkeel_core::RunKey;
use evenkeel_core::aging::Aging;
use evenkeel_core::limit::{LimitKey, who_fits};
use evenkeel_store::{LimitPlace, LimitStore, Now, Rooms, StoreError, UNPARKED_MAX, Unparked};

use crate::PostgresStore;
use crate::columns::{KeyColumns, attempt, count, get, key, micros, sequence, time};
use crate::error::Tried;
use crate::pool::Connection;
use crate::runs::Candidate;

#[async_trait]
impl LimitStore for PostgresStore {
    async fn unpark(
        &self,
        ended: &[LimitPlace],
        aging: Aging,
        now: Now,
    ) -> Result<u64, StoreError> {
        let args = (ended.to_vec(), aging, micros(now.literal()));
        // Each statement is for itself: nobody is lost between them.
        self.hot
            .run(args, |connection, args| async move {
                let (ended, aging, now) = &*args;
                vacate(&connection, ended).await?;
                let mut counts: BTreeMap<LimitKey, i64> = BTreeMap::new();
                for place in ended {
                    *counts.entry(place.limit).or_default() += 1;
                }
                let rooms: Vec<(String, i64)> =
                    counts.into_iter().map(|(limit, count)| (limit.room(), count)).collect();
                let first = first_of(&connection, &rooms, *aging, *now).await?;
                let first = first.into_iter().zip(&rooms).flat_map(|(room, (_, count))| {
                    room.into_iter().take(usize::try_from(*count).unwrap_or_default())
                });
                send_home(&connection, first.map(|candidate| candidate.key).collect()).await
            })
            .await
    }

    async fn unpark_all(&self, rooms: Rooms, now: Now) -> Result<Unparked, StoreError> {
        let args = (rooms, micros(now.literal()));
        self.hot
            .run(args, |connection, args| async move {
                let (rooms, now) = &*args;
                unpark_all(&connection, *rooms, *now).await
            })
            .await
    }

    async fn forget_places(
        &self,
        after: Option<LimitPlace>,
        limit: u32,
    ) -> Result<Option<LimitPlace>, StoreError> {
        self.hot
            .run((after, limit), |connection, args| async move {
                forget_places(&connection, args.0, args.1).await
            })
            .await
    }
}

async fn unpark_all(connection: &Connection, rooms: Rooms, now: Option<i64>) -> Tried<Unparked> {
    let after = rooms.after.map_or_else(|| "~".to_owned(), LimitKey::room);
    let most = i64::from(rooms.limit);
    let sql = include_str!("../queries/unpark_rooms.sql");
    let rows = connection.rows(sql, &[&after, &most]).await?;
    let (mut wanted, mut running) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in &rows {
        let limits: (Option<i32>, Option<i32>) = (get(row, 1)?, get(row, 2)?);
        // It may have been emptied meanwhile.
        let (Some(lowest), Some(highest)) = limits else { continue };
        let runs = u32::try_from(count(row, 3)?).unwrap_or(u32::MAX);
        let free = highest.cast_unsigned().saturating_sub(runs);
        if free > 0 {
            // Where they do not agree on the limit, those that fit may be further behind.
            let look = if lowest == highest { free.min(UNPARKED_MAX) } else { UNPARKED_MAX };
            wanted.push((get::<String>(row, 0)?, i64::from(look)));
            running.push(runs);
        }
    }
    let first = first_of(connection, &wanted, rooms.aging, now).await?;
    let mut home = Vec::new();
    for (room, running) in first.into_iter().zip(running) {
        let limits = room.iter().map(Candidate::parked_under);
        let fits: Vec<bool> = who_fits(limits, running).collect();
        let fits = room.iter().zip(fits).filter(|(_, fits)| *fits);
        home.extend(fits.map(|(candidate, _)| candidate.key).take(UNPARKED_MAX as usize));
    }
    let moved = send_home(connection, home).await?;
    let last = rows.last().filter(|_| rows.len() == rooms.limit as usize);
    let next = last.map(|row| get::<&str>(row, 0)).transpose()?.and_then(LimitKey::of_room);
    Ok(Unparked { moved, next })
}

/// The first of each waiting room in the order of dispatch, as many as are wanted of it.
async fn first_of(
    connection: &Connection,
    rooms: &[(String, i64)],
    aging: Aging,
    now: Option<i64>,
) -> Tried<Vec<Vec<Candidate>>> {
    let mut first: Vec<Vec<Candidate>> = rooms.iter().map(|_| Vec::new()).collect();
    if rooms.is_empty() {
        return Ok(first);
    }
    let pools: Vec<&str> = rooms.iter().map(|(pool, _)| pool.as_str()).collect();
    let counts: Vec<i64> = rooms.iter().map(|(_, count)| *count).collect();
    let sql = include_str!("../queries/unpark_look.sql");
    let mut seen = HashSet::new();
    for row in connection.rows(sql, &[&pools, &counts, &now]).await? {
        let candidate = Candidate::read(&row, &aging, time(&row, 20)?)?;
        let nth = usize::try_from(get::<i64>(&row, 19)? - 1).unwrap_or(usize::MAX);
        if let Some(room) = first.get_mut(nth).filter(|_| seen.insert(candidate.key)) {
            room.push(candidate);
        }
    }
    for (room, (_, count)) in first.iter_mut().zip(rooms) {
        room.sort_unstable_by_key(Candidate::by_rank);
        room.truncate(usize::try_from(*count).unwrap_or_default());
    }
    Ok(first)
}

async fn send_home(connection: &Connection, runs: Vec<RunKey>) -> Tried<u64> {
    if runs.is_empty() {
        return Ok(0);
    }
    let keys: KeyColumns = runs.into_iter().collect();
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
    let sql = include_str!("../queries/unpark.sql");
    connection.change(sql, &[scheduled_at, job_no, sequence, attempt]).await
}

/// Forgets the places of attempts, if those have ended.
async fn vacate(connection: &Connection, ended: &[LimitPlace]) -> Tried<()> {
    let limits: Vec<&[u8]> = ended.iter().map(|place| place.limit.as_bytes()).collect();
    let keys: KeyColumns = ended.iter().map(|place| place.run).collect();
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
    let sql = include_str!("../queries/unpark_vacate.sql");
    connection.change(sql, &[&limits, scheduled_at, job_no, sequence, attempt]).await?;
    Ok(())
}

async fn forget_places(
    connection: &Connection,
    after: Option<LimitPlace>,
    limit: u32,
) -> Tried<Option<LimitPlace>> {
    // Nothing comes before an empty key.
    let from = after.map_or_else(Vec::new, |place| place.limit.as_bytes().to_vec());
    let run = after.map(|place| place.run);
    let at = run.map_or(0, |run| run.scheduled_at.as_micros());
    let job_no = run.map_or(0, |run| run.job_no.0);
    let (nth, of) = (run.map_or(0, |run| sequence(run.sequence)), run.map_or(0, attempt));
    let sql = include_str!("../queries/forget_places.sql");
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&from, &at, &job_no, &nth, &of, &i64::from(limit)];
    let Some(row) = connection.maybe_row(sql, &params).await? else { return Ok(None) };
    if count(&row, 0)? < u64::from(limit) {
        return Ok(None);
    }
    let limit = LimitKey::from_bytes(get(&row, 1)?)
        .ok_or_else(|| StoreError::corrupt("place", "key", "not a limit"))?;
    Ok(Some(LimitPlace { limit, run: key(&row, 2)? }))
}
