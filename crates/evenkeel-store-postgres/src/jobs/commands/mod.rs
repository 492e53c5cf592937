//! Commands on jobs: pause, resume, cancel, change, delete, retry.
//!
//! Locks rows in the order that all transactions use: jobs, their pending attempts, their states.
//! While the rows of a job are locked, no attempt of the job starts or finishes. The jobs are read
//! and the commands decided only after all rows are locked. An attempt that became pending while
//! the transaction waited for locks is locked too. If another transaction has locked a new pending
//! attempt first, the transaction of the commands is rolled back and repeated.

mod write;

use std::collections::{HashMap, HashSet};

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::balance::Load;
use evenkeel_core::dedup::DedupKey;
use evenkeel_core::limit::KeyLimit;
use evenkeel_core::status::{Command, Effect};
use evenkeel_core::{AttemptKey, Definition, JobId, JobNo, Origin, Timestamp};
use evenkeel_store::{
    Action, Applied, ClaimWindow, CommandEffect, DedupClaim, Job, JobCommand, JobState,
    changes_text,
};
use uuid::Uuid;

use self::write::Plan;
use super::labels::ChangedLabels;
use super::read::get_jobs;
use super::register::find_names;
use super::search_index;
use super::trigger::free_keys;
use crate::attempts::{JobRuns, close_runs, withdraw_pending};
use crate::connection::{Connection, Params};
use crate::dedup::{Keys, Name, Names, key_column};
use crate::error::{Failure, Tried};
use crate::rows::{column, get, key, micros, name_list};

pub(super) struct Args {
    pub(super) tenant: i32,
    pub(super) now: Option<i64>,
    pub(super) commands: Vec<JobCommand>,
}

pub(super) async fn run(connection: &Connection, args: &Args) -> Tried<Vec<Applied>> {
    let ids: Vec<Uuid> = args.commands.iter().map(|command| command.id.0).collect();
    let Locked { mut runs, counted } = lock(connection, args, &ids).await?;
    let now = read_clock(connection, args.now).await?;
    let jobs = get_jobs(connection, &ids, args.tenant).await?;
    let jobs: HashMap<JobId, Job> = jobs.into_iter().map(|job| (job.id, job)).collect();
    let mut keys = lock_keys(connection, args, &jobs, now).await?;
    let wanted = args.commands.iter().filter_map(|command| wanted_name(&command.action));
    let holders = find_names(connection, args.tenant, wanted.collect()).await?;
    let mut names = HashMap::new();
    let (mut answers, mut plans) = (Vec::with_capacity(ids.len()), Vec::new());
    for command in &args.commands {
        let decided = match jobs.get(&command.id) {
            None => Err(Applied::NotFound),
            Some(job) => decide(command, job, &holders, &mut names)
                .and_then(|effect| take_key(command, job, keys.as_mut(), now).map(|()| effect))
                .map(|effect| (job, effect)),
        };
        match decided {
            Err(answer) => answers.push(Some(answer)),
            Ok((job, effect)) => {
                answers.push(None);
                plans.push(Plan { command, job, effect, run: None });
            }
        }
    }
    begin(connection, &mut plans, now).await?;
    let loads: Vec<Option<Load>> = plans.iter().map(Plan::load).collect();
    if let Some(keys) = keys {
        keys.write(connection).await?;
        mark_keys(connection, &plans).await?;
    }
    write::write(connection, &plans, &loads, args.tenant, now).await?;
    let withdrawn = end(connection, &plans, &mut runs, args.tenant, now).await?;
    let mut attempts = Attempts { running: find_running(connection, &plans).await?, withdrawn };
    write::count(connection, &plans, args.tenant).await?;
    let answers = answer_applied(connection, args.tenant, &plans, &mut attempts, answers).await?;
    write::count_loads(connection, &plans, &loads, &counted).await?;
    Ok(answers)
}

/// The rows that the locking statements returned.
struct Locked {
    runs: Vec<JobRuns>,
    /// Load profile and cost of each job that is counted under a load profile.
    counted: HashMap<JobNo, (i64, i64)>,
}

