//! The executor of jobs that have no program, URL or crawl to run yet.

use async_trait::async_trait;
use evenkeel_core::TenantNo;
use evenkeel_core::executor::ExecutorDeclaration;
use evenkeel_core::job::ExecutorSpec;
use serde_json::Value;

use crate::{ConfigFault, Executor, Invocation, Report};

/// Fails every attempt without retries. A job gets this executor if it names a target that has no
/// `url`. Users cannot choose this executor with `executor_type`.
#[derive(Copy, Clone, Default, Debug)]
pub struct NoExecutor;

static DECLARATION: ExecutorDeclaration = ExecutorDeclaration {
    resolves_secrets: false,
    ..ExecutorDeclaration::new(ExecutorSpec::NONE, &[])
};

#[async_trait]
impl Executor for NoExecutor {
    fn declaration(&self) -> &'static ExecutorDeclaration {
        &DECLARATION
    }

    fn check(&self, _: TenantNo, _config: &Value, _payload: &Value) -> Result<(), ConfigFault> {
        Ok(())
    }

    async fn run(&self, _invocation: Invocation) -> Report {
        let error = format!(
            "{}: the job has no executor_type and its target has no url; set one of them",
            ExecutorSpec::NO_EXECUTOR
        );
        Report::failed_for_good(error)
    }
}
