//! Clients for jobs with TLS options of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_core::TenantNo;
use evenkeel_outbound::{Outbound, Roots, TlsOptions};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::settings::Identities;
use crate::config::ConfigFault;

/// The TLS options of a job.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct TlsChoice {
    ca_pem: Option<String>,
    only_tls13: bool,
    /// The name of a client certificate that the node's settings hold.
    identity: Option<String>,
    verify: bool,
}

impl Default for TlsChoice {
    fn default() -> Self {
        Self { ca_pem: None, only_tls13: false, identity: None, verify: true }
    }
}

/// A job's certificates may be this long together.
const CA_PEM_BYTES_MAX: usize = 64 * 1024;

/// Clients kept, and with each its idle connections.
const CLIENTS_MAX: usize = 64;

impl TlsChoice {
    pub(super) fn parse(value: Option<&Value>) -> Result<Option<Self>, ConfigFault> {
        let Some(value) = value else { return Ok(None) };
        let object = value.as_object();
        let fields = object.ok_or_else(|| ConfigFault::new("tls", "must be an object"))?;
        let mut choice = Self::default();
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let fault = |message: &str| ConfigFault::new(&format!("tls.{name}"), message);
            let text = || value.as_str().ok_or_else(|| fault("must be a string"));
            match name.as_str() {
                "ca_pem" if text()?.len() > CA_PEM_BYTES_MAX => {
                    return Err(fault(&format!("is longer than {CA_PEM_BYTES_MAX} bytes")));
                }
                "ca_pem" => choice.ca_pem = Some(text()?.into()),
                "min_version" => match text()? {
                    "1.2" => choice.only_tls13 = false,
                    "1.3" => choice.only_tls13 = true,
                    _ => return Err(fault("must be \"1.2\" or \"1.3\"")),
                },
                "identity" => choice.identity = Some(text()?.into()),
                "verify" => {
                    choice.verify =
                        value.as_bool().ok_or_else(|| fault("must be true or false"))?;
                }
                _ => return Err(fault("is not one of ca_pem, min_version, identity, verify")),
            }
        }
        Ok(Some(choice))
    }

    /// Does it ask for anything that the shared client does not do?
    pub(super) fn matters(&self) -> bool {
        *self != Self::default()
    }
}

/// The node's clients: one that most jobs share, and a bounded number of others by their options.
/// All have the same guard.
#[derive(Debug)]
pub(super) struct Clients {
    shared: Outbound,
    identities: Identities,
    allow_unverified: bool,
    made: Mutex<Made>,
}

#[derive(Debug, Default)]
struct Made {
    /// A client that shows a certificate is its tenant's alone.
    clients: HashMap<(Option<TenantNo>, TlsChoice), Kept>,
    /// Counts uses, to know which client was not used for longest.
    uses: u64,
}

#[derive(Debug)]
struct Kept {
    client: Arc<OnceCell<Outbound>>,
    last_use: u64,
}

impl Clients {
    pub(super) fn new(shared: Outbound, identities: Identities, allow_unverified: bool) -> Self {
        Self { shared, identities, allow_unverified, made: Mutex::default() }
    }

    /// The one that most jobs share.
    pub(super) const fn shared(&self) -> &Outbound {
        &self.shared
    }

    /// What a choice of a job of `tenant` means on this node; refused if it may not be made. Without
    /// a tenant, somebody must be allowed to make it.
    pub(super) fn options(
        &self,
        choice: &TlsChoice,
        tenant: TenantNo,
    ) -> Result<TlsOptions, ConfigFault> {
        if !choice.verify && !self.allow_unverified {
            let message = "is not allowed on this server; give the server's certificate in ca_pem";
            return Err(ConfigFault::new("tls.verify", message));
        }
        let extra_roots = choice.ca_pem.as_ref().map(|pem| Roots::from_pem(pem.as_bytes()));
        let identity = choice.identity.as_ref().map(|name| {
            let identity = self.identities.get(&(tenant, name.clone()));
            identity.cloned().ok_or_else(unknown_identity)
        });
        Ok(TlsOptions {
            extra_roots: extra_roots
                .transpose()
                .map_err(|error| ConfigFault::new("tls.ca_pem", error.to_string()))?
                .unwrap_or_default(),
            only_tls13: choice.only_tls13,
            identity: identity.transpose()?,
            verify: choice.verify,
        })
    }

    /// The client of a choice that a job of `tenant` made, made if need be.
    pub(super) async fn of(
        &self,
        choice: &TlsChoice,
        tenant: TenantNo,
    ) -> Result<Outbound, String> {
        let client = self.kept(choice, tenant);
        let made = client.get_or_try_init(|| async {
            let options = self.options(choice, tenant).map_err(|fault| fault.to_string())?;
            let shared = self.shared.clone();
            // It reads the machine's certificates from files.
            let built = tokio::task::spawn_blocking(move || shared.with_tls(&options)).await;
            built
                .map_err(|error| error.to_string())?
                .map_err(|error| format!("no client can be made of the job's tls: {error}"))
        });
        made.await.cloned()
    }

    /// The place of a choice's client. The one not used for longest makes way; calls that are
    /// under way with it go on.
    fn kept(&self, choice: &TlsChoice, tenant: TenantNo) -> Arc<OnceCell<Outbound>> {
        let key = (choice.identity.is_some().then_some(tenant), choice.clone());
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.uses += 1;
        let now = made.uses;
        if !made.clients.contains_key(&key) && made.clients.len() >= CLIENTS_MAX {
            let oldest = made.clients.iter().min_by_key(|(_, kept)| kept.last_use);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                made.clients.remove(&oldest);
            }
        }
        let kept = made.clients.entry(key);
        let kept = kept.or_insert_with(|| Kept { client: Arc::default(), last_use: now });
        kept.last_use = now;
        Arc::clone(&kept.client)
    }
}

fn unknown_identity() -> ConfigFault {
    let message = "is no client certificate that this server's configuration gives this tenant";
    ConfigFault::new("tls.identity", message)
}

#[cfg(test)]
mod tests {
    use evenkeel_outbound::OutboundSettings;
    use serde_json::json;

    use super::*;

    fn named(identity: usize) -> TlsChoice {
        TlsChoice::parse(Some(&json!({"identity": identity.to_string()}))).unwrap().unwrap()
    }

    #[test]
    fn the_client_not_used_for_longest_makes_way() {
        let outbound = Outbound::new(OutboundSettings::default()).unwrap();
        let clients = Clients::new(outbound, Identities::new(), false);
        let first = clients.kept(&named(0), TenantNo(1));
        let second = clients.kept(&named(1), TenantNo(1));
        for n in 2..CLIENTS_MAX {
            clients.kept(&named(n), TenantNo(1));
        }
        assert!(Arc::ptr_eq(&first, &clients.kept(&named(0), TenantNo(1))));
        clients.kept(&named(CLIENTS_MAX), TenantNo(1));
        assert_eq!(clients.made.lock().unwrap().clients.len(), CLIENTS_MAX);
        assert!(Arc::ptr_eq(&first, &clients.kept(&named(0), TenantNo(1))));
        assert!(!Arc::ptr_eq(&second, &clients.kept(&named(1), TenantNo(1))));
    }
}
