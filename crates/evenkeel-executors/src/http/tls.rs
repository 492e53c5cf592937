//! HTTP clients for jobs that have TLS options.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_core::TenantNo;
use evenkeel_outbound::{Outbound, Roots, TlsOptions};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::settings::Identities;
use crate::ConfigFault;

/// The TLS options of a job.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct TlsChoice {
    ca_pem: Option<String>,
    only_tls13: bool,
    /// The name of a client certificate in the server's configuration.
    identity: Option<String>,
    verify: bool,
}

impl Default for TlsChoice {
    fn default() -> Self {
        Self { ca_pem: None, only_tls13: false, identity: None, verify: true }
    }
}

/// Maximum number of bytes of the trusted certificates of a job.
const CA_PEM_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of cached HTTP clients, each of which has separate idle connections.
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

    /// True if these TLS options differ from the options of the shared HTTP client.
    pub(super) fn matters(&self) -> bool {
        *self != Self::default()
    }
}

/// The HTTP clients of the node: one shared client, and a bounded cache of clients with other TLS
/// options. All HTTP clients of the node refuse the same forbidden addresses.
#[derive(Debug)]
pub(super) struct Clients {
    /// The HTTP client for jobs without TLS options.
    pub(super) shared: Outbound,
    identities: Identities,
    allow_unverified: bool,
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    /// The tenant in a key is set for HTTP clients with a client certificate, because a certificate
    /// belongs to one tenant.
    clients: HashMap<(Option<TenantNo>, TlsChoice), CachedClient>,
    /// Counts uses of HTTP clients, to find the least recently used client.
    uses: u64,
}

#[derive(Debug, Default)]
struct CachedClient {
    client: Arc<OnceCell<Outbound>>,
    last_use: u64,
}

impl Clients {
    pub(super) fn new(shared: Outbound, identities: Identities, allow_unverified: bool) -> Self {
        Self { shared, identities, allow_unverified, cache: Mutex::default() }
    }

    /// Looks up the certificates in a job's TLS options, and refuses options that the server does
    /// not allow.
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
        let extra_roots = extra_roots
            .transpose()
            .map_err(|error| ConfigFault::new("tls.ca_pem", error.to_string()))?
            .unwrap_or_default();
        let identity = choice.identity.as_ref().map(|name| {
            let identity = self.identities.get(&(tenant, name.clone()));
            identity.cloned().ok_or_else(|| {
                let message = "names a client certificate that this server's configuration does not \
                               have for this tenant";
                ConfigFault::new("tls.identity", message)
            })
        });
        let TlsChoice { only_tls13, verify, .. } = *choice;
        Ok(TlsOptions { extra_roots, only_tls13, identity: identity.transpose()?, verify })
    }

    /// Returns the HTTP client for the TLS options of a job, and creates the client if needed.
    pub(super) async fn of(
        &self,
        choice: &TlsChoice,
        tenant: TenantNo,
    ) -> Result<Outbound, String> {
        let client = self.cached(choice, tenant);
        let made = client.get_or_try_init(|| async {
            let options = self.options(choice, tenant).map_err(|fault| fault.to_string())?;
            let shared = self.shared.clone();
            // Creating an HTTP client reads the machine's certificates from files, which blocks the
            // thread.
            let built = tokio::task::spawn_blocking(move || shared.with_tls(&options)).await;
            built
                .map_err(|error| error.to_string())?
                .map_err(|error| format!("the job's tls options can't be used: {error}"))
        });
        made.await.cloned()
    }

    /// Returns the cache entry for these TLS options. If the cache is full, the least recently used
    /// HTTP client is dropped, but its running calls continue.
    fn cached(&self, choice: &TlsChoice, tenant: TenantNo) -> Arc<OnceCell<Outbound>> {
        let key = (choice.identity.is_some().then_some(tenant), choice.clone());
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.uses += 1;
        let now = cache.uses;
        if !cache.clients.contains_key(&key) && cache.clients.len() >= CLIENTS_MAX {
            let oldest = cache.clients.iter().min_by_key(|(_, cached)| cached.last_use);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                cache.clients.remove(&oldest);
            }
        }
        let cached = cache.clients.entry(key).or_default();
        cached.last_use = now;
        Arc::clone(&cached.client)
    }
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
    fn least_recently_used_client_is_dropped() {
        let outbound = Outbound::new(OutboundSettings::default()).unwrap();
        let clients = Clients::new(outbound, Identities::new(), false);
        let first = clients.cached(&named(0), TenantNo(1));
        let second = clients.cached(&named(1), TenantNo(1));
        for n in 2..CLIENTS_MAX {
            clients.cached(&named(n), TenantNo(1));
        }
        assert!(Arc::ptr_eq(&first, &clients.cached(&named(0), TenantNo(1))));
        clients.cached(&named(CLIENTS_MAX), TenantNo(1));
        assert_eq!(clients.cache.lock().unwrap().clients.len(), CLIENTS_MAX);
        assert!(Arc::ptr_eq(&first, &clients.cached(&named(0), TenantNo(1))));
        assert!(!Arc::ptr_eq(&second, &clients.cached(&named(1), TenantNo(1))));
    }
}
