//! The search index of jobs. Registering and changing jobs only records which jobs must be indexed,
//! because writing the index takes longer than registering a job.

use std::collections::HashSet;

use evenkeel_core::TenantNo;
use evenkeel_store::SearchedJob;

use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{array, get};

/// Records that jobs must be indexed. The statement that registers jobs does the same.
pub(super) async fn add(connection: &Connection, tenant: i32, jobs: &[i64]) -> Tried<()> {
    if !jobs.is_empty() {
        connection.change(sql!("index_jobs_add"), &[&tenant, &jobs]).await?;
    }
    Ok(())
}

/// Records that all jobs of a target must be indexed.
pub(crate) async fn add_target(connection: &Connection, tenant: i32, target: i64) -> Tried<()> {
    connection.change(sql!("index_jobs_add_target"), &[&tenant, &target]).await?;
    Ok(())
}

/// Indexes the next jobs. Returns false if all jobs are indexed. The entries are read before the
/// jobs, so a job that changes later has another entry.
pub(super) async fn index_jobs(connection: &Connection, limit: u32) -> Tried<bool> {
    let limit = i64::from(limit.max(1));
    connection.rows(sql!("index_jobs_lock"), &[]).await?;
    let rows = connection.rows(sql!("index_jobs_listed"), &[&limit]).await?;
    if rows.is_empty() {
        return walk(connection, limit).await;
    }
    let (mut entries, mut jobs) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in &rows {
        entries.push(get::<i64>(row, 0)?);
        jobs.extend(array::<i64>(row, 1)?);
    }
    index(connection, jobs).await?;
    connection.change(sql!("index_jobs_done"), &[&entries]).await?;
    Ok(true)
}

/// Indexes the next jobs of an entry for all jobs of a target or of the store.
async fn walk(connection: &Connection, limit: i64) -> Tried<bool> {
    let Some(row) = connection.maybe_row(sql!("index_jobs_walked"), &[]).await? else {
        return Ok(false);
    };
    let (entry, after): (i64, i64) = (get(&row, "entry_no")?, get(&row, "after_no")?);
    let target: Option<i64> = get(&row, "target_no")?;
    let rows = match target {
        Some(target) => {
            let tenant: i32 = get(&row, "tenant_no")?;
            let params: Params<'_> = &[&tenant, &target, &after, &limit];
            connection.rows(sql!("index_jobs_of_target"), params).await?
        }
        None => connection.rows(sql!("index_jobs_of_store"), &[&after, &limit]).await?,
    };
    let jobs = rows.iter().map(|row| get(row, 0)).collect::<Tried<Vec<i64>>>()?;
    match jobs.last().copied() {
        Some(last) => {
            index(connection, jobs).await?;
            connection.change(sql!("index_jobs_advance"), &[&entry, &last]).await?;
        }
        None => drop(connection.change(sql!("index_jobs_done"), &[&vec![entry]]).await?),
    }
    Ok(true)
}

async fn index(connection: &Connection, jobs: Vec<i64>) -> Tried<()> {
    let rows = connection.rows(sql!("index_jobs_read"), &[&jobs]).await?;
    let (mut found, mut grams) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for row in &rows {
        let searched = SearchedJob { about: get(row, 2)?, target_name: get(row, 3)? };
        found.push(get::<i64>(row, 0)?);
        grams.push(array_text(&searched.grams(TenantNo(get(row, 1)?))));
    }
    connection.change(sql!("index_jobs_write"), &[&found, &grams]).await?;
    let left: HashSet<i64> = found.into_iter().collect();
    let deleted: Vec<i64> = jobs.into_iter().filter(|job| !left.contains(job)).collect();
    if !deleted.is_empty() {
        connection.change(sql!("index_jobs_delete"), &[&deleted]).await?;
    }
    Ok(())
}

/// Writes grams as the text of an array, because a parameter cannot hold arrays of different
/// lengths.
fn array_text(grams: &[i32]) -> String {
    let grams: Vec<String> = grams.iter().map(i32::to_string).collect();
    format!("{{{}}}", grams.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grams_become_the_text_of_an_array() {
        assert_eq!(array_text(&[-7, 3]), "{-7,3}");
        assert_eq!(array_text(&[]), "{}");
    }
}
