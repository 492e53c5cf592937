//! New jobs.

use std::collections::HashMap;

use evenkeel_core::balance::Load;
use evenkeel_core::dedup::DedupKey;
use evenkeel_core::{JobId, JobNo};
use evenkeel_store::{Applied, JobCommand, NewJob, Now, Registered, Scope, StoreError};
use uuid::Uuid;

use super::commands;
use super::definition_text;
use super::labels::Labels;
use crate::PostgresStore;
use crate::balance::{Counts, LoadColumns};
use crate::connection::Connection;
use crate::dedup::column;
use crate::dedup::{Fates, Name, Names, are_keyed, decide, kept_out, name_of};
use crate::error::{Failure, Tried};
use crate::rows::{get, micros, slot};

struct Args {
    tenant: i32,
    now: Option<i64>,
    jobs: Vec<NewJob>,
    /// For each job, the earlier one of the batch that has its name.
    namesakes: Vec<Option<usize>>,
    columns: Columns,
}

/// Those jobs that have no namesake in the batch, as arrays.
#[derive(Default)]
struct Columns {
    id: Vec<Uuid>,
    name: Vec<Option<String>>,
    configuration: Vec<String>,
    source_id: Vec<Option<String>>,
    about: Vec<String>,
    definition: Vec<String>,
    next_at: Vec<Option<i64>>,
    slot: Vec<Option<i32>>,
    by_end: Vec<bool>,
    executor: Vec<String>,
    lane: Vec<i16>,
    target: Vec<Option<i64>>,
    loads: Vec<Option<Load>>,
    dedup_key: Vec<Option<Uuid>>,
}

pub(super) async fn register(
    store: &PostgresStore,
    scope: &Scope,
    jobs: Vec<NewJob>,
    now: Now,
) -> Result<Vec<Registered>, StoreError> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    if are_keyed(&jobs) {
        return register_keyed(store, scope, jobs, now).await;
    }
    let namesakes = namesakes(&jobs);
    let mut columns = Columns::default();
    let mut before: Option<&NewJob> = None;
    for (job, namesake) in jobs.iter().zip(&namesakes) {
        if namesake.is_none() {
            columns.push(job, before)?;
            before = Some(job);
        }
    }
    let now = micros(now.literal());
    let args = Args { tenant: scope.tenant.0, now, jobs, namesakes, columns };
    store
        .api
        .run(args, |connection, args| async move {
            connection.transaction(run(&connection, &args)).await
        })
        .await
}

/// One that is paused before anybody sees it.
pub(super) async fn register_paused(
    store: &PostgresStore,
    scope: &Scope,
    job: NewJob,
    now: Now,
) -> Result<Registered, StoreError> {
    let job = NewJob { next_at: None, ..job };
    let args = (scope.tenant.0, [job], micros(now.literal()));
    store
        .api
        .run(args, |connection, args| async move {
            let (tenant, jobs, now) = &*args;
            connection.transaction(run_paused(&connection, *tenant, jobs, *now)).await
        })
        .await
}

async fn run_paused(
    connection: &Connection,
    tenant: i32,
    jobs: &[NewJob; 1],
    now: Option<i64>,
) -> Tried<Registered> {
    let made = if are_keyed(jobs) {
        run_keyed(connection, tenant, jobs, now).await?
    } else {
        let mut columns = Columns::default();
        columns.push(&jobs[0], None)?;
        let args = Args { tenant, now, jobs: jobs.to_vec(), namesakes: vec![None], columns };
        run(connection, &args).await?
    };
    let made = made.into_iter().next().ok_or(Failure::Again)?;
    if matches!(made, Registered::Created { .. }) {
        let orders = vec![JobCommand::pause(jobs[0].id)];
        let obeyed = commands::run(connection, &commands::Args { tenant, now, orders }).await?;
        if !matches!(obeyed[..], [Applied::Done(_)]) {
            return Err(Failure::Again);
        }
    }
    Ok(made)
}

