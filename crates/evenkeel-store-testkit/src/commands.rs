//! Applies single commands to jobs.

use std::future::Future;

use evenkeel_core::{AttemptKey, JobId, Timestamp};
use evenkeel_store::{
    Action, Applied, CommandEffect, Job, JobChange, JobCommand, JobStore, Now, Scope, StoreError,
};

/// Helper functions that apply a single command to one job.
pub trait Commands {
    fn apply_one(
        &self,
        scope: &Scope,
        command: JobCommand,
        now: Now,
    ) -> impl Future<Output = Result<Applied, StoreError>> + Send;

    /// Applies an action, whatever the generation of the job.
    fn act(
        &self,
        scope: &Scope,
        id: JobId,
        action: Action,
        now: Now,
    ) -> impl Future<Output = Result<Applied, StoreError>> + Send {
        self.apply_one(scope, JobCommand { id, if_generation: None, if_fired: None, action }, now)
    }

    fn update(
        &self,
        scope: &Scope,
        id: JobId,
        change: JobChange,
        now: Now,
    ) -> impl Future<Output = Result<Applied, StoreError>> + Send {
        self.act(scope, id, Action::Change(Box::new(change)), now)
    }

    fn delete(
        &self,
        scope: &Scope,
        id: JobId,
        now: Now,
    ) -> impl Future<Output = Result<Applied, StoreError>> + Send {
        self.act(scope, id, Action::Delete, now)
    }
}

impl<S: JobStore + ?Sized> Commands for S {
    async fn apply_one(
        &self,
        scope: &Scope,
        command: JobCommand,
        now: Now,
    ) -> Result<Applied, StoreError> {
        let mut answers = self.apply_commands(scope, vec![command], now).await?;
        assert_eq!(answers.len(), 1, "one command has one result");
        Ok(answers.remove(0))
    }
}

/// Returns the expected result of deleting a job, if the attempts in `running` are asked to stop.
pub fn gone(running: Vec<AttemptKey>) -> Applied {
    Applied::Done(Box::new(CommandEffect { job: None, running, withdrawn: Vec::new(), run: None }))
}

/// Returns the effect of a command that must have been accepted.
pub fn done(applied: Applied) -> CommandEffect {
    match applied {
        Applied::Done(done) => *done,
        other => panic!("not applied: {other:?}"),
    }
}

/// Returns the job after a command that must have been accepted.
pub fn job_after(applied: Applied) -> Job {
    done(applied).job.expect("the job exists")
}

pub const fn resume(next_at: Option<Timestamp>) -> Action {
    Action::Resume { next_at }
}
