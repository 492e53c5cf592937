//! Lists of jobs.

use evenkeel_core::condition::Level;
use evenkeel_core::status::JobStatus;
use evenkeel_core::{JobNo, Shard, Slot, Span, TenantNo, Timestamp};
use evenkeel_store::{
    IndexScan, Job, JobCounts, JobCursor, JobFilter, JobSort, LIST_SCAN_MAX, ListIndex,
    ListPosition, ListWalk, Page, PageRequest, SlotPart, SortBy, WalkPath, status_when_due,
};
use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, Rows, params};

use crate::connection::clock::system_time;
use crate::error::Answer;
use crate::rows::{job_from, json, micros};

/// A filtered walk looks at so many jobs at a time.
const STEP: i64 = 1_000;

/// A walk by next times looks at so many slots, or parts of slots, for a page.
const PIECES_MAX: u32 = 64;

/// A text above every other that starts the same.
const LAST_CHARACTER: char = char::MAX;

pub(crate) fn list(
    connection: &Connection,
    tenant: TenantNo,
    filter: &JobFilter,
    sort: JobSort,
    page: PageRequest<JobCursor>,
) -> Answer<Page<Job, JobCursor>> {
    let all = kept_count(connection, tenant)?;
    let (params, now) = (filter_params(tenant, filter, sort)?, system_time());
    let list = List { connection, tenant, filter, sort, params, now };
    let after = match page.after.map(|cursor| list.place_of(cursor)).transpose()? {
        None => None,
        Some(Some(place)) => Some(place),
        // The job has lost the name that said where the list goes on.
        Some(None) => {
            return Ok(Page { items: Vec::new(), total: all, total_is_estimate: true, next: None });
        }
    };
    let mut along = WalkPath::all(filter, sort, all);
    if !along.all_pass {
        match list.gather(all)? {
            IndexScan::All(passing) => {
                let total = passing.len() as u64;
                let (places, next) = sort.cut(passing, after.as_ref(), page);
                let items = list.load(&places)?;
                return Ok(Page { items, total, total_is_estimate: false, next });
            }
            IndexScan::TooMany(counts) => along.choose(filter, sort, &counts),
        }
    }
    let (walk, is_at_end) = match sort.by {
        SortBy::NextRun => list.walk_by_next_time(page)?,
        SortBy::Created | SortBy::Updated | SortBy::Name => {
            list.walk_by_index(page, after, along)?
        }
    };
    let (total, total_is_estimate) = along.total(&walk);
    let items = list.load(&walk.items)?;
    Ok(Page { items, total, total_is_estimate, next: walk.next(is_at_end) })
}

/// How many jobs the tenant has.
pub(crate) fn kept_count(connection: &Connection, tenant: TenantNo) -> Answer<u64> {
    let count: Option<i64> = connection
        .prepare_cached("SELECT job_count FROM tenant WHERE tenant_no = ?1")?
        .query_row([tenant.0], |row| row.get(0))
        .optional()?;
    Ok(count.unwrap_or(0).unsigned_abs())
}

/// Parameters 1 to 14 of all statements that ask what passes.
fn filter_params(tenant: TenantNo, filter: &JobFilter, sort: JobSort) -> Answer<Vec<Value>> {
    let text = |text: &Option<String>| text.clone().into();
    let number = |number: Option<i64>| number.into();
    let status = |status: JobStatus| status as i64;
    let labels = (!filter.metadata.is_empty()).then(|| json(&filter.metadata)).transpose()?;
    Ok(vec![
        i64::from(tenant.0).into(),
        text(&filter.name_prefix),
        text(&filter.source_id),
        text(&filter.source_prefix),
        number(filter.status.map(status)),
        number(filter.condition.map(|level: Level| level as i64)),
        text(&filter.executor),
        number(filter.lane.map(|lane| lane as i64)),
        labels.into(),
        number(micros(filter.next_from)),
        number(micros(filter.next_before)),
        Value::Integer(sort.by as i64),
        number(filter.target),
        number(filter.active_attempts.map(|active_attempts| active_attempts as i64)),
    ])
}

