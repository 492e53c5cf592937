//! Hides credentials in a job's configuration from viewers.

use evenkeel_core::executor::ExecutorCatalog;
use evenkeel_core::redact;
use evenkeel_store::Role;

use super::JobView;

impl JobView {
    /// Redacts the parts of a job that `role` may not see. Headers, variables, bodies, arguments,
    /// payloads and URLs often contain credentials. Viewers may not change jobs, so they do not
    /// need the credentials in jobs.
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