/// Locks all rows that the commands change.
async fn lock(connection: &Connection, args: &Args, ids: &[Uuid]) -> Tried<Locked> {
    let rows = connection.rows(sql!("command_lock_jobs"), &[&ids, &args.tenant]).await?;
    let found = rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?)));
    let found = found.collect::<Tried<Vec<(i64, Uuid)>>>()?;
    let touched = args.commands.iter().filter(|command| changes_pending(&command.action));
    let touched: HashSet<Uuid> = touched.map(|command| command.id.0).collect();
    let touched = found.iter().filter(|(_, id)| touched.contains(id));
    let touched: Vec<i64> = touched.map(|(no, _)| *no).collect();
    if !touched.is_empty() {
        connection.rows(sql!("command_lock_ready"), &[&touched]).await?;
        connection.rows(sql!("command_lock_delayed"), &[&touched]).await?;
    }
    let numbers: Vec<i64> = found.into_iter().map(|(no, _)| no).collect();
    let rows = connection.rows(sql!("command_lock_states"), &[&numbers]).await?;
    if !touched.is_empty() {
        let row = connection.row(sql!("command_lock_rest"), &[&touched]).await?;
        if !get::<bool>(&row, 0)? {
            // Another transaction is taking a pending attempt of the jobs. The store method starts
            // again, because then its first lock waits for the transaction that takes the attempt.
            return Err(Failure::Again);
        }
    }
    let runs = rows.iter().map(JobRuns::read).collect::<Tried<Vec<JobRuns>>>()?;
    let mut counted = HashMap::new();
    for row in &rows {
        if get(row, "counted")? {
            let counts_for = (get(row, "load_profile")?, get(row, "cost_us")?);
            counted.insert(JobNo(get(row, "job_no")?), counts_for);
        }
    }
    Ok(Locked { runs, counted })
}

/// True if the action withdraws or changes pending attempts. A claim may lock rows of pending
/// attempts without taking the attempts, because it locks more rows than it needs.
fn changes_pending(action: &Action) -> bool {
    match action {
        Action::Change(change) => change.definition.is_some(),
        _ => matches!(action.command(), Command::Pause | Command::Cancel | Command::Delete),
    }
}

/// Reads the clock once the locks are held, so that the time is later than all changes by earlier
/// holders of the locks.
pub(crate) async fn read_clock(connection: &Connection, now: Option<i64>) -> Tried<i64> {
    get(&connection.row(sql!("now"), &[&now]).await?, 0)
}

/// Returns the name that a change command gives to its job.
fn wanted_name(action: &Action) -> Option<Name<'_>> {
    let Action::Change(change) = action else { return None };
    let about = change.about.as_ref()?;
    Some((about.name.as_deref()?, about.configuration.as_deref().unwrap_or_default()))
}

/// Returns the effect of the command, or why the command is rejected.
fn decide<'a>(
    command: &'a JobCommand,
    job: &Job,
    holders: &Names<'a>,
    names: &mut Names<'a>,
) -> Result<Effect, Applied> {
    let effect = job.facts().apply(command.action.command()).map_err(Applied::NotAllowed)?;
    let is_other = command.if_generation.is_some_and(|expected| expected != job.generation)
        || command.if_fired.is_some_and(|expected| expected != job.fired);
    let goes_back = command.action.next_at().is_some_and(|at| Some(at) <= job.last_fired_at);
    if is_other || goes_back {
        return Err(Applied::Stale(Box::new(job.clone())));
    }
    if let Some(name) = wanted_name(&command.action) {
        if let Some(holder) = holders.get(&name).filter(|holder| **holder != job.id) {
            return Err(Applied::NameTaken(*holder));
        }
        if let Some(other) = names.insert(name, job.id) {
            return Err(Applied::NameTaken(other));
        }
    }
    Ok(effect)
}

