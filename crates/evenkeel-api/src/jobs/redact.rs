//! What of a job's configuration viewers do not see.

use evenkeel_core::executor::ExecutorCatalog;
use evenkeel_core::redact;
use evenkeel_store::Role;

use super::JobView;

impl JobView {
    /// As `role` may see it. Headers, variables, bodies, arguments, payloads and addresses often hold
    /// credentials; a viewer, who may not change the job, need not know them.
    pub(crate) fn for_role(mut self, role: Role, executors: ExecutorCatalog) -> Self {
        if role >= Role::Operator {
            return self;
        }
        redact::config(&mut self.executor_config, executors.fields(&self.executor_type));
        redact::payload(&mut self.payload);
        for text in self.url.iter_mut().chain(&mut self.dedup_key) {
            *text = redact::url(text);
        }
        self
    }
}
