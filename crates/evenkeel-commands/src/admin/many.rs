//! Sets the status of the latest runs of many jobs, or retries the latest runs of many jobs.

use std::collections::{HashMap, HashSet};

use evenkeel_core::JobId;
use evenkeel_store::{Applied, COMMANDS_MAX, Scope};
use futures::{StreamExt as _, stream};

use super::{AdminJob, AdminStatus, CONCURRENCY, JobRef};
use crate::{CommandError, ControlCommand, Jobs, Result};

/// One result per job, in the order of the request.
pub type EachJob = Vec<Result<AdminJob>>;

/// Returns false once the time limit of the request has passed.
type HasTime<'a> = &'a (dyn Fn() -> bool + Send + Sync);

impl Jobs {
    /// Sets the status of the latest run of each job, in the order of the request. Once `has_time`
    /// returns false, the remaining jobs stay unchanged and fail with
    /// [`OutOfTime`](CommandError::OutOfTime).
    pub async fn set_status_of_many(
        &self,
        scope: &Scope,
        refs: &[JobRef],
        wanted: AdminStatus,
        has_time: HasTime<'_>,
    ) -> Result<EachJob> {
        let ids = self.ids_of(scope, refs).await?;
        let set = |id: Option<JobId>| async move {
            let id = id.ok_or(CommandError::NotFound)?;
            if !has_time() {
                return Err(CommandError::OutOfTime);
            }
            self.set_status(scope, id, wanted).await
        };
        Ok(each_of(ids, set).await)
    }

    /// Retries the latest run of each job, in the order of the request. Once `has_time` returns
    /// false, the remaining jobs stay unchanged and fail with
    /// [`OutOfTime`](CommandError::OutOfTime).
    pub async fn admin_retry_many(
        &self,
        scope: &Scope,
        refs: &[JobRef],
        has_time: HasTime<'_>,
    ) -> Result<EachJob> {
        let ids = self.ids_of(scope, refs).await?;
        let mut answers: HashMap<JobId, Applied> = HashMap::new();
        let known: Vec<JobId> = ids.iter().flatten().copied().collect();
        for some in known.chunks(COMMANDS_MAX).take_while(|_| has_time()) {
            let new: Vec<JobId> =
                some.iter().filter(|id| !answers.contains_key(id)).copied().collect();
            let applied = self.control_many(scope, &new, ControlCommand::Retry, None).await;
            let is_done = answers.values().any(|answer| matches!(answer, Applied::Done(_)));
            let applied = applied.map_err(|error| error.after(is_done))?;
            answers.extend(new.into_iter().zip(applied));
        }
        let now = self.store.now().await?;
        let answers = &answers;
        let report = |id: Option<JobId>| async move {
            let id = id.ok_or(CommandError::NotFound)?;
            match answers.get(&id) {
                None => Err(CommandError::OutOfTime),
                Some(Applied::Done(done)) => match &done.job {
                    Some(job) => Ok(self.summarize(job.clone(), now)),
                    None => Err(CommandError::NotFound),
                },
                // The admin API treats cancelled runs as failed, so it can retry the run of a job
                // for which the store refused the retry command.
                Some(Applied::NotAllowed(_)) if has_time() => self.admin_retry(scope, id).await,
                Some(Applied::NotAllowed(_)) => Err(CommandError::OutOfTime),
                other => Err(CommandError::not_applied(other.cloned())),
            }
        };
        Ok(each_of(ids, report).await)
    }
}

/// Calls `act` for each job, for several jobs concurrently. A job that is listed twice is processed
/// again after all other jobs, so that its second result is current.
async fn each_of<F>(ids: Vec<Option<JobId>>, act: impl Fn(Option<JobId>) -> F) -> EachJob
where
    F: Future<Output = Result<AdminJob>>,
{
    let mut known = HashSet::new();
    let is_first: Vec<bool> = ids.iter().map(|id| id.is_none_or(|id| known.insert(id))).collect();
    let first = ids.iter().zip(&is_first).filter(|(_, is_first)| **is_first);
    let first: Vec<_> = first.map(|(id, _)| act(*id)).collect();
    let first: EachJob = stream::iter(first).buffered(CONCURRENCY).collect().await;
    let mut first = first.into_iter();
    let mut each = Vec::with_capacity(ids.len());
    for (id, is_first) in ids.into_iter().zip(is_first) {
        each.push(match is_first.then(|| first.next()).flatten() {
            Some(answer) => answer,
            None => act(id).await,
        });
    }
    each
}
