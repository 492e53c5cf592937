//! Runs the statements of job lists. [`evenkeel_store::list_jobs`] decides which statements a list
//! needs.

use evenkeel_core::{JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    FindSection, HeldJob, IndexScan, Job, JobCursor, JobFilter, JobSort, ListIndex, ListPosition,
    ListProbe, ListQuery, ListRow, ListValue, Page, PageRequest, SearchedJob, SlotPart, SortBy,
    passing_statement, without_waiting,
};
use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, Row};

use super::search_index::tokens;
use crate::connection::{RunPrepared, RunSql, system_time};
use crate::error::{Answer, Failure};
use crate::rows::{job_from, span};
use crate::sql::statement;

pub(crate) fn list(
    connection: &Connection,
    tenant: TenantNo,
    filter: &JobFilter,
    sort: JobSort,
    page: PageRequest<JobCursor>,
) -> Answer<Page<Job, JobCursor>> {
    let query = ListQuery { tenant, filter, sort, now: system_time() };
    without_waiting(evenkeel_store::list_jobs(&List { connection, query }, page))
}

/// Returns the stored number of jobs of a tenant.
pub(super) fn total(connection: &Connection, tenant: TenantNo) -> Answer<u64> {
    let count: Option<i64> = connection.maybe_value(sql!("list_jobs_total"), &[&tenant])?;
    Ok(count.unwrap_or(0).unsigned_abs())
}

pub(super) struct List<'a> {
    pub(super) connection: &'a Connection,
    pub(super) query: ListQuery<'a>,
}

impl List<'_> {
    pub(super) fn prepare(
        &self,
        sql: &str,
        step: &[(&str, ListValue)],
    ) -> Answer<CachedStatement<'_>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        for number in 1..=statement.parameter_count() {
            let name = statement.parameter_name(number).unwrap_or_default();
            let value = self.query.value(name.trim_start_matches(':'), step);
            let value = match value {
                ListValue::Int(value) => Value::from(value),
                ListValue::Text(value) => Value::from(value),
                ListValue::Texts(values) => Value::from(serde_json::json!(values).to_string()),
                ListValue::Grams(grams) => Value::from(tokens(&grams)),
            };
            statement.raw_bind_parameter(number, value)?;
        }
        Ok(statement)
    }

    /// Counts the rows that a scan of an index reads, up to one row more than allowed.
    pub(super) fn scanned(&self, index: ListIndex) -> Answer<u64> {
        let jobs = || format!("SELECT count(*) FROM ({})", index.jobs(statement));
        let sql = index.scanned(statement).map_or_else(jobs, str::to_owned);
        let mut statement = self.prepare(&sql, &[])?;
        let mut rows = statement.raw_query();
        let count: i64 = rows.next()?.map_or(Ok(0), |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }
}

fn list_row(row: &Row<'_>, query: &ListQuery<'_>) -> Answer<ListRow> {
    let name: Option<String> = match query.sort.by {
        SortBy::Name => row.get("name")?,
        SortBy::Created | SortBy::Updated | SortBy::NextRun => None,
    };
    let name = name.map(|name| Ok::<_, rusqlite::Error>((name, row.get("configuration")?)));
    let target_name = row.get("target_name")?;
    let searched = row.get::<_, Option<String>>("about")?;
    Ok(ListRow {
        no: JobNo(row.get("job_no")?),
        updated_at: row.get("updated_at")?,
        next_at: row.get("next_at")?,
        name: name.transpose()?,
        passes: row.get::<_, Option<bool>>("passes")? == Some(true),
        held: held_job(row, query.now)?,
        searched: searched.map(|about| SearchedJob { about, target_name }),
    })
}

/// Reads a due job that has blackouts, or `None` if the row holds no such job.
pub(super) fn held_job(row: &Row<'_>, now: Timestamp) -> Answer<Option<HeldJob>> {
    let Some(definition) = row.get::<_, Option<String>>("held")? else { return Ok(None) };
    let next_at = Timestamp::from_micros(row.get("next_at")?);
    Ok(Some(HeldJob { definition, next_at, average: span(row.get("average_us")?), now }))
}

