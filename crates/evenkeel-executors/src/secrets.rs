//! Resolves the secrets to which jobs refer.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_core::executor::{ExecutorDeclaration, FieldKind};
use evenkeel_core::secret::{self, Masks, SecretSource};
use evenkeel_core::{Definition, TenantNo};
use serde_json::Value;

use crate::{ConfigFault, Executor, Invocation, Report, interrupted};

/// Wraps an executor and resolves the secrets to which its jobs refer. When an attempt starts, the
/// wrapper replaces references to secrets by their values, and masks the values in all output of
/// the attempt. The wrapped executor never sees a reference to a secret. The wrapper passes jobs
/// that refer to no secrets to the wrapped executor unchanged.
pub struct WithSecrets {
    inner: Arc<dyn Executor>,
    source: Arc<dyn SecretSource>,
}

impl WithSecrets {
    pub fn new(inner: Arc<dyn Executor>, source: Arc<dyn SecretSource>) -> Self {
        Self { inner, source }
    }

    /// Returns the configuration and payload with placeholders in place of secrets. Returns an
    /// error if a field in which secrets are not allowed refers to a secret.
    fn with_placeholders(
        &self,
        config: &Value,
        payload: &Value,
    ) -> Result<(Value, Value), ConfigFault> {
        let ExecutorDeclaration { kind, fields, .. } = self.declaration();
        let Some(wrong) = secret::misplaced(config, payload, fields) else {
            return Ok(secret::placeholders(config, payload, fields));
        };
        let allowed: Vec<&str> =
            fields.iter().filter(|field| field.takes_secrets).map(|field| field.name).collect();
        let others = if allowed.is_empty() {
            format!("the executor {kind} takes secrets in payload only")
        } else {
            format!("put it into {} or payload", allowed.join(", "))
        };
        let is_argument = fields
            .iter()
            .any(|field| field.kind == FieldKind::Arguments && field.name == wrong.config_field());
        let why = if is_argument {
            "arguments of a program are visible to every user of the machine"
        } else {
            "values of this field are stored or shown"
        };
        Err(ConfigFault {
            message: format!("refers to the secret {:?}, but {why}; {others}", wrong.name),
            field: wrong.field,
        })
    }

    /// Returns the definition with the values of its secrets, and the masks for these values. The
    /// error is a complete sentence that is stored as the error of the attempt.
    async fn resolved(&self, invocation: &Invocation) -> Result<(Definition, Masks), String> {
        let definition = &*invocation.definition;
        let (config, payload) = (&definition.executor.config, &definition.payload);
        let references = secret::references(config, payload);
        let mut names: Vec<String> = references.iter().map(|found| found.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        let values = self.source.values(invocation.tenant, &names).await?;
        let known: BTreeMap<String, String> = names
            .into_iter()
            .zip(values)
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
        if let Some(missing) = references.iter().find(|found| !known.contains_key(&found.name)) {
            return Err(format!(
                "{} refers to the secret {:?}, which does not exist; create it with `evenkeel secret \
                 set {}`, or change the job",
                missing.field, missing.name, missing.name,
            ));
        }
        let value_of = |name: &str| known.get(name).map(String::as_str);
        let fields = self.declaration().fields;
        let (config, payload) = secret::fill(config, payload, fields, &value_of);
        let mut definition = definition.clone();
        definition.executor.config = config;
        definition.payload = payload;
        Ok((definition, Masks::new(known.values().map(String::as_str))))
    }
}

#[async_trait]
impl Executor for WithSecrets {
    fn declaration(&self) -> &'static ExecutorDeclaration {
        self.inner.declaration()
    }

    fn check(&self, tenant: TenantNo, config: &Value, payload: &Value) -> Result<(), ConfigFault> {
        if !secret::has_references(config, payload) {
            return self.inner.check(tenant, config, payload);
        }
        let (config, payload) = self.with_placeholders(config, payload)?;
        self.inner.check(tenant, &config, &payload)
    }

