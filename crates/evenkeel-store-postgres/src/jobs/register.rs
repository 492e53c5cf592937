//! Registering jobs.

use std::collections::HashMap;

use evenkeel_core::balance::Load;
use evenkeel_core::dedup::DedupKey;
use evenkeel_core::{JobId, JobNo};
use evenkeel_store::{Applied, JobCommand, NewJob, Registered, StoreError};

use super::commands;
use super::labels::Labels;
use crate::balance::{Counts, LoadColumns};
use crate::connection::{Connection, Params};
use crate::dedup::{Answers, Name, Names, are_keyed, decide, find_duplicates, key_column, name_of};
use crate::error::{Failure, Tried};
use crate::rows::{column, get, json, micros, position, slot};

pub(super) async fn register(
    connection: &Connection,
    tenant: i32,
    jobs: &[NewJob],
    now: Option<i64>,
) -> Tried<Vec<Registered>> {
    if !are_keyed(jobs) {
        return connection.transaction(create(connection, tenant, jobs, now)).await;
    }
    // Some jobs have deduplication keys. Duplicates that are found without locks need no
    // transaction.
    let answers_so_far = find_duplicates(connection, tenant, jobs, now).await?;
    let left = left(jobs, &answers_so_far);
    let mut answers = Vec::new();
    if !left.is_empty() {
        answers = connection.transaction(create_keyed(connection, tenant, &left, now)).await?;
    }
    let mut answers = answers.into_iter();
    let answer =
        |answer_so_far: Option<_>| answer_so_far.or_else(|| answers.next()).ok_or(Failure::Again);
    answers_so_far.into_iter().map(answer).collect()
}

pub(super) async fn register_paused(
    connection: &Connection,
    tenant: i32,
    jobs: &[NewJob; 1],
    now: Option<i64>,
) -> Tried<Registered> {
    let created = if are_keyed(jobs) {
        create_keyed(connection, tenant, jobs, now).await?
    } else {
        create(connection, tenant, jobs, now).await?
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

/// Returns the jobs of the batch whose registration is not decided yet.
fn left(jobs: &[NewJob], answers_so_far: &Answers) -> Vec<NewJob> {
    let is_left = |(job, answer_so_far): (&NewJob, &Option<Registered>)| {
        answer_so_far.is_none().then(|| job.clone())
    };
    jobs.iter().zip(answers_so_far).filter_map(is_left).collect()
}

/// Creates jobs of which some have deduplication keys. The function first decides which jobs are
/// created and which are duplicates.
async fn create_keyed(
    connection: &Connection,
    tenant: i32,
    jobs: &[NewJob],
    now: Option<i64>,
) -> Tried<Vec<Registered>> {
    let (answers_so_far, keys) = decide(connection, tenant, jobs, now).await?;
    let jobs = left(jobs, &answers_so_far);
    let mut created = Vec::new().into_iter();
    if !jobs.is_empty() {
        created = create(connection, tenant, &jobs, now).await?.into_iter();
    }
    keys.write(connection).await?;
    answers_so_far
        .into_iter()
        .map(|answer_so_far| match answer_so_far {
            Some(answer) => Ok(answer),
            None => match created.next() {
                Some(created @ Registered::Created { .. }) => Ok(created),
                // Another job took the name in the meantime, so the registration of all jobs is
                // decided again.
                Some(_) | None => Err(Failure::Again),
            },
        })
        .collect()
}

/// Returns the existing jobs that have the names `wanted`.
pub(crate) async fn find_names<'a>(
    connection: &Connection,
    tenant: i32,
    wanted: Vec<Name<'a>>,
) -> Tried<Names<'a>> {
    let mut found = HashMap::new();
    if wanted.is_empty() {
        return Ok(found);
    }
    let (names, configurations): (Vec<&str>, Vec<&str>) = wanted.iter().copied().unzip();
    let params: Params<'_> = &[&tenant, &names, &configurations];
    for row in connection.rows(sql!("register_find_names"), params).await? {
        let holder = JobId(get(&row, 1)?);
        found.extend(wanted.get(position(&row, 0)?).map(|name| (*name, holder)));
    }
    Ok(found)
}

