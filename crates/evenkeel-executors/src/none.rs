//! The executor of jobs that have none.

use async_trait::async_trait;
use evenkeel_core::TenantNo;
use evenkeel_core::chain::Again;
use evenkeel_core::executor::ExecutorDeclaration;
use evenkeel_core::job::ExecutorSpec;
use serde_json::Value;

use crate::{ConfigFault, Executor, Invocation, Report};

/// Fails, for good: there is nothing to run. Jobs have it that name a target of which nobody knows
/// the address; no job can ask for it.
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
            "{}: the job names no executor_type and no target with a url; give it one of them",
            ExecutorSpec::NO_EXECUTOR
        );
        Report { again: Again::Never, ..Report::failed(error) }
    }
}
