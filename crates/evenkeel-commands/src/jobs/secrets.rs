//! Checks that the secrets of a job exist, when the job is created or changed.

use std::collections::BTreeSet;

use evenkeel_core::Definition;
use evenkeel_core::secret::{self, SecretRef};
use evenkeel_store::{Scope, StoreError};

use super::Jobs;
use crate::{CommandError, Fault, Result};

/// Number of secret names per store request; small, because the store also returns the encrypted
/// values.
const NAMES_BATCH: usize = 100;

pub(crate) struct KnownSecrets(BTreeSet<String>);

impl Jobs {
    /// Returns the names of existing secrets among those that the given jobs use. Does not query
    /// the store if the jobs use no secrets.
    pub(crate) async fn secrets_of<'d>(
        &self,
        scope: &Scope,
        definitions: impl IntoIterator<Item = &'d Definition>,
    ) -> Result<KnownSecrets, StoreError> {
        let wanted: BTreeSet<String> =
            definitions.into_iter().flat_map(references).map(|found| found.name).collect();
        let wanted: Vec<String> = wanted.into_iter().collect();
        let mut known = BTreeSet::new();
        for names in wanted.chunks(NAMES_BATCH) {
            let found = self.store.get_secrets(scope, names).await?;
            known.extend(found.into_iter().map(|secret| secret.name));
        }
        Ok(KnownSecrets(known))
    }
}

impl KnownSecrets {
    /// Refuses a job that refers to a missing secret.
    pub(crate) fn check(&self, definition: &Definition) -> Result<()> {
        let missing = |found: &SecretRef| !self.0.contains(&found.name);
        let fault = |SecretRef { field, name }| {
            let message = if secret::is_name(&name) {
                format!(
                    "refers to the secret {name:?}, which does not exist; an administrator creates it \
                     with `evenkeel secret set {name}` or PUT /api/v1/secrets/{name}"
                )
            } else {
                format!("refers to {name:?}, which can't be the name of a secret")
            };
            Fault::new(field, message)
        };
        let faults: Vec<Fault> =
            references(definition).into_iter().filter(missing).map(fault).collect();
        if faults.is_empty() { Ok(()) } else { Err(CommandError::Invalid(faults)) }
    }
}

pub(crate) fn references(definition: &Definition) -> Vec<SecretRef> {
    let (config, payload) = (&definition.executor.config, &definition.payload);
    if secret::has_references(config, payload) {
        secret::references(config, payload)
    } else {
        Vec::new()
    }
}