impl ListProbe for List<'_> {
    type Error = Failure;

    fn query(&self) -> ListQuery<'_> {
        self.query
    }

    fn find_section(&self) -> FindSection {
        statement
    }

    async fn total(&self) -> Answer<u64> {
        total(self.connection, self.query.tenant)
    }

    async fn name_of(&self, job: JobNo) -> Answer<Option<(String, String)>> {
        let (sql, tenant) = (sql!("list_jobs_name_of"), self.query.tenant);
        self.connection.maybe_row(sql, &[&tenant, &job], |row| Ok(row.try_into()?))
    }

    async fn scan(&self, index: ListIndex, max: u32) -> Answer<IndexScan> {
        let scanned = self.scanned(index)?;
        if scanned > u64::from(max) {
            return Ok(IndexScan::TooMany(scanned));
        }
        let found = self.rows(index.jobs(statement), &[]).await?.into_iter();
        let passing = found.filter(|(_, passes)| *passes).map(|(position, _)| position);
        Ok(IndexScan::All(passing.collect()))
    }

    async fn rows(
        &self,
        jobs: &str,
        step: &[(&str, ListValue)],
    ) -> Answer<Vec<(ListPosition, bool)>> {
        let mut statement = self.prepare(&passing_statement(statement, jobs), step)?;
        let mut rows = statement.raw_query();
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(list_row(row, &self.query)?.listed(&self.query));
        }
        Ok(found)
    }

    async fn next_slot(&self, from: i32) -> Answer<Option<i32>> {
        let sql = match self.query.sort.descending {
            false => sql!("list_jobs_next_slot"),
            true => sql!("list_jobs_next_slot_back"),
        };
        self.connection.value(sql, &[&from])
    }

    async fn slot_size(&self, part: SlotPart) -> Answer<u64> {
        self.connection.value(sql!("list_jobs_slot_size"), &[&part.slot, &part.shard])
    }

    async fn load(&self, positions: &[ListPosition]) -> Answer<Vec<Job>> {
        let mut statement = self.connection.prepare_cached(sql!("list_jobs"))?;
        let mut jobs = Vec::with_capacity(positions.len());
        for position in positions {
            let job = statement.maybe_row(&[&position.no], |row| job_from(self.connection, row))?;
            jobs.extend(job);
        }
        Ok(jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::migrate;

    #[test]
    fn lists_read_the_index_of_their_filter_or_order() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        for (section, index) in [
            ("list_jobs_by_created", "job_tenant"),
            ("list_jobs_by_label", "job_label"),
            ("list_jobs_by_name", "job_name"),
            ("list_jobs_by_paused", "job_stopped"),
            ("list_jobs_by_source", "job_source"),
            ("list_jobs_by_target", "job_target"),
            ("list_jobs_by_updated", "job_updated"),
            ("list_jobs_from_at_risk", "job_condition_at_risk"),
            ("list_jobs_from_ended", "job_stopped"),
            ("list_jobs_from_ended", "job_state_unplaced"),
            ("list_jobs_from_label", "job_label"),
            ("list_jobs_from_name", "job_name"),
            ("list_jobs_from_next_times", "job_state_slot"),
            ("list_jobs_from_paused", "job_stopped"),
            ("list_jobs_from_pending", "job_state_slot"),
            ("list_jobs_from_source", "job_source"),
            ("list_jobs_from_source_prefix", "job_source"),
            ("list_jobs_from_target", "job_target"),
            ("list_jobs_in_slot", "job_state_slot"),
        ] {
            let sql = format!("EXPLAIN QUERY PLAN {}", statement(section));
            let mut plan = connection.prepare(&sql).unwrap();
            let mut rows = plan.raw_query();
            let mut steps = Vec::new();
            while let Some(step) = rows.next().unwrap() {
                steps.push(step.get::<_, String>("detail").unwrap());
            }
            assert!(steps.iter().any(|step| step.contains(index)), "{section}: {steps:?}");
        }
    }
}