/// Locks the deduplication keys that commands take or release. Deduplication keys are locked before
/// job names are taken, because a registration holds keys while it waits for names.
async fn lock_keys(
    connection: &Connection,
    args: &Args,
    jobs: &HashMap<JobId, Job>,
    now: i64,
) -> Tried<Option<Keys>> {
    let mut wanted: Vec<(DedupKey, JobId)> = Vec::new();
    for command in &args.commands {
        let Some(job) = jobs.get(&command.id) else { continue };
        let new = DedupClaim::by_command(command, job, Timestamp::from_micros(now))
            .map(|claim| claim.key);
        let keys = new.into_iter().chain(DedupClaim::released_key(command, job));
        wanted.extend(keys.map(|key| (key, job.id)));
    }
    if wanted.is_empty() {
        return Ok(None);
    }
    Keys::lock(connection, args.tenant, wanted.into_iter(), Some(now)).await.map(Some)
}

/// Takes the deduplication key that the job needs and releases the key that it had.
fn take_key(
    command: &JobCommand,
    job: &Job,
    keys: Option<&mut Keys>,
    now: i64,
) -> Result<(), Applied> {
    let Some(keys) = keys else { return Ok(()) };
    let now = Timestamp::from_micros(now);
    let wanted = DedupClaim::by_command(command, job, now);
    if let Some(held) = wanted.as_ref().and_then(|wanted| keys.kept_out_by(wanted, now)) {
        return Err(Applied::Duplicate(held.job));
    }
    if let Some(old) = DedupClaim::released_key(command, job) {
        keys.release(old, job.id);
    }
    if let Some(wanted) = &wanted {
        keys.take(wanted);
    }
    Ok(())
}

