//! Deletes pages.

use evenkeel_core::{JobNo, PageId};
use rusqlite::Connection;

use super::save;
use crate::connection::{RunPrepared, RunSql};
use crate::error::Answer;

/// Deleting a page is as much work as writing this many rows.
pub(super) const ROWS: usize = 4;

pub(super) fn prune(db: &Connection, job: JobNo, pages: &[PageId]) -> Answer<u64> {
    let mut numbers = Vec::with_capacity(pages.len());
    for id in pages {
        numbers.extend(db.maybe_value::<i64>(sql!("save_pages_find"), &[id, &job])?);
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
        // The list of pages to delete may name a page twice.
        let Some(size) = page.maybe_value::<i64>(&[no])? else { continue };
        text.run(&[no])?;
        words.run(&[no])?;
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
    db.rows(sql!("clear_pages_jobs"), &[&limit], |row| Ok(JobNo(row.get(0)?)))
}

/// Deletes up to `limit` pages of these jobs, one job after the other, and the usage rows of jobs
/// that have no pages left. Returns the number of deleted pages.
pub(super) fn clear(db: &Connection, jobs: &[JobNo], limit: u32) -> Answer<u32> {
    let mut look = db.prepare_cached(sql!("clear_pages_find"))?;
    let mut cleared = 0;
    for job in jobs {
        let room = limit - cleared;
        let numbers: Vec<i64> = look.rows(&[job, &room], |row| Ok(row.get(0)?))?;
        cleared += delete_pages(db, *job, &numbers)?;
        if cleared >= limit {
            break;
        }
        db.run(sql!("clear_pages_usage"), &[job])?;
    }
    Ok(cleared)
}
