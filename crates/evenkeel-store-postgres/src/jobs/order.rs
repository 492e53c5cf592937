//! What people ask of jobs that exist.
//!
//! Rows are locked in the order of everybody else: jobs, what waits of them, their states. Then
//! nothing of them begins or ends until this is over, and what they are is read and decided on.

use std::collections::{HashMap, HashSet};

use evenkeel_core::balance::Load;
use evenkeel_core::run::RunStatus;
use evenkeel_core::status::Effect;
use evenkeel_core::{JobId, JobNo, RunKey};
use evenkeel_store::{
    Action, Done, Job, JobChange, Now, Obeyed, Opening, Order, Scope, Standing, StoreError,
};
use uuid::Uuid;

use super::labels;
use super::plan::Plan;
use super::read::get_jobs;
use super::trigger::free_key;
use crate::PostgresStore;
use crate::columns::{get, key, micros, name_list};
use crate::error::{Failure, Tried};
use crate::pool::Connection;
use crate::withdraw::{Chains, close, withdraw};

pub(super) struct Args {
    pub(super) tenant: i32,
    pub(super) now: Option<i64>,
    pub(super) orders: Vec<Order>,
}

pub(super) async fn order(
    store: &PostgresStore,
    scope: &Scope,
    orders: Vec<Order>,
    now: Now,
) -> Result<Vec<Obeyed>, StoreError> {
    let args = Args { tenant: scope.tenant.0, now: micros(now.literal()), orders };
    store
        .api
        .run(args, |connection, args| async move {
            match connection.transaction(run(&connection, &args)).await {
                // Somebody took a name after we had looked: look again.
                Err(failure) if failure.is_taken() => Err(Failure::Again),
                tried => tried,
            }
        })
        .await
}

async fn run(connection: &Connection, args: &Args) -> Tried<Vec<Obeyed>> {
    let ids: Vec<Uuid> = args.orders.iter().map(|order| order.id.0).collect();
    let Locked { mut chains, counted } = lock(connection, args, &ids).await?;
    let now = read_clock(connection, args.now).await?;
    let jobs = get_jobs(connection, &ids, args.tenant).await?;
    let jobs: HashMap<JobId, Job> = jobs.into_iter().map(|job| (job.id, job)).collect();
    let holders = find_holders(connection, args).await?;
    let mut names = HashMap::new();
    let (mut answers, mut plans) = (Vec::with_capacity(ids.len()), Vec::new());
    for order in &args.orders {
        let decided = match jobs.get(&order.id) {
            None => Err(Obeyed::NotFound),
            Some(job) => decide(order, job, &holders, &mut names).map(|effect| (job, effect)),
        };
        match decided {
            Err(answer) => answers.push(Some(answer)),
            Ok((job, effect)) => {
                answers.push(None);
                let run = match order.action {
                    Action::Retry { n, .. } => Some(free_key(connection, job, n, now).await?),
                    _ => None,
                };
                plans.push(Plan { order, job, effect, run });
            }
        }
    }
    let loads: Vec<Option<Load>> = plans.iter().map(Plan::load).collect();
    super::plan::write(connection, &plans, &loads, args.tenant, now).await?;
    end(connection, &plans, &mut chains, now).await?;
    let running = find_running(connection, &plans).await?;
    super::plan::count(connection, &plans, args.tenant).await?;
    let answers = tell(connection, args.tenant, &plans, running, answers).await?;
    super::plan::count_loads(connection, &plans, &loads, &counted).await?;
    Ok(answers)
}

/// What is known of locked jobs that is not read anew afterwards.
struct Locked {
    chains: Vec<Chains>,
    /// The rhythm and the cost of each job that counts.
    counted: HashMap<JobNo, (i64, i64)>,
}

