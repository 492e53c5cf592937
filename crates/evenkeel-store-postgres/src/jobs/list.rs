//! Runs the statements of job lists. [`evenkeel_store::list_jobs`] decides which statements a list
//! needs.

use std::collections::HashMap;

use evenkeel_core::{JobNo, Span, TenantNo, Timestamp};
use evenkeel_store::statements::number_by_occurrence;
use evenkeel_store::{
    FindSection, HeldJob, IndexScan, Job, JobFilter, JobSort, ListIndex, ListPosition, ListProbe,
    ListQuery, ListRow, ListValue, SearchedJob, SlotPart, passing_statement,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::read::read_job;
use crate::connection::{Connection, Params};
use crate::error::{Failure, Tried};
use crate::rows::{column, count, get};
use crate::sql::statement;

/// Returns the stored number of jobs of a tenant.
pub(super) async fn total(connection: &Connection, tenant: TenantNo) -> Tried<u64> {
    let row = connection.maybe_row(sql!("list_jobs_total"), &[&tenant.0]).await?;
    row.map_or(Ok(0), |row| count(&row, 0))
}

pub(super) struct List<'a> {
    pub(super) connection: &'a Connection,
    pub(super) tenant: TenantNo,
    pub(super) filter: &'a JobFilter,
    pub(super) sort: JobSort,
}

impl List<'_> {
    /// Runs a statement with named parameters.
    pub(super) async fn run(&self, sql: &str, step: &[(&str, ListValue)]) -> Tried<Vec<Row>> {
        let (sql, names) = number_by_occurrence(sql);
        let query = self.query();
        let values: Vec<ListValue> = names.iter().map(|name| query.value(name, step)).collect();
        let params: Vec<&(dyn ToSql + Sync)> = values
            .iter()
            .map(|value| match value {
                ListValue::Int(value) => value as &(dyn ToSql + Sync),
                ListValue::Text(value) => value,
                ListValue::Texts(values) => values,
                ListValue::Grams(grams) => grams,
            })
            .collect();
        self.connection.rows(&sql, &params).await
    }
}

fn list_row(row: &Row) -> Tried<ListRow> {
    let name: Option<String> = get(row, 3)?;
    let configuration: Option<String> = get(row, 4)?;
    let (about, target_name): (Option<String>, Option<String>) = (get(row, 9)?, get(row, 10)?);
    Ok(ListRow {
        no: JobNo(get(row, 0)?),
        updated_at: get(row, 1)?,
        next_at: get(row, 2)?,
        name: name.map(|name| (name, configuration.unwrap_or_default())),
        passes: get::<Option<bool>>(row, 5)? == Some(true),
        held: held_job(row, 6, 2)?,
        searched: about.map(|about| SearchedJob { about, target_name }),
    })
}

/// Reads a due job that has blackouts, or `None` if the row holds no such job. The job's
/// definition, its average duration and the current time are in the columns from `first` on.
pub(super) fn held_job(row: &Row, first: usize, next_at: usize) -> Tried<Option<HeldJob>> {
    let Some(definition) = get::<Option<String>>(row, first)? else { return Ok(None) };
    let average: Option<i64> = get(row, first + 1)?;
    Ok(Some(HeldJob {
        definition,
        next_at: Timestamp::from_micros(get(row, next_at)?),
        average: average.map(|micros| Span::from_micros(micros.unsigned_abs())),
        now: Timestamp::from_micros(get(row, first + 2)?),
    }))
}

/// Returns the statement that reads all jobs of an index that pass the filters, if the index has at
/// most `max` rows for this list. The last column of the result is the number of rows in the index.
fn scan_statement(index: ListIndex, max: u32) -> String {
    let jobs = index.jobs(statement);
    let scanned = index.scanned(statement).unwrap_or("SELECT count(*) FROM f");
    let passes = sql!("list_jobs_passes");
    format!(
        "WITH f AS MATERIALIZED (\n{jobs}), scanned (n) AS MATERIALIZED (\n{scanned}),
         c AS MATERIALIZED (SELECT job_no FROM f WHERE (SELECT n FROM scanned) <= {max})
         SELECT p.*, l.n FROM scanned l LEFT JOIN (\n{passes}) AS p ON p.passes"
    )
}

impl ListProbe for List<'_> {
    type Error = Failure;

    fn query(&self) -> ListQuery<'_> {
        // The statements read the time from the database, so this value is not used.
        let now = Timestamp::MIN;
        ListQuery { tenant: self.tenant, filter: self.filter, sort: self.sort, now }
    }

    fn find_section(&self) -> FindSection {
        statement
    }

    async fn total(&self) -> Tried<u64> {
        total(self.connection, self.tenant).await
    }

    async fn name_of(&self, job: JobNo) -> Tried<Option<(String, String)>> {
        let params: Params<'_> = &[&self.tenant.0, &job.0];
        let row = self.connection.maybe_row(sql!("list_jobs_name_of"), params).await?;
        row.map(|row| Ok((get(&row, 0)?, get(&row, 1)?))).transpose()
    }

    async fn scan(&self, index: ListIndex, max: u32) -> Tried<IndexScan> {
        let rows = self.run(&scan_statement(index, max), &[]).await?;
        let scanned = rows.first().map_or(Ok(0), |row| count(row, 11))?;
        if scanned > u64::from(max) {
            return Ok(IndexScan::TooMany(scanned));
        }
        // If no job passes the filters, the result is one row that has only the count.
        let mut passing = Vec::with_capacity(rows.len());
        for row in &rows {
            if get::<Option<i64>>(row, 0)?.is_some() {
                let (position, passes) = list_row(row)?.listed(&self.query());
                passing.extend(passes.then_some(position));
            }
        }
        Ok(IndexScan::All(passing))
    }

    async fn rows(
        &self,
        jobs: &str,
        step: &[(&str, ListValue)],
    ) -> Tried<Vec<(ListPosition, bool)>> {
        let rows = self.run(&passing_statement(statement, jobs), step).await?;
        rows.iter().map(|row| Ok(list_row(row)?.listed(&self.query()))).collect()
    }

    async fn next_slot(&self, from: i32) -> Tried<Option<i32>> {
        let sql = match self.sort.descending {
            false => sql!("list_jobs_next_slot"),
            true => sql!("list_jobs_next_slot_back"),
        };
        get(&self.connection.row(sql, &[&from]).await?, 0)
    }

    async fn slot_size(&self, part: SlotPart) -> Tried<u64> {
        let shard = part.shard.map(|shard| i32::from(shard.0));
        let params: Params<'_> = &[&part.slot.0, &shard];
        count(&self.connection.row(sql!("list_jobs_slot_size"), params).await?, 0)
    }

    async fn load(&self, positions: &[ListPosition]) -> Tried<Vec<Job>> {
        let numbers = column(positions, |position| position.no.0);
        let rows = self.connection.rows(sql!("list_jobs"), &[&numbers]).await?;
        let jobs = rows.iter().map(|row| read_job(row).map(|job| (job.no, job)));
        let mut jobs = jobs.collect::<Tried<HashMap<JobNo, Job>>>()?;
        Ok(positions.iter().filter_map(|position| jobs.remove(&position.no)).collect())
    }
}
