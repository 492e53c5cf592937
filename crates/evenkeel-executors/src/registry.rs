//! The executors of a node.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_core::job::ExecutorSpec;

use crate::Executor;

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
