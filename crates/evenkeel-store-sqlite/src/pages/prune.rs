//! Deletes pages.

use evenkeel_core::{JobNo, PageId};
use rusqlite::{Connection, OptionalExtension, params};

use super::{id_column, save};
use crate::error::Answer;

/// Deleting a page is as much work as writing this many rows.
pub(super) const ROWS: usize = 4;

pub(super) fn prune(db: &Connection, job: JobNo, pages: &[PageId]) -> Answer<u64> {
    let mut numbers = Vec::with_capacity(pages.len());
    for id in pages {
        let found: Option<i64> = db
            .prepare_cached(sql!("save_pages_find"))?
            .query_row(params![id_column(id), job.0], |row| row.get(0))
            .optional()?;
        numbers.extend(found);
    }
    Ok(u64::from(delete_pages(db, job, &numbers)?))
}

/// Deletes pages of a job and subtracts them from the job's usage. Returns how many pages were
/// deleted.
fn delete_pages(db: &Connection, job: JobNo, numbers: &[i64]) -> Answer<u32> {
    let mut page = db.prepare_cached(sql!("prune_pages"))?;
    let mut text = db.prepare_cached(sql!("prune_pages_text"))?;
    let mut words = db.prepare_cached(sql!("prune_pages_words"))?;
    let (mut bytes, mut pages) = (0, 0_u32);
    for no in numbers {
        let size: Option<i64> = page.query_row([no], |row| row.get(0)).optional()?;
        // The list of pages to delete may name a page twice.
        let Some(size) = size else { continue };
        text.execute([no])?;
        words.execute([no])?;
        bytes += size;
        pages += 1;
    }
    if pages > 0 {
        save::count(db, job, -bytes, -i64::from(pages))?;
    }
    Ok(pages)
}

/// Returns deleted jobs whose crawled pages are still stored. Every job with pages has a row in the
/// short table `page_usage`.
pub(super) fn deleted_jobs(db: &Connection, limit: u32) -> Answer<Vec<JobNo>> {
    let mut statement = db.prepare_cached(sql!("clear_pages_jobs"))?;
    let jobs = statement.query_map([limit], |row| Ok(JobNo(row.get(0)?)))?;
    Ok(jobs.collect::<Result<_, _>>()?)
}

/// Deletes up to `limit` pages of these jobs, one job after the other, and the usage rows of jobs
/// that have no pages left. Returns the number of deleted pages.
pub(super) fn clear(db: &Connection, jobs: &[JobNo], limit: u32) -> Answer<u32> {
    let mut look = db.prepare_cached(sql!("clear_pages_find"))?;
    let mut cleared = 0;
    for job in jobs {
        let room = limit - cleared;
        let numbers: Vec<i64> =
            look.query_map(params![job.0, room], |row| row.get(0))?.collect::<Result<_, _>>()?;
        cleared += delete_pages(db, *job, &numbers)?;
        if cleared >= limit {
            break;
        }
        db.prepare_cached(sql!("clear_pages_usage"))?.execute([job.0])?;
    }
    Ok(cleared)
}
