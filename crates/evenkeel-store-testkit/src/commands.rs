//! Orders in the short forms that cases use.

use std::future::Future;

use evenkeel_core::{AttemptKey, JobId, Timestamp};
use evenkeel_store::{
    Action, Applied, CommandEffect, Job, JobChange, JobCommand, JobStore, Now, Scope, StoreError,
};

/// One order at a time, whatever the job's generation is.
pub trait Orders {
    /// Any of them.
    fn order_one(
        &self,
        scope: &Scope,
        order: JobCommand,
        now: Now,
    ) -> impl Future<Output = Result<Applied, StoreError>> + Send;

    /// Without a condition.
    fn act(
        &self,
        scope: &Scope,
        id: JobId,
        action: Action,
        now: Now,
    ) -> impl Future<Output = Result<Applied, StoreError>> + Send {
        self.order_one(scope, JobCommand { id, if_generation: None, if_fired: None, action }, now)
    }

    /// Changes a job.
    fn update(
        &self,
        scope: &Scope,
        id: JobId,
        change: JobChange,
        now: Now,
    ) -> impl Future<Output = Result<Applied, StoreError>> + Send {
        self.act(scope, id, Action::Change(Box::new(change)), now)
    }

    /// Deletes a job.
    fn delete(
        &self,
        scope: &Scope,
        id: JobId,
        now: Now,
    ) -> impl Future<Output = Result<Applied, StoreError>> + Send {
        self.act(scope, id, Action::Delete, now)
    }
}

impl<S: JobStore + ?Sized> Orders for S {
    async fn order_one(
        &self,
        scope: &Scope,
        order: JobCommand,
        now: Now,
    ) -> Result<Applied, StoreError> {
        let mut answers = self.apply_commands(scope, vec![order], now).await?;
        assert_eq!(answers.len(), 1, "one order has one answer");
        Ok(answers.remove(0))
    }
}

/// It was deleted, and these attempts were asked to end.
pub fn gone(running: Vec<AttemptKey>) -> Applied {
    Applied::Done(Box::new(CommandEffect { job: None, running, withdrawn: Vec::new(), run: None }))
}

/// What an order did that must have been obeyed.
pub fn done(obeyed: Applied) -> CommandEffect {
    match obeyed {
        Applied::Done(done) => *done,
        other => panic!("not obeyed: {other:?}"),
    }
}

/// The job after an order that must have been obeyed.
pub fn job_after(obeyed: Applied) -> Job {
    done(obeyed).job.expect("the job is there")
}

/// It goes on, from this next time on.
pub const fn resume(next_at: Option<Timestamp>) -> Action {
    Action::Resume { next_at }
}
