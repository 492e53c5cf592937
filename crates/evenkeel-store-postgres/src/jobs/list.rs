//! Lists of jobs.

use std::collections::HashMap;

use evenkeel_core::{JobNo, Shard, Slot, Timestamp};
use evenkeel_store::{
    IndexScan, Job, JobCursor, JobFilter, JobSort, LIST_SCAN_MAX, ListIndex, ListPosition,
    ListWalk, Page, PageRequest, Scope, SlotPart, SortBy, StoreError, WalkPath,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::counts::held_status;
use super::list_statements::{gathering, turned, walked, walking};
use super::read::read_job;
use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{count, get, micros};

/// A filtered walk looks at so many jobs at a time.
const STEP: i64 = 1_000;

/// A walk by next times looks at so many slots, or parts of slots, for a page.
const PIECES_MAX: u32 = 64;

/// No text is above its beginning followed by this.
const LAST_CHARACTER: char = char::MAX;

type Param<'a> = &'a (dyn ToSql + Sync);

pub(super) async fn list_jobs(
    store: &PostgresStore,
    scope: &Scope,
    filter: &JobFilter,
    sort: JobSort,
    page: PageRequest<JobCursor>,
) -> Result<Page<Job, JobCursor>, StoreError> {
    let args = (List::new(scope.tenant.0, filter.clone(), sort), page);
    store
        .api
        .run(args, |connection, args| async move {
            let (list, page) = &*args;
            list.page(&connection, *page).await
        })
        .await
}

pub(super) async fn kept_count(connection: &Connection, tenant: i32) -> Tried<u64> {
    let sql = sql!("list_jobs_total");
    let row = connection.maybe_row(sql, &[&tenant]).await?;
    Ok(row.map(|row| count(&row, 0)).transpose()?.unwrap_or(0))
}

/// A filter and an order, as parameters 1 to 15 of all statements that ask what passes.
struct List {
    filter: JobFilter,
    sort: JobSort,
    tenant: i32,
    status: Option<i16>,
    level: Option<i16>,
    lane: Option<i16>,
    keys: Vec<String>,
    values: Vec<String>,
    next_from: Option<i64>,
    next_before: Option<i64>,
    by: i16,
    active_attempts: Option<i16>,
}

impl List {
    fn new(tenant: i32, filter: JobFilter, sort: JobSort) -> Self {
        let (keys, values) = filter.metadata.iter().cloned().unzip();
        Self {
            sort,
            tenant,
            status: filter.status.map(|status| status as i16),
            level: filter.condition.map(|level| level as i16),
            lane: filter.lane.map(|lane| lane as i16),
            keys,
            values,
            next_from: micros(filter.next_from),
            next_before: micros(filter.next_before),
            by: sort.by as i16,
            active_attempts: filter.active_attempts.map(|active_attempts| active_attempts as i16),
            filter,
        }
    }

    fn params<'a>(&'a self, more: &[Param<'a>]) -> Vec<Param<'a>> {
        let mut params: Vec<Param<'a>> = vec![
            &self.tenant,
            &self.filter.name_prefix,
            &self.filter.source_id,
            &self.filter.source_prefix,
            &self.status,
            &self.level,
            &self.filter.executor,
            &self.lane,
            &self.keys,
            &self.values,
            &self.next_from,
            &self.next_before,
            &self.by,
            &self.filter.target,
            &self.active_attempts,
        ];
        params.extend(more);
        params
    }

    async fn page(
        &self,
        connection: &Connection,
        page: PageRequest<JobCursor>,
    ) -> Tried<Page<Job, JobCursor>> {
        let all = kept_count(connection, self.tenant).await?;
        let after = match page.after {
            None => None,
            Some(cursor) => match self.place_of(connection, cursor).await? {
                Some(place) => Some(place),
                // The job has lost the name that said where the list goes on.
                None => {
                    let items = Vec::new();
                    return Ok(Page { items, total: all, total_is_estimate: true, next: None });
                }
            },
        };
        let mut along = WalkPath::all(&self.filter, self.sort, all);
        if !along.all_pass {
            match self.gather(connection, all).await? {
                IndexScan::All(passing) => {
                    let total = passing.len() as u64;
                    let (places, next) = self.sort.cut(passing, after.as_ref(), page);
                    let items = load(connection, &places).await?;
                    return Ok(Page { items, total, total_is_estimate: false, next });
                }
                IndexScan::TooMany(counts) => along.choose(&self.filter, self.sort, &counts),
            }
        }
        let (walk, is_at_end) = match self.sort.by {
            SortBy::NextRun => self.walk_by_next_time(connection, page).await?,
            SortBy::Created | SortBy::Updated | SortBy::Name => {
                self.walk_by_index(connection, page, after, along).await?
            }
        };
        let (total, total_is_estimate) = along.total(&walk);
        let items = load(connection, &walk.items).await?;
        Ok(Page { items, total, total_is_estimate, next: walk.next(is_at_end) })
    }

    /// Where in the list a cursor stands.
    async fn place_of(
        &self,
        connection: &Connection,
        cursor: JobCursor,
    ) -> Tried<Option<ListPosition>> {
        if self.sort.by != SortBy::Name {
            return Ok(Some(ListPosition { at: cursor.at, name: None, no: cursor.no }));
        }
        let sql = sql!("list_jobs_name_of");
        let row = connection.maybe_row(sql, &[&self.tenant, &cursor.no.0]).await?;
        let name =
            row.map(|row| Ok::<_, StoreError>((get(&row, 0)?, get(&row, 1)?))).transpose()?;
        Ok(name.map(|name| ListPosition { at: 0, name: Some(name), no: cursor.no }))
    }

    /// All that pass, if an index leads to few enough.
    async fn gather(&self, connection: &Connection, all: u64) -> Tried<IndexScan> {
        let most = self.filter.sorted_max(self.sort);
        let mut counts = Vec::new();
        for route in self.filter.routes() {
            if route == ListIndex::All && all > u64::from(most) {
                continue;
            }
            let rows = connection.rows(&gathering(route, most), &self.params(&[])).await?;
            let looked_at = rows.first().map(|row| get::<i64>(row, 9)).transpose()?.unwrap_or(0);
            if looked_at > i64::from(most) {
                counts.push((route, looked_at.cast_unsigned()));
                continue;
            }
            // If none passes there is still a row, which only says how many were looked at.
            let mut found = Vec::with_capacity(rows.len());
            for row in &rows {
                if get::<Option<i64>>(row, 0)?.is_some() && self.is_in_state(row)? {
                    found.push(self.read_place(row)?);
                }
            }
            return Ok(IndexScan::All(found));
        }
        Ok(IndexScan::TooMany(counts))
    }

    /// A due job with blackouts is in the wanted state if its blackouts say so.
    fn is_in_state(&self, row: &Row) -> Tried<bool> {
        let status = held_status(row, 6, 2)?;
        Ok(status.is_none() || status == self.filter.status)
    }

    fn read_place(&self, row: &Row) -> Tried<ListPosition> {
        let at: Option<i64> = match self.sort.by {
            SortBy::Updated => get(row, 1)?,
            SortBy::NextRun => get(row, 2)?,
            SortBy::Created | SortBy::Name => None,
        };
        let name: Option<String> = get(row, 3)?;
        let configuration: Option<String> = get(row, 4)?;
        Ok(ListPosition {
            at: at.unwrap_or(0),
            name: name.map(|name| (name, configuration.unwrap_or_default())),
            no: JobNo(get(row, 0)?),
        })
    }

    /// Where the jobs stand that a statement leads to after `after`, in order, and whether they
    /// pass; and how many it led to.
    async fn look(
        &self,
        connection: &Connection,
        sql: &str,
        more: &[Param<'_>],
        after: Option<&ListPosition>,
    ) -> Tried<(Vec<(ListPosition, bool)>, usize)> {
        let rows = connection.rows(sql, &self.params(more)).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            let place = self.read_place(row)?;
            if after.is_none_or(|after| self.sort.compare(&place, after).is_gt()) {
                let passes = get::<Option<bool>>(row, 5)? == Some(true);
                found.push((place, passes && self.is_in_state(row)?));
            }
        }
        found.sort_unstable_by(|(one, _), (other, _)| self.sort.compare(one, other));
        Ok((found, rows.len()))
    }

    /// Walks along the index of the list's order. Also says whether it came to the end.
    async fn walk_by_index(
        &self,
        connection: &Connection,
        page: PageRequest<JobCursor>,
        mut after: Option<ListPosition>,
        along: WalkPath,
    ) -> Tried<(ListWalk, bool)> {
        let from = walked(self.sort.by, along.route);
        let from = if self.sort.descending { turned(from) } else { from.to_owned() };
        let sql = walking(&from);
        // Where all pass, those to be left out need not be seen.
        let (mut offset, left_out) =
            if along.all_pass { (i64::from(page.offset), 0) } else { (0, page.offset) };
        let mut walk = ListWalk::new(PageRequest { offset: left_out, ..page });
        let step = if along.all_pass { i64::from(page.limit) + 1 } else { STEP };
        let limit = step + 1;
        for _ in 0..i64::from(LIST_SCAN_MAX) / STEP {
            let start = Start::new(&self.filter, self.sort.descending, after.as_ref());
            let more: Vec<Param<'_>> = match self.sort.by {
                SortBy::Updated => vec![&start.no, &limit, &offset, &start.at],
                SortBy::Name => vec![&start.name, &limit, &offset, &start.configuration],
                SortBy::Created | SortBy::NextRun => vec![&start.no, &limit, &offset],
            };
            let (found, count) = self.look(connection, &sql, &more, after.as_ref()).await?;
            let is_at_end = (count as i64) < limit;
            after = found.last().map(|(place, _)| place.clone()).or(after);
            for (place, passes) in found {
                if self.is_beyond(&place) {
                    return Ok((walk, true));
                }
                walk.look(place, passes);
            }
            if walk.is_full() || is_at_end {
                return Ok((walk, is_at_end));
            }
            offset = 0;
        }
        Ok((walk, false))
    }

    /// By name, all that follows starts otherwise than those that are asked for.
    fn is_beyond(&self, place: &ListPosition) -> bool {
        match (&self.filter.name_prefix, &place.name) {
            (Some(prefix), Some((name, _))) => !name.starts_with(prefix),
            _ => false,
        }
    }

    /// Walks slot by slot.
    async fn walk_by_next_time(
        &self,
        connection: &Connection,
        page: PageRequest<JobCursor>,
    ) -> Tried<(ListWalk, bool)> {
        let sql = walking(sql!("list_jobs_in_slot"));
        let mut walk = ListWalk::new(page);
        let (mut looked_at, mut cursor) = (0, page.after);
        for _ in 0..PIECES_MAX {
            let Some(piece) = self.next_piece(connection, cursor).await? else {
                return Ok((walk, true));
            };
            let after = cursor.filter(|cursor| piece.holds(*cursor));
            let after = after.map(|after| ListPosition { at: after.at, name: None, no: after.no });
            let shard = piece.shard.map(|shard| i32::from(shard.0));
            let more: [Param<'_>; 2] = [&piece.slot.0, &shard];
            for (place, passes) in self.look(connection, &sql, &more, after.as_ref()).await?.0 {
                walk.look(place, passes);
            }
            let end = piece.end(self.sort.descending);
            walk.pass_by(end);
            looked_at += size_of(connection, piece).await?;
            if walk.is_full() || looked_at >= i64::from(LIST_SCAN_MAX) {
                break;
            }
            cursor = Some(end);
        }
        Ok((walk, false))
    }

    /// What a walk by next times looks at after `cursor`.
    async fn next_piece(
        &self,
        connection: &Connection,
        cursor: Option<JobCursor>,
    ) -> Tried<Option<SlotPart>> {
        let falls = self.sort.descending;
        if let Some(cursor) = cursor {
            let is_crowded = is_crowded(connection, cursor.slot()).await?;
            if let Some(rest) = SlotPart::rest_of_slot(cursor, is_crowded, falls) {
                return Ok(Some(rest));
            }
        }
        let bound = |at: Option<Timestamp>, open: i32| at.map_or(open, |at| Slot::of(at).0);
        let first = bound(self.filter.next_from, i32::MIN);
        let last = bound(self.filter.next_before, i32::MAX);
        let wanted = match (cursor, falls) {
            (None, false) => first,
            (None, true) => last,
            (Some(cursor), false) => cursor.slot().0.saturating_add(1).max(first),
            (Some(cursor), true) => cursor.slot().0.saturating_sub(1).min(last),
        };
        let sql =
            if falls { sql!("list_jobs_next_slot_back") } else { sql!("list_jobs_next_slot") };
        let slot: Option<i32> = get(&connection.row(sql, &[&wanted]).await?, 0)?;
        let Some(slot) = slot.filter(|slot| (first..=last).contains(slot)).map(Slot) else {
            return Ok(None);
        };
        let is_crowded = is_crowded(connection, slot).await?;
        let shard = is_crowded.then_some(Shard(if falls { u8::MAX } else { 0 }));
        Ok(Some(SlotPart { slot, shard }))
    }
}

/// Where a walk along an index goes on.
struct Start {
    at: i64,
    no: i64,
    name: String,
    configuration: String,
}

impl Start {
    fn new(filter: &JobFilter, descending: bool, after: Option<&ListPosition>) -> Self {
        let first = if descending { i64::MAX } else { i64::MIN };
        let (at, no) = after.map_or((first, first), |place| (place.at, place.no.0));
        let prefix = filter.name_prefix.clone().unwrap_or_default();
        let first = if descending {
            (format!("{prefix}{LAST_CHARACTER}"), LAST_CHARACTER.to_string())
        } else {
            (prefix, String::new())
        };
        let (name, configuration) = after.and_then(|place| place.name.clone()).unwrap_or(first);
        Self { at, no, name, configuration }
    }
}

async fn is_crowded(connection: &Connection, slot: Slot) -> Tried<bool> {
    Ok(size_of(connection, SlotPart { slot, shard: None }).await? > i64::from(LIST_SCAN_MAX))
}

/// How many jobs, whoever's they are, have their next time in it; counted up to one too many.
async fn size_of(connection: &Connection, piece: SlotPart) -> Tried<i64> {
    let sql = sql!("list_jobs_slot_size");
    let shard = piece.shard.map(|shard| i32::from(shard.0));
    Ok(get(&connection.row(sql, &[&piece.slot.0, &shard]).await?, 0)?)
}

/// The jobs in these places, in their order.
async fn load(connection: &Connection, places: &[ListPosition]) -> Tried<Vec<Job>> {
    let numbers: Vec<i64> = places.iter().map(|place| place.no.0).collect();
    let rows = connection.rows(sql!("list_jobs"), &[&numbers]).await?;
    let mut jobs = HashMap::with_capacity(rows.len());
    for row in &rows {
        let job = read_job(row)?;
        jobs.insert(job.no, job);
    }
    Ok(places.iter().filter_map(|place| jobs.remove(&place.no)).collect())
}
