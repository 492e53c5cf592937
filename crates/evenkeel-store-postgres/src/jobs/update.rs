//! Changes of jobs.

use evenkeel_core::{Definition, JobId, Span, Timestamp};
use evenkeel_store::{Changed, Job, JobChange, Now, Opening, Scope, StoreError};
use uuid::Uuid;

use super::definition_text;
use super::labels::write_anew;
use super::read::get_job;
use crate::PostgresStore;
use crate::columns::{get, maybe_time, micros, name_list, slot, span};
use crate::error::{Failure, Tried};
use crate::pool::Connection;

struct Args {
    tenant: i32,
    id: Uuid,
    now: Option<i64>,
    change: JobChange,
    about: Option<String>,
    definition: Option<String>,
}

pub(super) async fn update(
    store: &PostgresStore,
    scope: &Scope,
    id: JobId,
    change: JobChange,
    now: Now,
) -> Result<Changed, StoreError> {
    let about = change.about.as_ref().map(serde_json::to_string).transpose();
    let args = Args {
        tenant: scope.tenant.0,
        id: id.0,
        now: micros(now.literal()),
        about: about.map_err(|error| StoreError::Refused(error.into()))?,
        definition: change.definition.as_ref().map(definition_text).transpose()?,
        change,
    };
    store
        .api
        .run(args, |connection, args| async move {
            match connection.transaction(run(&connection, &args)).await {
                // Somebody took the name after we had looked: look again.
                Err(failure) if failure.is_taken() => Err(Failure::Again),
                tried => tried,
            }
        })
        .await
}

async fn run(connection: &Connection, args: &Args) -> Tried<Changed> {
    let lock = include_str!("../../queries/update_lock_job.sql");
    let Some(row) = connection.maybe_row(lock, &[&args.id, &args.tenant]).await? else {
        return Ok(Changed::NotFound);
    };
    let job_no: i64 = get(&row, 0)?;
    let lock = include_str!("../../queries/update_lock_job_state.sql");
    let state = connection.row(lock, &[&job_no]).await?;
    let generation: i32 = get(&state, 0)?;
    let last_fired_at = maybe_time(&state, 1)?;
    let is_other = args.change.expect_generation.is_some_and(|expected| expected != generation);
    let next_at = args.change.next_at.flatten();
    if is_other || next_at.is_some_and(|next_at| Some(next_at) <= last_fired_at) {
        return Ok(Changed::Conflict(Box::new(read_back(connection, args).await?)));
    }
    if let Some(holder) = find_holder(connection, args).await? {
        return Ok(Changed::NameTaken(holder));
    }
    let now = write(connection, args, job_no).await?;
    if let Some(definition) = &args.change.definition {
        let seen = get::<Option<i64>>(&state, 5)?.map(span);
        open_anew(connection, job_no, definition, seen, now).await?;
    }
    Ok(Changed::Done(Box::new(read_back(connection, args).await?)))
}

async fn read_back(connection: &Connection, args: &Args) -> Tried<Job> {
    get_job(connection, args.id, args.tenant).await?.ok_or(Failure::Again)
}

/// The other job that has the name this one is to get.
async fn find_holder(connection: &Connection, args: &Args) -> Tried<Option<JobId>> {
    let Some((name, about)) =
        args.change.about.as_ref().and_then(|about| Some((about.name.clone()?, about)))
    else {
        return Ok(None);
    };
    let configuration = about.configuration.clone().unwrap_or_default();
    let sql = include_str!("../../queries/register_find_names.sql");
    let rows = connection.rows(sql, &[&args.tenant, &vec![name], &vec![configuration]]).await?;
    let holder: Option<Uuid> = rows.first().map(|row| get(row, 1)).transpose()?;
    Ok(holder.filter(|holder| *holder != args.id).map(JobId))
}

/// What waits in the queue may be claimed when and where the definition says.
async fn open_anew(
    connection: &Connection,
    job_no: i64,
    definition: &Definition,
    seen: Option<Span>,
    now: i64,
) -> Tried<()> {
    let now = Timestamp::from_micros(now);
    let opening = Opening::of(definition, definition.average(seen), now);
    let forbidden = name_list(&definition.dont_run_on_nodes);
    connection
        .change(
            include_str!("../../queries/update_ready.sql"),
            &[&job_no, &micros(opening.from), &micros(opening.until), &forbidden],
        )
        .await?;
    Ok(())
}

/// Says when.
async fn write(connection: &Connection, args: &Args, job_no: i64) -> Tried<i64> {
    let about = args.change.about.clone().unwrap_or_default();
    let row = connection
        .row(
            include_str!("../../queries/update_job.sql"),
            &[
                &args.now,
                &job_no,
                &args.change.about.is_some(),
                &about.name,
                &about.configuration.unwrap_or_default(),
                &about.source_id,
                &args.about,
                &args.definition,
            ],
        )
        .await?;
    let now: i64 = get(&row, 0)?;
    let change = &args.change;
    let (about, definition) = (change.about.as_ref(), change.definition.as_ref());
    write_anew(connection, args.tenant, job_no, about, definition).await?;
    let next_at = args.change.next_at.flatten();
    let definition = args.change.definition.as_ref();
    let by_end = definition.map(|definition| definition.schedule.follows_its_end());
    connection
        .change(
            include_str!("../../queries/update_job_state.sql"),
            &[
                &job_no,
                &args.change.next_at.is_some(),
                &micros(next_at),
                &slot(next_at),
                &now,
                &by_end,
            ],
        )
        .await?;
    Ok(now)
}
