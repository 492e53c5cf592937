//! The executors of a node.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::secret::SecretSource;

use crate::{Executor, NoopExecutor, WithSecrets};

/// The executors of a node, by kind.
#[derive(Clone, Default)]
pub struct Registry(BTreeMap<&'static str, Arc<dyn Executor>>);

impl Registry {
    /// One without any.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// This one with `executor` as well; it replaces another of its kind.
    #[must_use]
    pub fn with(mut self, executor: Arc<dyn Executor>) -> Self {
        self.0.insert(executor.kind(), executor);
        self
    }

    /// This one with values of secrets for all executors that take any.
    #[must_use]
    pub fn with_secrets(self, source: &Arc<dyn SecretSource>) -> Self {
        let wrap = |(kind, executor): (&'static str, Arc<dyn Executor>)| {
            // It looks at nothing that could be secret, and the engine is measured with it.
            if kind == NoopExecutor.kind() || kind == ExecutorSpec::NONE {
                return (kind, executor);
            }
            (kind, Arc::new(WithSecrets::new(executor, Arc::clone(source))) as Arc<dyn Executor>)
        };
        Self(self.0.into_iter().map(wrap).collect())
    }

    /// The executor of a kind. `http_callback` is another word for `http`.
    pub fn get(&self, kind: &str) -> Option<&Arc<dyn Executor>> {
        self.0.get(if kind == "http_callback" { "http" } else { kind })
    }

    /// The kinds that jobs may name, in alphabetical order, without other words for them.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.keys().copied().filter(|kind| *kind != ExecutorSpec::NONE)
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.kinds()).finish()
    }
}
