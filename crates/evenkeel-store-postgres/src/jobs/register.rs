//! Registering jobs.

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
use crate::dedup::{Answers, Name, Names, are_keyed, decide, find_duplicates, name_of};
use crate::error::{Failure, Tried};
use crate::rows::{get, micros, slot};

struct Args {
    tenant: i32,
    now: Option<i64>,
    jobs: Vec<NewJob>,
    /// For each job, the position of an earlier job in the batch that has the same name.
    namesakes: Vec<Option<usize>>,
    columns: Columns,
}

/// The jobs of the batch, except those whose name an earlier job of the batch has, as arrays.
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
    follows_end: Vec<bool>,
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
    let created = if are_keyed(jobs) {
        run_keyed(connection, tenant, jobs, now).await?
    } else {
        let mut columns = Columns::default();
        columns.push(&jobs[0], None)?;
        let args = Args { tenant, now, jobs: jobs.to_vec(), namesakes: vec![None], columns };
        run(connection, &args).await?
    };
    let created = created.into_iter().next().ok_or(Failure::Again)?;
    if matches!(created, Registered::Created { .. }) {
        let commands = vec![JobCommand::pause(jobs[0].id)];
        let applied = commands::run(connection, &commands::Args { tenant, now, commands }).await?;
        if !matches!(applied[..], [Applied::Done(_)]) {
            return Err(Failure::Again);
        }
    }
    Ok(created)
}

/// Registers jobs of which some have deduplication keys. The function first decides which jobs are
/// created and which are duplicates.
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
            let answers_so_far = find_duplicates(&connection, *tenant, jobs, *now).await?;
            let left = left(jobs, &answers_so_far);
            let mut answers = Vec::new();
            if !left.is_empty() {
                let run = run_keyed(&connection, *tenant, &left, *now);
                answers = connection.transaction(run).await?;
            }
            let mut answers = answers.into_iter();
            let answer = |answer_so_far: Option<_>| {
                answer_so_far.or_else(|| answers.next()).ok_or(Failure::Again)
            };
            answers_so_far.into_iter().map(answer).collect()
        })
        .await
}

/// Returns the jobs of the batch whose registration is not decided yet.
fn left(jobs: &[NewJob], answers_so_far: &Answers) -> Vec<NewJob> {
    let is_left = |(job, answer_so_far): (&NewJob, &Option<Registered>)| {
        answer_so_far.is_none().then(|| job.clone())
    };
    jobs.iter().zip(answers_so_far).filter_map(is_left).collect()
}

async fn run_keyed(
    connection: &Connection,
    tenant: i32,
    jobs: &[NewJob],
    now: Option<i64>,
) -> Tried<Vec<Registered>> {
    let (answers_so_far, keys) = decide(connection, tenant, jobs, now).await?;
    let jobs = left(jobs, &answers_so_far);
    let mut columns = Columns::default();
    let mut before = None;
    for job in &jobs {
        columns.push(job, before)?;
        before = Some(job);
    }
    let mut created = Vec::new().into_iter();
    if !jobs.is_empty() {
        let namesakes = vec![None; jobs.len()];
        let args = Args { tenant, now, jobs, namesakes, columns };
        created = run(connection, &args).await?.into_iter();
    }
    keys.write(connection).await?;
    answers_so_far
        .into_iter()
        .map(|answer_so_far| match answer_so_far {
            Some(answer) => Ok(answer),
            None => match created.next() {
                Some(created @ Registered::Created { .. }) => Ok(created),
                // Another job took the name in the meantime, which may change other answers, so all
                // jobs are decided again.
                Some(_) | None => Err(Failure::Again),
            },
        })
        .collect()
}

