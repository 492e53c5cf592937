//! Forgets pages.

use evenkeel_core::{JobNo, PageId};
use rusqlite::{Connection, OptionalExtension, params};

use super::{id_column, save};
use crate::error::Answer;

/// A page that goes is as much work as so many rows of other verbs.
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
    Ok(u64::from(take_away(db, job, &numbers)?))
}

/// Takes pages of a job away, and gives their room back. Says how many there were.
fn take_away(db: &Connection, job: JobNo, numbers: &[i64]) -> Answer<u32> {
    let mut page = db.prepare_cached(sql!("prune_pages"))?;
    let mut text = db.prepare_cached(sql!("prune_pages_text"))?;
    let mut words = db.prepare_cached(sql!("prune_pages_words"))?;
    let (mut bytes, mut pages) = (0, 0_u32);
    for no in numbers {
        let size: Option<i64> = page.query_row([no], |row| row.get(0)).optional()?;
        // A page that is named twice goes once.
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

/// Deleted jobs that have pages. Every job that has some has a shelf, and shelves are few.
pub(super) fn deleted_jobs(db: &Connection, limit: u32) -> Answer<Vec<JobNo>> {
    let mut statement = db.prepare_cached(sql!("clear_pages_jobs"))?;
    let jobs = statement.query_map([limit], |row| Ok(JobNo(row.get(0)?)))?;
    Ok(jobs.collect::<Result<_, _>>()?)
}

/// Clears these jobs one after the other, at most `limit` pages. Says how many. Of jobs that are
/// done the shelves are gone.
pub(super) fn clear(db: &Connection, jobs: &[JobNo], limit: u32) -> Answer<u32> {
    let mut look = db.prepare_cached(sql!("clear_pages_find"))?;
    let mut cleared = 0;
    for job in jobs {
        let room = limit - cleared;
        let numbers: Vec<i64> =
            look.query_map(params![job.0, room], |row| row.get(0))?.collect::<Result<_, _>>()?;
        cleared += take_away(db, *job, &numbers)?;
        if cleared >= limit {
            break;
        }
        db.prepare_cached(sql!("clear_pages_usage"))?.execute([job.0])?;
    }
    Ok(cleared)
}