/// Creates jobs, except those whose name an earlier job of the batch or an existing job has.
async fn create(
    connection: &Connection,
    tenant: i32,
    jobs: &[NewJob],
    now: Option<i64>,
) -> Tried<Vec<Registered>> {
    let namesakes = namesakes(jobs);
    let new = jobs.iter().zip(&namesakes).filter(|(_, namesake)| namesake.is_none());
    let new: Vec<&NewJob> = new.map(|(job, _)| job).collect();
    let loads = column(&new, |job| job.next_at.and_then(|at| Load::of(&job.definition, None, at)));
    let created = insert(connection, tenant, &new, &loads, now).await?;
    let mut labels = Labels::default();
    for job in &new {
        if let Some((no, _)) = created.get(&job.id) {
            labels.push(no.0, &job.about);
        }
    }
    labels.write(connection, tenant).await?;
    let taken = new.iter().filter(|job| !created.contains_key(&job.id));
    let taken: Vec<Name<'_>> = taken.filter_map(|job| name_of(job)).collect();
    let holders = find_names(connection, tenant, taken).await?;
    let mut answers: Vec<Registered> = Vec::with_capacity(jobs.len());
    for (job, namesake) in jobs.iter().zip(&namesakes) {
        let holder = || name_of(job).and_then(|name| holders.get(&name));
        let answer = match namesake.map(|first| (answers[first], jobs[first].id)) {
            Some((Registered::Created { .. }, first)) => Registered::NameTaken(first),
            Some((taken @ (Registered::NameTaken(_) | Registered::Duplicate(_)), _)) => taken,
            None => match (created.get(&job.id), holder()) {
                (Some((no, number)), _) => Registered::Created { no: *no, number: *number },
                (None, Some(holder)) => Registered::NameTaken(*holder),
                // The job that had the name was deleted in the meantime.
                (None, None) => return Err(Failure::Again),
            },
        };
        answers.push(answer);
    }
    let mut counts = Counts::default();
    for (job, load) in new.iter().zip(&loads) {
        if let Some(load) = load.as_ref().filter(|_| created.contains_key(&job.id)) {
            counts.add(tenant, load);
        }
    }
    counts.write(connection).await?;
    Ok(answers)
}

/// Inserts the jobs whose names no other job has. Returns the internal number of each inserted job,
/// and its number within the tenant.
async fn insert(
    connection: &Connection,
    tenant: i32,
    jobs: &[&NewJob],
    loads: &[Option<Load>],
    now: Option<i64>,
) -> Tried<HashMap<JobId, (JobNo, i64)>> {
    let abouts = jobs.iter().map(|job| json(&job.about)).collect::<Result<Vec<String>, _>>()?;
    let loads: LoadColumns = loads.iter().map(Option::as_ref).collect();
    let params: Params<'_> = &[
        &now,
        &tenant,
        &column(jobs, |job| job.id.0),
        &column(jobs, |job| job.about.name.as_deref()),
        &column(jobs, |job| job.about.configuration.as_deref().unwrap_or_default()),
        &column(jobs, |job| job.about.source_id.as_deref()),
        &abouts,
        &definition_texts(jobs)?,
        &column(jobs, |job| micros(job.next_at)),
        &column(jobs, |job| slot(job.next_at)),
        &column(jobs, |job| job.definition.schedule.follows_its_end()),
        &column(jobs, |job| job.definition.executor.kind.as_str()),
        &column(jobs, |job| job.definition.lane as i16),
        &loads.profile,
        &loads.cost_us,
        &loads.cost_stated,
        &column(jobs, |job| job.about.target),
        &column(jobs, |job| DedupKey::of_job(&job.about, &job.definition).map(key_column)),
    ];
    let rows = connection.rows(sql!("register"), params).await?;
    let read = |row| Ok((JobId(get(row, 0)?), (JobNo(get(row, 1)?), get(row, 2)?)));
    rows.iter().map(read).collect()
}

/// Returns the definitions of jobs as JSON. Jobs of a batch often have equal definitions, and
/// comparing two definitions is faster than serializing one.
fn definition_texts(jobs: &[&NewJob]) -> Result<Vec<String>, StoreError> {
    let mut texts: Vec<String> = Vec::with_capacity(jobs.len());
    for (nth, job) in jobs.iter().enumerate() {
        let text = match nth.checked_sub(1) {
            Some(before) if jobs[before].definition == job.definition => texts[before].clone(),
            _ => json(&job.definition)?,
        };
        texts.push(text);
    }
    Ok(texts)
}

fn namesakes(jobs: &[NewJob]) -> Vec<Option<usize>> {
    let mut seen: HashMap<Name<'_>, usize> = HashMap::new();
    jobs.iter()
        .enumerate()
        .map(|(position, job)| {
            let first = *seen.entry(name_of(job)?).or_insert(position);
            (first != position).then_some(first)
        })
        .collect()
}