/// Returns the existing jobs that have the names of `jobs`.
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
    let created = insert(connection, args).await?;
    let mut labels = Labels::default();
    for job in &args.jobs {
        if let Some((no, _)) = created.get(&job.id) {
            labels.push(no.0, &job.about);
        }
    }
    labels.write(connection, args.tenant).await?;
    let mut answers: Vec<Registered> = Vec::with_capacity(args.jobs.len());
    let holders = if created.len() == args.columns.id.len() {
        HashMap::new()
    } else {
        find_holders(connection, args, &created).await?
    };
    for (job, namesake) in args.jobs.iter().zip(&args.namesakes) {
        let answer = match namesake.map(|first| (answers[first], args.jobs[first].id)) {
            Some((Registered::Created { .. }, first)) => Registered::NameTaken(first),
            Some((taken @ (Registered::NameTaken(_) | Registered::Duplicate(_)), _)) => taken,
            None => match (created.get(&job.id), holders.get(&job.id)) {
                (Some((no, number)), _) => Registered::Created { no: *no, number: *number },
                (None, Some(holder)) => Registered::NameTaken(*holder),
                // The job that had the name was deleted in the meantime.
                (None, None) => return Err(Failure::Again),
            },
        };
        answers.push(answer);
    }
    let mut counts = Counts::default();
    for (id, load) in args.columns.id.iter().zip(&args.columns.loads) {
        if let Some(load) = load.as_ref().filter(|_| created.contains_key(&JobId(*id))) {
            counts.add(args.tenant, load);
        }
    }
    counts.write(connection).await?;
    Ok(answers)
}

/// The internal number of each created job, and its number within the tenant.
type CreatedJobs = HashMap<JobId, (JobNo, i64)>;

async fn insert(connection: &Connection, args: &Args) -> Tried<CreatedJobs> {
    let columns = &args.columns;
    let loads: LoadColumns = columns.loads.iter().map(Option::as_ref).collect();
    let rows = connection
        .rows(
            sql!("register"),
            &[
                &args.now, &args.tenant, &columns.id, &columns.name, &columns.configuration,
                &columns.source_id, &columns.about, &columns.definition, &columns.next_at,
                &columns.slot, &columns.follows_end, &columns.executor, &columns.lane,
                &loads.profile, &loads.cost_us, &loads.cost_stated, &columns.target,
                &columns.dedup_key,
            ],
        )
        .await?;
    let read = |row| Ok((JobId(get(row, 0)?), (JobNo(get(row, 1)?), get(row, 2)?)));
    rows.iter().map(read).collect()
}

/// Returns the existing jobs whose names prevented new jobs from being created.
async fn find_holders(
    connection: &Connection,
    args: &Args,
    created: &CreatedJobs,
) -> Tried<HashMap<JobId, JobId>> {
    let columns = &args.columns;
    let left: Vec<usize> =
        (0..columns.id.len()).filter(|at| !created.contains_key(&JobId(columns.id[*at]))).collect();
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
    /// `before` is the job that was added just before `job`.
    fn push(&mut self, job: &NewJob, before: Option<&NewJob>) -> Result<(), StoreError> {
        let about = &job.about;
        self.id.push(job.id.0);
        self.name.push(about.name.clone());
        self.configuration.push(about.configuration.clone().unwrap_or_default());
        self.source_id.push(about.source_id.clone());
        self.about
            .push(serde_json::to_string(about).map_err(|error| StoreError::Refused(error.into()))?);
        // Jobs of a batch often have equal definitions, and comparing two definitions is faster
        // than serializing one.
        let same = before.filter(|before| before.definition == job.definition);
        let text = match (same, self.definition.last()) {
            (Some(_), Some(text)) => text.clone(),
            _ => definition_text(&job.definition)?,
        };
        self.definition.push(text);
        self.next_at.push(micros(job.next_at));
        self.slot.push(slot(job.next_at));
        self.follows_end.push(job.definition.schedule.follows_its_end());
        self.executor.push(job.definition.executor.kind.clone());
        self.lane.push(job.definition.lane as i16);
        self.target.push(about.target);
        let key = DedupKey::of_job(about, &job.definition);
        self.dedup_key.push(key.map(column));
        self.loads.push(job.next_at.and_then(|at| Load::of(&job.definition, None, at)));
        Ok(())
    }
}