/// How many jobs are in which state. Those that only wait for their next time are what the others
/// leave.
pub(crate) fn job_counts(connection: &Connection, tenant: TenantNo) -> Answer<JobCounts> {
    let filter = JobFilter::default();
    let sort = JobSort::default();
    let params = filter_params(tenant, &filter, sort)?;
    let now = system_time();
    let list = List { connection, tenant, filter: &filter, sort, params, now };
    let routes = [ListIndex::Running, ListIndex::Pending, ListIndex::Paused, ListIndex::Ended];
    let mut counts = JobCounts { total: kept_count(connection, tenant)?, ..JobCounts::default() };
    let mut from = Vec::new();
    for route in routes {
        counts.is_estimate |= list.looked_at(route)? > i64::from(LIST_SCAN_MAX);
        from.push(format!("SELECT job_no FROM ({})", statements_of(route).0));
    }
    let sql = statement(&from.join(" UNION "), sql!("job_counts"));
    let mut statement = list.prepare(&sql, &[])?;
    let mut rows = statement.raw_query();
    let mut others = 0;
    while let Some(row) = rows.next()? {
        let code: usize = row.get("status")?;
        let jobs = row.get::<_, i64>("jobs")?.unsigned_abs();
        let status = held_status(row, now)?.or(JobStatus::ALL.get(code).copied());
        if let Some(status) = status.filter(|status| *status != JobStatus::Scheduled) {
            *counts.of_mut(status) += jobs;
            others += jobs;
        }
    }
    counts.scheduled = counts.total.saturating_sub(others);
    Ok(counts)
}

/// The state of a due job with blackouts, if the row is about one.
fn held_status(row: &Row<'_>, now: Timestamp) -> Answer<Option<JobStatus>> {
    let Some(definition) = row.get::<_, Option<String>>("held")? else { return Ok(None) };
    let next_at = Timestamp::from_micros(row.get("next_at")?);
    let seen: Option<i64> = row.get("average_us")?;
    let seen = seen.map(|micros| Span::from_micros(micros.unsigned_abs()));
    Ok(Some(status_when_due(&definition, next_at, seen, now)))
}

/// How many jobs of all tenants are due, and how many were looked at for that.
fn all_due(connection: &Connection, now: Timestamp) -> Answer<(u64, u64)> {
    let mut statement = connection.prepare_cached(sql!("all_job_counts_due"))?;
    let mut rows = statement.query(params![LIST_SCAN_MAX + 1, now.as_micros()])?;
    let (mut due, mut looked_at) = (0, 0);
    while let Some(row) = rows.next()? {
        let jobs = row.get::<_, i64>("jobs")?.unsigned_abs();
        let is_held = held_status(row, now)? == Some(JobStatus::Scheduled);
        looked_at += jobs;
        due += if row.get("is_due")? && !is_held { jobs } else { 0 };
    }
    Ok((due, looked_at))
}

pub(crate) fn all_job_counts(connection: &Connection) -> Answer<JobCounts> {
    let (due, looked_at) = all_due(connection, system_time())?;
    let mut statement = connection.prepare_cached(sql!("all_job_counts"))?;
    Ok(statement.query_row([LIST_SCAN_MAX + 1], |row| {
        let count = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        let counts = JobCounts {
            total: count(0)?,
            paused: count(1)?,
            cancelled: count(2)? + count(7)?,
            running: count(3)?,
            pending: count(4)? + count(8)? + due,
            completed: count(5)?,
            failed: count(6)?,
            ..JobCounts::default()
        };
        Ok(counts.with_rest(count(9)?.max(looked_at)))
    })?)
}

struct List<'a> {
    connection: &'a Connection,
    tenant: TenantNo,
    filter: &'a JobFilter,
    sort: JobSort,
    params: Vec<Value>,
    now: Timestamp,
}

/// The parameter that says what time it is, after those of the filter and of a walk's start.
const NOW: usize = 21;

