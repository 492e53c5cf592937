//! The executors that a node has enabled.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::secret::SecretSource;

use crate::{Executor, WithSecrets};

/// The enabled executors by name.
#[derive(Clone, Default)]
pub struct Registry(BTreeMap<&'static str, Arc<dyn Executor>>);

impl Registry {
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds `executor`, which replaces any executor with the same name.
    #[must_use]
    pub fn with(mut self, executor: Arc<dyn Executor>) -> Self {
        self.0.insert(executor.declaration().kind, executor);
        self
    }

    /// Makes all executors that resolve secrets read the secrets from `source`.
    #[must_use]
    pub fn with_secrets(self, source: &Arc<dyn SecretSource>) -> Self {
        let wrap = |(kind, executor): (&'static str, Arc<dyn Executor>)| {
            if !executor.declaration().resolves_secrets {
                return (kind, executor);
            }
            (kind, Arc::new(WithSecrets::new(executor, Arc::clone(source))) as Arc<dyn Executor>)
        };
        Self(self.0.into_iter().map(wrap).collect())
    }

    pub fn get(&self, kind: &str) -> Option<&Arc<dyn Executor>> {
        let has_alias =
            |executor: &&Arc<dyn Executor>| executor.declaration().aliases.contains(&kind);
        self.0.get(kind).or_else(|| self.0.values().find(has_alias))
    }

    /// Returns the names that jobs may use as `executor_type`, sorted, without aliases.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.keys().copied().filter(|kind| *kind != ExecutorSpec::NONE)
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.kinds()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use async_trait::async_trait;
    use evenkeel_core::executor::{ConfigField, ExecutorCatalog, ExecutorDeclaration, FieldKind};
    use evenkeel_core::{TenantNo, redact};
    use serde_json::{Value, json};

    use super::*;
    use crate::{CATALOG, ConfigFault, Invocation, NoopExecutor, Report};

    /// An executor whose author has declared only which fields viewers may see.
    struct Pager;

    static PAGER: ExecutorDeclaration = ExecutorDeclaration {
        aliases: &["beeper"],
        ..ExecutorDeclaration::new("pager", &[ConfigField::public("channel")])
    };

    #[async_trait]
    impl Executor for Pager {
        fn declaration(&self) -> &'static ExecutorDeclaration {
            &PAGER
        }

        fn check(&self, _: TenantNo, _: &Value, _: &Value) -> Result<(), ConfigFault> {
            Ok(())
        }

        async fn run(&self, _: Invocation) -> Report {
            Report::completed()
        }
    }

    #[test]
    fn token_of_a_new_executor_is_redacted() {
        static WITH_PAGER: ExecutorCatalog = ExecutorCatalog::new(&[&PAGER]);
        let redacted = |catalog: ExecutorCatalog| {
            let mut config = json!({"channel": "ops", "token": "hunter22"});
            redact::config(&mut config, catalog.fields("pager"));
            config
        };
        let hidden = redact::marker();
        assert_eq!(redacted(WITH_PAGER), json!({"channel": "ops", "token": hidden}));
        assert_eq!(redacted(CATALOG), json!({"channel": hidden, "token": hidden}));
    }

    #[test]
    fn registry_finds_executors_by_name_and_alias() {
        let registry = Registry::new().with(Arc::new(Pager)).with(Arc::new(NoopExecutor));
        let found = |kind: &str| registry.get(kind).map(|executor| executor.declaration().kind);
        assert_eq!(found("pager"), Some("pager"));
        assert_eq!(found("beeper"), Some("pager"));
        assert_eq!(found("none"), None);
        assert_eq!(registry.kinds().collect::<Vec<_>>(), ["noop", "pager"]);
    }

    #[test]
    fn declared_names_and_fields_are_unique() {
        let names = CATALOG.iter().flat_map(|one| one.aliases.iter().chain([&one.kind]));
        let fields = CATALOG
            .iter()
            .flat_map(|one| one.fields.iter().map(move |field| (one.kind, field.name)));
        let (mut seen, mut seen_fields) = (BTreeSet::new(), BTreeSet::new());
        assert!(names.into_iter().all(|name| seen.insert(*name)));
        assert!(fields.into_iter().all(|field| seen_fields.insert(field)));
        for one in CATALOG.iter() {
            let has = |name: &str| one.fields.iter().any(|field| field.name == name);
            assert!(one.dedup_field.is_none_or(has), "{}", one.kind);
            assert!(
                one.start.is_none_or(|start| has(start.url) && has(start.list)),
                "{}",
                one.kind
            );
            let in_arguments = |field: &ConfigField| field.kind == FieldKind::Arguments;
            assert!(!one.fields.iter().any(|field| in_arguments(field) && field.takes_secrets));
        }
    }
}
