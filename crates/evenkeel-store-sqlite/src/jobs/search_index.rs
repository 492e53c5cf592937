//! The search index of jobs. Registering and changing jobs only records which jobs must be indexed,
//! because writing the index takes longer than registering a job.

use evenkeel_core::{JobNo, TenantNo};
use evenkeel_store::SearchedJob;
use rusqlite::Connection;

use crate::connection::{Params, RunPrepared as _, RunSql};
use crate::error::Answer;
use crate::rows::{json, read_json};

/// Jobs to index, and the entries of the table `unindexed_job` that name them.
pub(crate) struct Unindexed {
    entries: Entries,
    /// Jobs with their grams; `None` for a deleted job.
    jobs: Vec<(JobNo, Option<String>)>,
}

enum Entries {
    /// Entries that list jobs, all of which are indexed now.
    Listed(Vec<i64>),
    /// An entry for all jobs of a target or of the store, and the last job that is indexed now;
    /// `None` if no job is left.
    Walked(i64, Option<JobNo>),
}

impl Unindexed {
    pub(super) fn rows(&self) -> usize {
        self.jobs.len() * 8 + 1
    }
}

/// Records that jobs must be indexed.
pub(crate) fn add(connection: &Connection, tenant: TenantNo, jobs: &[JobNo]) -> Answer<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    let jobs: Vec<i64> = jobs.iter().map(|job| job.0).collect();
    connection.run(sql!("index_jobs_add"), &[&tenant, &json(&jobs)?])
}

/// Records that all jobs of a target must be indexed.
pub(crate) fn add_target(connection: &Connection, tenant: TenantNo, target: i64) -> Answer<()> {
    connection.run(sql!("index_jobs_add_target"), &[&tenant, &target])
}

/// Reads the next jobs to index; `None` if all jobs are indexed. The entries are read before the
/// jobs, so a job that changes later has another entry.
pub(super) fn find(db: &Connection, limit: u32) -> Answer<Option<Unindexed>> {
    let limit = limit.max(1);
    let listed = db.rows(sql!("index_jobs_listed"), &[&limit], |row| {
        let entry: i64 = row.get("entry_no")?;
        Ok((entry, read_json::<Vec<i64>>(row, format_args!("unindexed jobs {entry}"), "jobs")?))
    })?;
    if !listed.is_empty() {
        let (entries, jobs): (Vec<i64>, Vec<Vec<i64>>) = listed.into_iter().unzip();
        let mut jobs = jobs.concat();
        jobs.sort_unstable();
        jobs.dedup();
        return Ok(Some(Unindexed { entries: Entries::Listed(entries), jobs: read(db, &jobs)? }));
    }
    let walked = db.maybe_row(sql!("index_jobs_walked"), &[], |row| Ok(row.try_into()?))?;
    let walked: Option<(i64, Option<i32>, Option<i64>, i64)> = walked;
    let Some((entry, tenant, target, after)) = walked else { return Ok(None) };
    let jobs: Vec<i64> = if target.is_some() {
        let of_target: Params<'_> = &[&tenant, &target, &after, &limit];
        db.rows(sql!("index_jobs_of_target"), of_target, |row| Ok(row.get(0)?))?
    } else {
        db.rows(sql!("index_jobs_of_store"), &[&after, &limit], |row| Ok(row.get(0)?))?
    };
    let entries = Entries::Walked(entry, jobs.last().copied().map(JobNo));
    Ok(Some(Unindexed { entries, jobs: read(db, &jobs)? }))
}

fn read(db: &Connection, jobs: &[i64]) -> Answer<Vec<(JobNo, Option<String>)>> {
    let mut statement = db.prepare_cached(sql!("index_jobs_read"))?;
    let grams = |job: &i64| {
        let grams = statement.maybe_row(&[job], |row| {
            let (about, target_name) = (row.get("about")?, row.get("target_name")?);
            let tenant = TenantNo(row.get("tenant_no")?);
            Ok(tokens(&SearchedJob { about, target_name }.grams(tenant)))
        })?;
        Ok((JobNo(*job), grams))
    };
    jobs.iter().map(grams).collect()
}

pub(super) fn write(connection: &Connection, unindexed: &Unindexed) -> Answer<()> {
    for (job, grams) in &unindexed.jobs {
        match grams {
            Some(grams) => connection.run(sql!("index_jobs_write"), &[job, grams])?,
            None => connection.run(sql!("index_jobs_delete"), &[job])?,
        }
    }
    match &unindexed.entries {
        Entries::Listed(entries) => {
            for entry in entries {
                connection.run(sql!("index_jobs_done"), &[entry])?;
            }
            Ok(())
        }
        Entries::Walked(entry, None) => connection.run(sql!("index_jobs_done"), &[entry]),
        Entries::Walked(entry, Some(last)) => {
            connection.run(sql!("index_jobs_advance"), &[entry, last])
        }
    }
}

/// Returns grams as words for FTS5. As a query, they match jobs that have all of them.
pub(super) fn tokens(grams: &[i32]) -> String {
    let words: Vec<String> = grams.iter().map(|gram| format!("{gram:08x}")).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grams_become_words_without_syntax() {
        assert_eq!(tokens(&[-1, 0, 0x00ab_cdef]), "ffffffff 00000000 00abcdef");
    }
}