/// The same where keys decide as well: which are made is known before they are.
async fn register_keyed(
    store: &PostgresStore,
    scope: &Scope,
    jobs: Vec<NewJob>,
    now: Now,
) -> Result<Vec<Registered>, StoreError> {
    let args = (scope.tenant.0, jobs, micros(now.literal()));
    store
        .api
        .run(args, |connection, args| async move {
            let (tenant, jobs, now) = &*args;
            let fates = kept_out(&connection, *tenant, jobs, *now).await?;
            let left = left(jobs, &fates);
            let mut answers = Vec::new();
            if !left.is_empty() {
                let run = run_keyed(&connection, *tenant, &left, *now);
                answers = connection.transaction(run).await?;
            }
            let mut answers = answers.into_iter();
            let answer = |fate: Option<_>| fate.or_else(|| answers.next()).ok_or(Failure::Again);
            fates.into_iter().map(answer).collect()
        })
        .await
}

/// Those of which it is not known yet what they will be answered.
fn left(jobs: &[NewJob], fates: &Fates) -> Vec<NewJob> {
    let is_left = |(job, fate): (&NewJob, &Option<Registered>)| fate.is_none().then(|| job.clone());
    jobs.iter().zip(fates).filter_map(is_left).collect()
}

async fn run_keyed(
    connection: &Connection,
    tenant: i32,
    jobs: &[NewJob],
    now: Option<i64>,
) -> Tried<Vec<Registered>> {
    let (fates, keys) = decide(connection, tenant, jobs, now).await?;
    let jobs = left(jobs, &fates);
    let mut columns = Columns::default();
    let mut before = None;
    for job in &jobs {
        columns.push(job, before)?;
        before = Some(job);
    }
    let mut made = Vec::new().into_iter();
    if !jobs.is_empty() {
        let namesakes = vec![None; jobs.len()];
        let args = Args { tenant, now, jobs, namesakes, columns };
        made = run(connection, &args).await?.into_iter();
    }
    keys.write(connection).await?;
    fates
        .into_iter()
        .map(|fate| match fate {
            Some(answer) => Ok(answer),
            None => match made.next() {
                Some(created @ Registered::Created { .. }) => Ok(created),
                // A name was taken after we had looked: what follows from that is decided anew.
                Some(_) | None => Err(Failure::Again),
            },
        })
        .collect()
}

/// Who has the names of these jobs?
pub(crate) async fn find_names<'a>(
    connection: &Connection,
    tenant: i32,
    jobs: &'a [NewJob],
) -> Tried<Names<'a>> {
    let wanted: Vec<Name<'a>> = jobs.iter().filter_map(name_of).collect();
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let (names, configurations): (Vec<&str>, Vec<&str>) = wanted.iter().copied().unzip();
    let sql = sql!("register_find_names");
    let mut found = HashMap::new();
    for row in connection.rows(sql, &[&tenant, &names, &configurations]).await? {
        let nth = usize::try_from(get::<i64>(&row, 0)? - 1).unwrap_or(usize::MAX);
        let holder = JobId(get(&row, 1)?);
        found.extend(wanted.get(nth).map(|name| (*name, holder)));
    }
    Ok(found)
}

async fn run(connection: &Connection, args: &Args) -> Tried<Vec<Registered>> {
    let made = insert(connection, args).await?;
    let mut labels = Labels::default();
    for job in &args.jobs {
        if let Some((no, _)) = made.get(&job.id) {
            labels.push(no.0, &job.about);
        }
    }
    labels.write(connection, args.tenant).await?;
    let mut answers: Vec<Registered> = Vec::with_capacity(args.jobs.len());
    let holders = if made.len() == args.columns.id.len() {
        HashMap::new()
    } else {
        find_holders(connection, args, &made).await?
    };
    for (job, namesake) in args.jobs.iter().zip(&args.namesakes) {
        let answer = match namesake.map(|first| (answers[first], args.jobs[first].id)) {
            Some((Registered::Created { .. }, first)) => Registered::NameTaken(first),
            Some((taken @ (Registered::NameTaken(_) | Registered::Duplicate(_)), _)) => taken,
            None => match (made.get(&job.id), holders.get(&job.id)) {
                (Some((no, number)), _) => Registered::Created { no: *no, number: *number },
                (None, Some(holder)) => Registered::NameTaken(*holder),
                // Whoever had the name when we tried has been deleted since.
                (None, None) => return Err(Failure::Again),
            },
        };
        answers.push(answer);
    }
    let mut counts = Counts::default();
    for (id, load) in args.columns.id.iter().zip(&args.columns.loads) {
        if let Some(load) = load.as_ref().filter(|_| made.contains_key(&JobId(*id))) {
            counts.add(args.tenant, load);
        }
    }
    counts.write(connection).await?;
    Ok(answers)
}