    async fn run(&self, mut invocation: Invocation) -> Report {
        let definition = &*invocation.definition;
        if !secret::has_references(&definition.executor.config, &definition.payload) {
            return self.inner.run(invocation).await;
        }
        let (cancel, mut lease) = (invocation.cancel.clone(), invocation.lease.clone());
        let resolved = tokio::select! {
            resolved = self.resolved(&invocation) => resolved,
            reason = interrupted(&cancel, &mut lease) => return Report::cancelled(reason),
        };
        let (definition, masks) = match resolved {
            Ok(resolved) => resolved,
            Err(message) => return Report::failed(message),
        };
        invocation.definition = Arc::new(definition);
        invocation.live.mask(masks.clone());
        let mut report = self.inner.run(invocation).await;
        report.error.iter_mut().for_each(|text| masks.mask(text));
        report.output.iter_mut().for_each(|text| masks.mask(text));
        report
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::executor::ConfigField;
    use evenkeel_core::schedule::Once;
    use evenkeel_core::secret::SecretValues;
    use evenkeel_core::{LogStream, Progress, RunLog, Schedule};
    use serde_json::json;

    use super::*;
    use crate::LiveReport;

    /// A test executor that reports its configuration as progress, log, output and error.
    struct Parrot;

    #[async_trait]
    impl Executor for Parrot {
        fn declaration(&self) -> &'static ExecutorDeclaration {
            static PARROT: ExecutorDeclaration = ExecutorDeclaration::new(
                "parrot",
                &[
                    ConfigField::new("headers", FieldKind::HiddenValues).with_secrets(),
                    ConfigField::new("argv", FieldKind::Arguments),
                ],
            );
            &PARROT
        }

        fn check(&self, _: TenantNo, config: &Value, _: &Value) -> Result<(), ConfigFault> {
            let known = config["headers"]["A"].is_string();
            if known { Ok(()) } else { Err(ConfigFault::new("headers.A", "must be a string")) }
        }

        async fn run(&self, invocation: Invocation) -> Report {
            let given = invocation.definition.executor.config.to_string();
            let message = Some(given.clone());
            invocation.live.progress(Progress { message, ..Progress::default() });
            invocation.live.log(LogStream::Stdout, given.as_bytes());
            Report { output: Some(given.clone()), ..Report::failed(given) }
        }
    }

    struct Known(Result<Option<&'static str>, &'static str>);

    impl SecretSource for Known {
        fn values<'a>(&'a self, _: TenantNo, names: &'a [String]) -> SecretValues<'a> {
            let value = self.0.map(|value| value.map(String::from)).map_err(String::from);
            Box::pin(async move { value.map(|value| vec![value; names.len()]) })
        }
    }

    fn parrot(known: Result<Option<&'static str>, &'static str>) -> WithSecrets {
        WithSecrets::new(Arc::new(Parrot), Arc::new(Known(known)))
    }

    async fn run(known: Result<Option<&'static str>, &'static str>, live: &LiveReport) -> Report {
        let mut definition = Definition::noop(Schedule::Once(Once::NOW));
        definition.executor.config = json!({"headers": {"A": {"secret": "a"}, "B": "plain"}});
        let live = live.clone();
        parrot(known).run(Invocation { live, ..Invocation::example(definition) }).await
    }

    #[tokio::test]
    async fn secret_values_reach_the_executor_and_are_masked_in_its_report() {
        let live = LiveReport::default();
        let report = run(Ok(Some("hunter22")), &live).await;
        let masked = r#"{"headers":{"A":"{{\"***\"}}","B":"plain"}}"#;
        assert_eq!(report.output.as_deref(), Some(masked));
        assert_eq!(report.error.as_deref(), Some(masked));
        let news = live.take_update().unwrap();
        assert_eq!(RunLog::decode(&news.log.unwrap()).text(None), masked);
        assert_eq!(news.progress.unwrap().message.as_deref(), Some(masked));
    }

    #[tokio::test]
    async fn missing_secret_fails_the_attempt_with_retries() {
        let live = LiveReport::default();
        for (known, words) in [(Ok(None), "secret set a"), (Err("no key 12"), "no key 12")] {
            let report = run(known, &live).await;
            assert_eq!(report.retry, evenkeel_core::after_attempt::RetryHint::ByPolicy);
            assert!(report.error.unwrap().contains(words));
        }
        assert_eq!(live.take_update(), None, "the body did not start");
    }

    #[test]
    fn secret_references_are_refused_outside_declared_fields() {
        let check = |config: Value| parrot(Ok(None)).check(TenantNo(1), &config, &Value::Null);
        assert_eq!(check(json!({"headers": {"A": {"secret": "a"}}})), Ok(()));
        assert_eq!(check(json!({"headers": {"A": "x {{secret.a}}"}})), Ok(()));
        let fault = check(json!({"headers": {"A": 1, "B": {"secret": "a"}}})).unwrap_err();
        assert_eq!(fault.message, "must be a string");
        let fault = check(json!({"headers": {"A": "x"}, "cwd": "{{secret.a}}"})).unwrap_err();
        assert_eq!(fault.field, "executor_config.cwd");
        let fault = check(json!({"argv": ["x", {"secret": "a"}]})).unwrap_err();
        assert!(fault.message.contains("visible to every user"), "{fault}");
    }
}
