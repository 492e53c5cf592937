//! Gives executors the values of secrets that jobs refer to.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_core::secret::{self, Masks, SecretSource};
use evenkeel_core::{Definition, TenantNo};
use serde_json::Value;

use crate::{ConfigFault, Executor, Invocation, Report, interrupted};

/// An executor whose jobs may refer to secrets. It puts the values into the definition when an
/// attempt starts, and takes them out of everything that the attempt reports, so that the executor
/// itself knows of neither. Jobs without references are passed on as they are.
pub struct WithSecrets {
    inner: Arc<dyn Executor>,
    source: Arc<dyn SecretSource>,
}

impl WithSecrets {
    /// Gives `inner` the values that `source` has.
    pub fn new(inner: Arc<dyn Executor>, source: Arc<dyn SecretSource>) -> Self {
        Self { inner, source }
    }

    /// The configuration and payload as the executor could get them, to be checked.
    fn rehearse(&self, config: &Value, payload: &Value) -> Result<(Value, Value), ConfigFault> {
        let allowed = self.inner.secret_fields();
        let Some(wrong) = secret::misplaced(config, payload, allowed) else {
            return Ok(secret::placeholders(config, payload));
        };
        let others = match allowed {
            [] => format!("the executor {} takes secrets in payload only", self.kind()),
            _ => format!("put it into {} or payload", allowed.join(", ")),
        };
        let why = if wrong.field.starts_with("executor_config.argv") {
            "arguments of a program are visible to every user of the machine"
        } else {
            "values of this field are stored or shown"
        };
        Err(ConfigFault {
            message: format!("refers to the secret {:?}, but {why}; {others}", wrong.name),
            field: wrong.field,
        })
    }

    /// The definition with values in it, and what hides them. The message says why there is none.
    async fn filled(&self, invocation: &Invocation) -> Result<(Definition, Masks), String> {
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
        let (config, payload) = secret::fill(config, payload, &value_of);
        let mut definition = definition.clone();
        definition.executor.config = config;
        definition.payload = payload;
        Ok((definition, Masks::new(known.values().map(String::as_str))))
    }
}

#[async_trait]
impl Executor for WithSecrets {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn check(&self, config: &Value, payload: &Value) -> Result<(), ConfigFault> {
        if !secret::has_references(config, payload) {
            return self.inner.check(config, payload);
        }
        let (config, payload) = self.rehearse(config, payload)?;
        self.inner.check(&config, &payload)
    }

    fn check_for(
        &self,
        tenant: TenantNo,
        config: &Value,
        payload: &Value,
    ) -> Result<(), ConfigFault> {
        if !secret::has_references(config, payload) {
            return self.inner.check_for(tenant, config, payload);
        }
        let (config, payload) = self.rehearse(config, payload)?;
        self.inner.check_for(tenant, &config, &payload)
    }

    fn secret_fields(&self) -> &'static [&'static str] {
        self.inner.secret_fields()
    }

    async fn run(&self, mut invocation: Invocation) -> Report {
        let definition = &*invocation.definition;
        if !secret::has_references(&definition.executor.config, &definition.payload) {
            return self.inner.run(invocation).await;
        }
        let (cancel, mut lease) = (invocation.cancel.clone(), invocation.lease.clone());
        let filled = tokio::select! {
            filled = self.filled(&invocation) => filled,
            reason = interrupted(&cancel, &mut lease) => return Report::cancelled(reason),
        };
        let (definition, masks) = match filled {
            Ok(filled) => filled,
            Err(message) => return Report::failed(message),
        };
        invocation.definition = Arc::new(definition);
        invocation.wire.mask(masks.clone());
        let mut report = self.inner.run(invocation).await;
        report.error.iter_mut().for_each(|text| masks.mask(text));
        report.output.iter_mut().for_each(|text| masks.mask(text));
        report
    }
}