/// Locks all that the orders are about.
async fn lock(connection: &Connection, args: &Args, ids: &[Uuid]) -> Tried<Locked> {
    let sql = include_str!("../../queries/order_lock_jobs.sql");
    let rows = connection.rows(sql, &[&ids, &args.tenant]).await?;
    let found = rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?)));
    let found = found.collect::<Tried<Vec<(i64, Uuid)>>>()?;
    let withdraws =
        |order: &&Order| matches!(order.action, Action::Pause | Action::Cancel | Action::Delete);
    let stopped: HashSet<Uuid> =
        args.orders.iter().filter(withdraws).map(|order| order.id.0).collect();
    let stopped = found.iter().filter(|(_, id)| stopped.contains(id));
    let stopped: Vec<i64> = stopped.map(|(no, _)| *no).collect();
    if !stopped.is_empty() {
        connection.rows(include_str!("../../queries/order_lock_ready.sql"), &[&stopped]).await?;
        connection.rows(include_str!("../../queries/order_lock_wakes.sql"), &[&stopped]).await?;
    }
    let numbers: Vec<i64> = found.into_iter().map(|(no, _)| no).collect();
    let sql = include_str!("../../queries/order_lock_states.sql");
    let rows = connection.rows(sql, &[&numbers]).await?;
    let read = |row| {
        Ok(Chains { job_no: get(row, 0)?, live: get(row, 1)?, head: (get(row, 2)?, get(row, 3)?) })
    };
    let chains = rows.iter().map(read).collect::<Tried<Vec<Chains>>>()?;
    let mut counted = HashMap::new();
    for row in &rows {
        if get(row, 4)? {
            counted.insert(JobNo(get(row, 0)?), (get(row, 5)?, get(row, 6)?));
        }
    }
    Ok(Locked { chains, counted })
}

/// Later than whatever was waited for.
pub(super) async fn read_clock(connection: &Connection, now: Option<i64>) -> Tried<i64> {
    let row = connection.row(include_str!("../../queries/now.sql"), &[&now]).await?;
    Ok(get(&row, 0)?)
}

/// The names that changes want and another job has.
async fn find_holders(
    connection: &Connection,
    args: &Args,
) -> Tried<HashMap<(String, String), JobId>> {
    let wanted: Vec<(String, String)> =
        args.orders.iter().filter_map(|order| wanted_name(&order.action)).collect();
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let (names, configurations): (Vec<String>, Vec<String>) = wanted.iter().cloned().unzip();
    let sql = include_str!("../../queries/register_find_names.sql");
    let rows = connection.rows(sql, &[&args.tenant, &names, &configurations]).await?;
    rows.iter()
        .map(|row| {
            let nth = usize::try_from(get::<i64>(row, 0)? - 1).unwrap_or(usize::MAX);
            let name = wanted.get(nth).cloned().unwrap_or_default();
            Ok((name, JobId(get(row, 1)?)))
        })
        .collect()
}

fn wanted_name(action: &Action) -> Option<(String, String)> {
    let Action::Change(change) = action else { return None };
    let about = change.about.as_ref()?;
    Some((about.name.clone()?, about.configuration.clone().unwrap_or_default()))
}

/// What the order does, or why it does nothing.
fn decide(
    order: &Order,
    job: &Job,
    holders: &HashMap<(String, String), JobId>,
    names: &mut HashMap<(String, String), JobId>,
) -> Result<Effect, Obeyed> {
    let effect = job.facts().obey(order.action.command()).map_err(Obeyed::NotAllowed)?;
    let is_other = order.if_generation.is_some_and(|expected| expected != job.generation)
        || order.if_fired.is_some_and(|expected| expected != job.fired);
    let goes_back = order.action.next_at().is_some_and(|at| Some(at) <= job.last_fired_at);
    if is_other || goes_back {
        return Err(Obeyed::Stale(Box::new(job.clone())));
    }
    if let Some(name) = wanted_name(&order.action) {
        if let Some(holder) = holders.get(&name).filter(|holder| **holder != job.id) {
            return Err(Obeyed::NameTaken(*holder));
        }
        if let Some(other) = names.insert(name, job.id) {
            return Err(Obeyed::NameTaken(other));
        }
    }
    Ok(effect)
}