impl List<'_> {
    /// Where in the list a cursor stands.
    fn place_of(&self, cursor: JobCursor) -> Answer<Option<ListPosition>> {
        if self.sort.by != SortBy::Name {
            return Ok(Some(ListPosition { at: cursor.at, name: None, no: cursor.no }));
        }
        let mut statement = self.connection.prepare_cached(sql!("list_jobs_name_of"))?;
        let name: Option<(String, String)> = statement
            .query_row(params![self.tenant.0, cursor.no.0], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        Ok(name.map(|name| ListPosition { at: 0, name: Some(name), no: cursor.no }))
    }

    /// All that pass, if an index leads to few enough.
    fn gather(&self, all: u64) -> Answer<IndexScan> {
        let most = self.filter.sorted_max(self.sort);
        let mut counts = Vec::new();
        for route in self.filter.routes() {
            if route == ListIndex::All && all > u64::from(most) {
                continue;
            }
            let looked_at = self.looked_at(route)?;
            if looked_at > i64::from(most) {
                counts.push((route, looked_at.unsigned_abs()));
                continue;
            }
            let found = self.look(statements_of(route).0, &[])?.into_iter();
            let passing = found.filter(|(_, passes)| *passes).map(|(place, _)| place);
            return Ok(IndexScan::All(passing.collect()));
        }
        Ok(IndexScan::TooMany(counts))
    }

    /// How many rows a route looks at, counted up to one too many.
    fn looked_at(&self, route: ListIndex) -> Answer<i64> {
        let (from, looked_at) = statements_of(route);
        let counted =
            looked_at.map_or_else(|| format!("SELECT count(*) FROM ({from})"), str::to_owned);
        let mut statement = self.prepare(&counted, &[])?;
        let mut rows = statement.raw_query();
        Ok(rows.next()?.map_or(Ok(0), |row| row.get(0))?)
    }

    /// The statement with the filter's parameters, `more` from the 15th on, and [`NOW`].
    fn prepare(&self, sql: &str, more: &[Value]) -> Answer<CachedStatement<'_>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let wanted = statement.parameter_count();
        for (nth, value) in (1..=wanted).zip(self.params.iter().chain(more)) {
            statement.raw_bind_parameter(nth, value)?;
        }
        if wanted == NOW {
            statement.raw_bind_parameter(NOW, self.now.as_micros())?;
        }
        Ok(statement)
    }

    /// Where the jobs stand that a statement leads to, and whether they pass, in no order.
    fn look(&self, from: &str, more: &[Value]) -> Answer<Vec<(ListPosition, bool)>> {
        let sql = statement(from, sql!("list_jobs_passes"));
        let mut statement = self.prepare(&sql, more)?;
        let mut rows: Rows<'_> = statement.raw_query();
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let passes = row.get::<_, Option<bool>>("passes")? == Some(true);
            let passes = passes && self.is_in_state(row)?;
            found.push((self.place_from(row)?, passes));
        }
        Ok(found)
    }

    /// A due job with blackouts is in the wanted state if its blackouts say so.
    fn is_in_state(&self, row: &Row<'_>) -> Answer<bool> {
        let status = held_status(row, self.now)?;
        Ok(status.is_none() || status == self.filter.status)
    }

    fn place_from(&self, row: &Row<'_>) -> Answer<ListPosition> {
        let at: Option<i64> = match self.sort.by {
            SortBy::Updated => row.get("updated_at")?,
            SortBy::NextRun => row.get("next_at")?,
            SortBy::Created | SortBy::Name => None,
        };
        let name: Option<String> = match self.sort.by {
            SortBy::Name => row.get("name")?,
            _ => None,
        };
        let name = name.map(|name| Ok::<_, rusqlite::Error>((name, row.get("configuration")?)));
        Ok(ListPosition {
            at: at.unwrap_or(0),
            name: name.transpose()?,
            no: JobNo(row.get("job_no")?),
        })
    }

    /// Walks along the index of the list's order. Also says whether it came to the end.
    fn walk_by_index(
        &self,
        page: PageRequest<JobCursor>,
        after: Option<ListPosition>,
        along: WalkPath,
    ) -> Answer<(ListWalk, bool)> {
        let sql = walked(self.sort.by, along.route);
        let sql = if self.sort.descending { turned(sql) } else { sql.to_owned() };
        // What all pass can be left out by the database.
        let mut skipped = if along.all_pass { i64::from(page.offset) } else { 0 };
        let mut walk = ListWalk::new(PageRequest {
            offset: if along.all_pass { 0 } else { page.offset },
            ..page
        });
        let step = if along.all_pass { i64::from(page.limit) + 1 } else { STEP };
        let mut after = after;
        for _ in 0..i64::from(LIST_SCAN_MAX) / STEP {
            let mut found = self.look(&sql, &self.start(after.as_ref(), step + 1, skipped))?;
            let is_at_end = (found.len() as i64) <= step;
            found.retain(|(place, _)| {
                after.as_ref().is_none_or(|after| self.sort.compare(place, after).is_gt())
            });
            found.sort_unstable_by(|(one, _), (other, _)| self.sort.compare(one, other));
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
            skipped = 0;
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

    /// Parameters 15 to 20: where a walk goes on, and how far.
    fn start(&self, after: Option<&ListPosition>, limit: i64, offset: i64) -> [Value; 6] {
        let last = if self.sort.descending { i64::MAX } else { i64::MIN };
        let (at, no) = after.map_or((last, last), |place| (place.at, place.no.0));
        let prefix = self.filter.name_prefix.clone().unwrap_or_default();
        let first = match self.sort.descending {
            true => (format!("{prefix}{LAST_CHARACTER}"), LAST_CHARACTER.to_string()),
            false => (prefix, String::new()),
        };
        let (name, configuration) = after.and_then(|place| place.name.clone()).unwrap_or(first);
        [at.into(), no.into(), name.into(), configuration.into(), limit.into(), offset.into()]
    }

    /// Walks slot by slot.
    fn walk_by_next_time(&self, page: PageRequest<JobCursor>) -> Answer<(ListWalk, bool)> {
        let mut walk = ListWalk::new(page);
        let (mut looked_at, mut cursor) = (0, page.after);
        for _ in 0..PIECES_MAX {
            let Some(piece) = self.next_piece(cursor)? else { return Ok((walk, true)) };
            let shard = piece.shard.map(|shard| i64::from(shard.0));
            let more = [Value::Null, i64::from(piece.slot.0).into(), shard.into()];
            let mut found = self.look(sql!("list_jobs_in_slot"), &more)?;
            let after = cursor.filter(|cursor| piece.holds(*cursor));
            let after = after.map(|after| ListPosition { at: after.at, name: None, no: after.no });
            found.retain(|(place, _)| {
                after.as_ref().is_none_or(|after| self.sort.compare(place, after).is_gt())
            });
            found.sort_unstable_by(|(one, _), (other, _)| self.sort.compare(one, other));
            for (place, passes) in found {
                walk.look(place, passes);
            }
            let end = piece.end(self.sort.descending);
            walk.pass_by(end);
            looked_at += self.size_of(piece)?;
            if walk.is_full() || looked_at >= i64::from(LIST_SCAN_MAX) {
                break;
            }
            cursor = Some(end);
        }
        Ok((walk, false))
    }

    /// What a walk by next times looks at after `cursor`.
    fn next_piece(&self, cursor: Option<JobCursor>) -> Answer<Option<SlotPart>> {
        let falls = self.sort.descending;
        if let Some(cursor) = cursor {
            let is_crowded = self.is_crowded(cursor.slot())?;
            if let Some(rest) = SlotPart::rest_of_slot(cursor, is_crowded, falls) {
                return Ok(Some(rest));
            }
        }
        let (from, before) = (self.filter.next_from, self.filter.next_before);
        let bound = |at: Option<Timestamp>, open: i32| at.map_or(open, |at| Slot::of(at).0);
        let (first, last) = (bound(from, i32::MIN), bound(before, i32::MAX));
        let wanted = match (cursor, falls) {
            (None, false) => first,
            (None, true) => last,
            (Some(cursor), false) => cursor.slot().0.saturating_add(1).max(first),
            (Some(cursor), true) => cursor.slot().0.saturating_sub(1).min(last),
        };
        let sql = match falls {
            false => sql!("list_jobs_next_slot"),
            true => sql!("list_jobs_next_slot_back"),
        };
        let slot: Option<i32> =
            self.connection.prepare_cached(sql)?.query_row([wanted], |row| row.get(0))?;
        let Some(slot) = slot.filter(|slot| (first..=last).contains(slot)).map(Slot) else {
            return Ok(None);
        };
        let shard = self.is_crowded(slot)?.then_some(Shard(if falls { u8::MAX } else { 0 }));
        Ok(Some(SlotPart { slot, shard }))
    }

    /// Has it too many jobs to be looked at in one piece?
    fn is_crowded(&self, slot: Slot) -> Answer<bool> {
        Ok(self.size_of(SlotPart { slot, shard: None })? > i64::from(LIST_SCAN_MAX))
    }

    /// How many jobs, whoever's they are, have their next time in it; counted up to one too many.
    fn size_of(&self, piece: SlotPart) -> Answer<i64> {
        let mut statement = self.connection.prepare_cached(sql!("list_jobs_slot_size"))?;
        let shard = piece.shard.map(|shard| shard.0);
        Ok(statement.query_row(params![piece.slot.0, shard], |row| row.get(0))?)
    }

    /// The jobs in these places.
    fn load(&self, places: &[ListPosition]) -> Answer<Vec<Job>> {
        let mut statement = self.connection.prepare_cached(sql!("list_jobs"))?;
        let mut jobs = Vec::with_capacity(places.len());
        for place in places {
            if let Some(row) = statement.query([place.no.0])?.next()? {
                jobs.push(job_from(self.connection, row)?);
            }
        }
        Ok(jobs)
    }
}

/// A statement on the jobs that `from` leads to.
fn statement(from: &str, on_those: &str) -> String {
    let status = sql!("list_jobs_status").trim_end();
    let held = sql!("list_jobs_held").trim_end();
    let on_those = on_those.replace("{status}", status).replace("{held}", held);
    format!("WITH c AS MATERIALIZED (\n{from})\n{on_those}")
}

/// What leads along a route, and what counts how many rows that looks at, if those are not just
/// what it leads to.
fn statements_of(route: ListIndex) -> (&'static str, Option<&'static str>) {
    match route {
        ListIndex::Running => {
            (sql!("list_jobs_from_running"), Some(sql!("list_jobs_looked_running")))
        }
        ListIndex::Pending => {
            (sql!("list_jobs_from_pending"), Some(sql!("list_jobs_looked_pending")))
        }
        ListIndex::Waiting => {
            (sql!("list_jobs_from_waiting"), Some(sql!("list_jobs_looked_waiting")))
        }
        ListIndex::NextTimes => {
            (sql!("list_jobs_from_next_times"), Some(sql!("list_jobs_looked_next_times")))
        }
        ListIndex::AtRisk => (sql!("list_jobs_from_at_risk"), None),
        ListIndex::Label => (sql!("list_jobs_from_label"), None),
        ListIndex::Source => (sql!("list_jobs_from_source"), None),
        ListIndex::Target => (sql!("list_jobs_from_target"), None),
        ListIndex::Paused => (sql!("list_jobs_from_paused"), None),
        ListIndex::Ended => (sql!("list_jobs_from_ended"), None),
        ListIndex::Name => (sql!("list_jobs_from_name"), None),
        ListIndex::SourcePrefix => (sql!("list_jobs_from_source_prefix"), None),
        ListIndex::All => (sql!("list_jobs_from_all"), None),
    }
}

/// What leads through all jobs in an order, or in that of their creation along a route.
fn walked(by: SortBy, route: Option<ListIndex>) -> &'static str {
    match (by, route) {
        (_, Some(ListIndex::Label)) => sql!("list_jobs_by_label"),
        (_, Some(ListIndex::Source)) => sql!("list_jobs_by_source"),
        (_, Some(ListIndex::Target)) => sql!("list_jobs_by_target"),
        (_, Some(ListIndex::Paused)) => sql!("list_jobs_by_paused"),
        (SortBy::Updated, _) => sql!("list_jobs_by_updated"),
        (SortBy::Name, _) => sql!("list_jobs_by_name"),
        (SortBy::Created | SortBy::NextRun, _) => {
            sql!("list_jobs_by_created")
        }
    }
}

/// The statement of a walk, the other way round.
fn turned(sql: &str) -> String {
    sql.replace(" > ", " < ").replace(" >= ", " <= ").replace(" ASC", " DESC")
}