/// What each job is called that was made: by the store, and by its tenant.
type Made = HashMap<JobId, (JobNo, i64)>;

async fn insert(connection: &Connection, args: &Args) -> Tried<Made> {
    let columns = &args.columns;
    let loads: LoadColumns = columns.loads.iter().map(Option::as_ref).collect();
    let rows = connection
        .rows(
            sql!("register"),
            &[
                &args.now,
                &args.tenant,
                &columns.id,
                &columns.name,
                &columns.configuration,
                &columns.source_id,
                &columns.about,
                &columns.definition,
                &columns.next_at,
                &columns.slot,
                &columns.by_end,
                &columns.executor,
                &columns.lane,
                &loads.profile,
                &loads.cost_us,
                &loads.cost_stated,
                &columns.target,
                &columns.dedup_key,
            ],
        )
        .await?;
    let read = |row| Ok((JobId(get(row, 0)?), (JobNo(get(row, 1)?), get(row, 2)?)));
    rows.iter().map(read).collect()
}

/// Who has the names of the jobs that were not made?
async fn find_holders(
    connection: &Connection,
    args: &Args,
    made: &Made,
) -> Tried<HashMap<JobId, JobId>> {
    let columns = &args.columns;
    let left: Vec<usize> =
        (0..columns.id.len()).filter(|at| !made.contains_key(&JobId(columns.id[*at]))).collect();
    let names: Vec<Option<&str>> = left.iter().map(|at| columns.name[*at].as_deref()).collect();
    let configurations: Vec<&str> =
        left.iter().map(|at| columns.configuration[*at].as_str()).collect();
    let sql = sql!("register_find_names");
    let rows = connection.rows(sql, &[&args.tenant, &names, &configurations]).await?;
    let mut holders = HashMap::new();
    for row in &rows {
        let nth = usize::try_from(get::<i64>(row, 0)? - 1).unwrap_or(usize::MAX);
        if let Some(at) = left.get(nth) {
            holders.insert(JobId(columns.id[*at]), JobId(get(row, 1)?));
        }
    }
    Ok(holders)
}

fn namesakes(jobs: &[NewJob]) -> Vec<Option<usize>> {
    let mut seen: HashMap<(&str, &str), usize> = HashMap::new();
    jobs.iter()
        .enumerate()
        .map(|(position, job)| {
            let name = job.about.name.as_deref()?;
            let configuration = job.about.configuration.as_deref().unwrap_or_default();
            let first = *seen.entry((name, configuration)).or_insert(position);
            (first != position).then_some(first)
        })
        .collect()
}

impl Columns {
    /// `before` is the one that was pushed last.
    fn push(&mut self, job: &NewJob, before: Option<&NewJob>) -> Result<(), StoreError> {
        let about = &job.about;
        self.id.push(job.id.0);
        self.name.push(about.name.clone());
        self.configuration.push(about.configuration.clone().unwrap_or_default());
        self.source_id.push(about.source_id.clone());
        self.about
            .push(serde_json::to_string(about).map_err(|error| StoreError::Refused(error.into()))?);
        // Those that come together often do the same; comparing is quicker than writing it down.
        let same = before.filter(|before| before.definition == job.definition);
        let text = match (same, self.definition.last()) {
            (Some(_), Some(text)) => text.clone(),
            _ => definition_text(&job.definition)?,
        };
        self.definition.push(text);
        self.next_at.push(micros(job.next_at));
        self.slot.push(slot(job.next_at));
        self.by_end.push(job.definition.schedule.follows_its_end());
        self.executor.push(job.definition.executor.kind.clone());
        self.lane.push(job.definition.lane as i16);
        self.target.push(about.target);
        let key = DedupKey::of_job(about, &job.definition);
        self.dedup_key.push(key.map(column));
        self.loads.push(job.next_at.and_then(|at| Load::of(&job.definition, None, at)));
        Ok(())
    }
}