/// Takes away what waits of jobs that stop, and opens what waits of those that are redefined.
async fn end(
    connection: &Connection,
    plans: &[Plan<'_>],
    chains: &mut [Chains],
    now: i64,
) -> Tried<()> {
    let stopped = plans.iter().filter(|plan| plan.effect.withdraws);
    let stopped: Vec<i64> = stopped.map(|plan| plan.job.no.0).collect();
    if !stopped.is_empty() {
        let withdrawn = withdraw(connection, &stopped).await?;
        close(connection, chains, withdrawn, RunStatus::Cancelled, now).await?;
    }
    for plan in plans {
        match &plan.order.action {
            Action::Change(change) => {
                if plan.job.waiting > 0 {
                    open_anew(connection, plan.job, change, now).await?;
                }
                // Most changes touch nothing that lists ask for.
                let about = change.about.as_ref();
                let about = about.filter(|about| about.metadata != plan.job.about.metadata);
                let (old, new) = (&plan.job.definition, change.definition.as_ref());
                let definition = new
                    .filter(|new| new.executor.kind != old.executor.kind || new.lane != old.lane);
                let (tenant, no) = (plan.job.tenant.0, plan.job.no.0);
                labels::write_anew(connection, tenant, no, about, definition).await?;
            }
            Action::Delete => labels::forget(connection, plan.job.no.0).await?,
            _ => {}
        }
    }
    Ok(())
}

/// What waits in the queue may be claimed when and where the definition says.
async fn open_anew(connection: &Connection, job: &Job, change: &JobChange, now: i64) -> Tried<()> {
    let Some(definition) = &change.definition else { return Ok(()) };
    let average = definition.average(job.history.average_good_duration);
    let opening = Opening::of(definition, average, evenkeel_core::Timestamp::from_micros(now));
    let forbidden = name_list(&definition.dont_run_on_nodes);
    connection
        .change(
            include_str!("../../queries/order_open_ready.sql"),
            &[&job.no.0, &micros(opening.from), &micros(opening.until), &forbidden],
        )
        .await?;
    Ok(())
}

/// What runs of the jobs. Of those that are over it is asked to end.
async fn find_running(
    connection: &Connection,
    plans: &[Plan<'_>],
) -> Tried<HashMap<JobNo, Vec<RunKey>>> {
    let (mut numbers, mut counts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for plan in plans {
        let running = plan.job.live.saturating_sub(plan.job.waiting);
        if running > 0 {
            numbers.push(plan.job.no.0);
            counts.push(i64::from(running));
            ends.push(plan.effect.ends_running);
        }
    }
    let mut running: HashMap<JobNo, Vec<RunKey>> = HashMap::new();
    if numbers.is_empty() {
        return Ok(running);
    }
    let sql = include_str!("../../queries/order_find_running.sql");
    for row in connection.rows(sql, &[&numbers, &counts, &ends]).await? {
        let key = key(&row, 0)?;
        running.entry(key.job_no).or_default().push(key);
    }
    running.values_mut().for_each(|keys| keys.sort_unstable());
    Ok(running)
}

/// Fills in the answers of orders that were obeyed.
async fn tell(
    connection: &Connection,
    tenant: i32,
    plans: &[Plan<'_>],
    mut running: HashMap<JobNo, Vec<RunKey>>,
    answers: Vec<Option<Obeyed>>,
) -> Tried<Vec<Obeyed>> {
    let is_left = |plan: &&Plan<'_>| plan.effect.standing != Standing::Deleted;
    let left: Vec<Uuid> = plans.iter().filter(is_left).map(|plan| plan.job.id.0).collect();
    let after =
        if left.is_empty() { Vec::new() } else { get_jobs(connection, &left, tenant).await? };
    let mut after: HashMap<JobNo, Job> = after.into_iter().map(|job| (job.no, job)).collect();
    let mut done = plans.iter().map(|plan| {
        let no = plan.job.no;
        let running = running.remove(&no).unwrap_or_default();
        Obeyed::Done(Box::new(Done { job: after.remove(&no), running, run: plan.run }))
    });
    answers.into_iter().map(|answer| answer.or_else(|| done.next()).ok_or(Failure::Again)).collect()
}