async fn mark_keys(connection: &Connection, plans: &[Plan<'_>]) -> Tried<()> {
    let (mut numbers, mut keys) = (Vec::new(), Vec::new());
    for plan in plans {
        let Action::Change(change) = &plan.command.action else { continue };
        let about = change.about.as_ref().unwrap_or(&plan.job.about);
        let definition = change.definition.as_ref().unwrap_or(&plan.job.definition);
        numbers.push(plan.job.no.0);
        keys.push(DedupKey::of_job(about, definition).map(key_column));
    }
    if !numbers.is_empty() {
        connection.change(sql!("command_mark_dedup"), &[&numbers, &keys]).await?;
    }
    Ok(())
}

/// Finds unused attempt keys for the runs that the commands start.
async fn begin(connection: &Connection, plans: &mut [Plan<'_>], now: i64) -> Tried<()> {
    let number = |action: &Action| match action {
        Action::Retry { n, .. } => Some(*n),
        _ => None,
    };
    let begun = plans.iter().filter_map(|plan| Some((plan.job, number(&plan.command.action)?)));
    let wanted: Vec<(&Job, u32)> = begun.collect();
    let mut free = free_keys(connection, Origin::Trigger, &wanted, now).await?.into_iter();
    for plan in plans.iter_mut().filter(|plan| number(&plan.command.action).is_some()) {
        plan.run = free.next();
    }
    Ok(())
}

type AttemptsByJob = HashMap<JobNo, Vec<AttemptKey>>;

struct Attempts {
    running: AttemptsByJob,
    withdrawn: AttemptsByJob,
}

/// Withdraws the pending attempts of jobs that stop, and updates the pending attempts of jobs with
/// a new definition. Returns the withdrawn attempts.
async fn end(
    connection: &Connection,
    plans: &[Plan<'_>],
    runs: &mut [JobRuns],
    tenant: i32,
    now: i64,
) -> Tried<AttemptsByJob> {
    let mut taken = AttemptsByJob::new();
    let stopped = write::numbers_of(plans, |plan| plan.effect.withdraws);
    if !stopped.is_empty() {
        let withdrawn = withdraw_pending(connection, &stopped).await?;
        for key in close_runs(connection, runs, withdrawn, AttemptStatus::Cancelled, now).await? {
            taken.entry(key.job_no).or_default().push(key);
        }
    }
    write_windows(connection, plans, now).await?;
    let mut labels = ChangedLabels::default();
    for plan in plans {
        match &plan.command.action {
            Action::Change(change) => labels.push(plan.job, change),
            Action::Delete => labels.delete(plan.job.no),
            _ => {}
        }
    }
    labels.write(connection, tenant).await?;
    let unindexed = write::numbers_of(plans, |plan| match &plan.command.action {
        Action::Change(change) => changes_text(plan.job, change),
        action => matches!(action, Action::Delete),
    });
    search_index::add(connection, tenant, &unindexed).await?;
    Ok(taken)
}

/// Updates the claim windows, priorities and limits of the pending attempts of jobs with a new
/// definition.
async fn write_windows(connection: &Connection, plans: &[Plan<'_>], now: i64) -> Tried<()> {
    let changed = plans.iter().filter(|plan| plan.job.waiting > 0).filter_map(|plan| {
        let definition = plan.definition()?;
        let average = definition.average(plan.job.history.average_good_duration);
        let window = ClaimWindow::of(definition, average, Timestamp::from_micros(now));
        Some((plan.job.no.0, definition, window, definition.key_limit()))
    });
    let changed: Vec<(i64, &Definition, ClaimWindow, Option<KeyLimit>)> = changed.collect();
    if changed.is_empty() {
        return Ok(());
    }
    let limits = || changed.iter().map(|(.., limit)| *limit);
    let params: Params<'_> = &[
        &column(&changed, |(job, ..)| *job),
        &column(&changed, |(_, _, window, _)| micros(window.from)),
        &column(&changed, |(_, _, window, _)| micros(window.until)),
        &column(&changed, |(_, definition, ..)| name_list(&definition.dont_run_on_nodes)),
        &column(&changed, |(_, definition, ..)| i16::from(definition.priority.get())),
        &column(limits(), |limit| limit.map(|limit| limit.digest.as_bytes().to_vec())),
        &column(limits(), |limit| limit.map(|limit| limit.most.cast_signed())),
    ];
    connection.change(sql!("command_open_ready"), params).await?;
    Ok(())
}

/// Returns the running attempts of the jobs. The running attempts of cancelled or deleted jobs are
/// marked as cancelled.
async fn find_running(connection: &Connection, plans: &[Plan<'_>]) -> Tried<AttemptsByJob> {
    let (mut numbers, mut counts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for plan in plans {
        let running = plan.job.live.saturating_sub(plan.job.waiting);
        if running > 0 {
            numbers.push(plan.job.no.0);
            counts.push(i64::from(running));
            ends.push(plan.effect.ends_running);
        }
    }
    let mut running = AttemptsByJob::new();
    if numbers.is_empty() {
        return Ok(running);
    }
    let params: Params<'_> = &[&numbers, &counts, &ends];
    for row in connection.rows(sql!("command_find_running"), params).await? {
        let key = key(&row)?;
        running.entry(key.job_no).or_default().push(key);
    }
    running.values_mut().for_each(|keys| keys.sort_unstable());
    Ok(running)
}

async fn answer_applied(
    connection: &Connection,
    tenant: i32,
    plans: &[Plan<'_>],
    attempts: &mut Attempts,
    answers: Vec<Option<Applied>>,
) -> Tried<Vec<Applied>> {
    let is_left = |plan: &&Plan<'_>| plan.effect.state != JobState::Deleted;
    let left: Vec<Uuid> = plans.iter().filter(is_left).map(|plan| plan.job.id.0).collect();
    let after =
        if left.is_empty() { Vec::new() } else { get_jobs(connection, &left, tenant).await? };
    let mut after: HashMap<JobNo, Job> = after.into_iter().map(|job| (job.no, job)).collect();
    let mut done = plans.iter().map(|plan| {
        let no = plan.job.no;
        let running = attempts.running.remove(&no).unwrap_or_default();
        let withdrawn = attempts.withdrawn.remove(&no).unwrap_or_default();
        let job = after.remove(&no);
        Applied::Done(Box::new(CommandEffect { job, running, withdrawn, run: plan.run }))
    });
    answers.into_iter().map(|answer| answer.or_else(|| done.next()).ok_or(Failure::Again)).collect()
}
