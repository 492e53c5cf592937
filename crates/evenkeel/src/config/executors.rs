//! Executor settings: the table `[executors]` of the config file.

use std::path::PathBuf;

use evenkeel_access::DEFAULT_TENANT;

use super::Result;
use super::raw::{boolean, settings};
use super::resolve::{invalid, number};

settings! {
    (hide_short_help = true, help_heading = "Executors")
    /// Unresolved settings of executors.
    pub struct RawExecutors {
        /// URL at which receivers of HTTP jobs reach this server's API [default: the address that
        /// the server listens on]
        #[arg(env = "EVENKEEL_PUBLIC_URL", value_name = "URL")]
        pub public_url: Option<String>,

        /// Secret from which the keys for signing HTTP calls are derived; a second value is the
        /// previous secret, which stays valid until all receivers use the new one [default: a
        /// secret in the store]
        #[arg(env = "EVENKEEL_SIGNING_SECRETS", hide_env_values = true, value_delimiter = ',')]
        #[arg(value_name = "SECRETS")]
        pub signing_secrets: Option<Vec<String>>,

        /// Client certificate for HTTP jobs of a tenant: TENANT/NAME=CERT.pem:KEY.pem, or NAME=…
        /// for the tenant default; repeatable
        #[arg(env = "EVENKEEL_CLIENT_IDENTITY", value_delimiter = ',', value_name = "NAME=FILES")]
        pub client_identity: Option<Vec<String>>,

        /// Allow HTTP jobs to skip the verification of server certificates
        #[arg(env = "EVENKEEL_ALLOW_UNVERIFIED_TLS", value_name = "BOOL", value_parser = boolean())]
        #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub allow_unverified_tls: Option<bool>,

        /// Maximum number of crawls that run at the same time [default: 64]
        #[arg(env = "EVENKEEL_CRAWL_WORKERS", value_name = "N")]
        pub crawl_workers: Option<u32>,

        /// Minimum time between two crawl requests to the same host, in milliseconds [default: 0]
        #[arg(env = "EVENKEEL_CRAWL_MIN_DELAY_MS", value_name = "MS")]
        pub crawl_min_delay_ms: Option<u64>,

        /// Folder into which crawls may write their pages
        #[arg(env = "EVENKEEL_CRAWL_EXPORT_DIR", value_name = "DIR")]
        pub crawl_export_dir: Option<PathBuf>,

        /// Allow crawls to ignore robots.txt; use this only for your own websites
        #[arg(env = "EVENKEEL_CRAWL_IGNORE_ROBOTS", value_name = "BOOL", value_parser = boolean())]
        #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub crawl_ignore_robots: Option<bool>,
    }
}

/// Resolved settings of executors.
#[derive(Clone, PartialEq, Eq)]
pub struct ExecutorsConfig {
    pub public_url: Option<String>,
    /// Secrets for signing HTTP calls, newest first. If the list is empty, the server signs HTTP
    /// calls with the secret in the store.
    pub signing_secrets: Vec<String>,
    pub identities: Vec<IdentityFiles>,
    pub allow_unverified_tls: bool,
    pub crawl_workers: usize,
    pub crawl_min_delay_ms: u64,
    pub crawl_export_dir: Option<PathBuf>,
    pub crawl_ignore_robots: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdentityFiles {
    pub tenant: String,
    pub name: String,
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl std::fmt::Debug for ExecutorsConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The secrets are omitted.
        f.debug_struct("ExecutorsConfig")
            .field("public_url", &self.public_url)
            .finish_non_exhaustive()
    }
}

pub(super) fn resolve(raw: RawExecutors) -> Result<ExecutorsConfig> {
    Ok(ExecutorsConfig {
        public_url: raw.public_url.map(public_url).transpose()?,
        signing_secrets: signing_secrets(raw.signing_secrets.unwrap_or_default())?,
        identities: identities(raw.client_identity.unwrap_or_default())?,
        allow_unverified_tls: raw.allow_unverified_tls == Some(true),
        crawl_workers: workers("[executors] crawl_workers", raw.crawl_workers, 64)?,
        crawl_min_delay_ms: raw.crawl_min_delay_ms.unwrap_or(0).min(3_600_000),
        crawl_export_dir: raw.crawl_export_dir,
        crawl_ignore_robots: raw.crawl_ignore_robots == Some(true),
    })
}

pub(super) fn workers(key: &'static str, given: Option<u32>, default: u32) -> Result<usize> {
    Ok(number(key, given, default, 1..=100_000)? as usize)
}

fn public_url(text: String) -> Result<String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    if rest.is_none_or(|rest| rest.is_empty() || rest.contains(['?', '#', '@', ' '])) {
        let message = format!("{text:?} is not the address of a server");
        return Err(invalid(
            "[executors] public_url", message, "write it like https://jobs.example.com",
        ));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn signing_secrets(secrets: Vec<String>) -> Result<Vec<String>> {
    const BYTES_MIN: usize = 24;
    if secrets.len() > 2 || secrets.iter().any(|secret| secret.trim().len() < BYTES_MIN) {
        // The error message omits the secret, because error messages end up in logs.
        let message = format!("must be one or two secrets of at least {BYTES_MIN} characters");
        let way_out = "omit it to use a secret in the store";
        return Err(invalid("[executors] signing_secrets", message, way_out));
    }
    Ok(secrets)
}

fn identities(texts: Vec<String>) -> Result<Vec<IdentityFiles>> {
    texts
        .into_iter()
        .map(|text| {
            let parts = text.split_once('=').and_then(|(name, files)| {
                let (cert, key) = files.split_once(':')?;
                let (tenant, name) = name.split_once('/').unwrap_or((DEFAULT_TENANT, name));
                (![tenant, name, cert, key].contains(&"")).then(|| IdentityFiles {
                    tenant: tenant.into(),
                    name: name.into(),
                    cert: cert.into(),
                    key: key.into(),
                })
            });
            parts.ok_or_else(|| {
                let message = format!("{text:?} is not a name and two files");
                let way_out = "write it like acme/partner=client.pem:client.key";
                invalid("[executors] client_identity", message, way_out)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

    fn refusal(raw: RawExecutors) -> String {
        let failure = resolve(raw).map_err(Failure::from).unwrap_err();
        format!("{} | {}", failure.what, failure.way_out.unwrap_or_default())
    }

    #[test]
    fn defaults_allow_nothing_dangerous() {
        let config = resolve(RawExecutors::default()).unwrap();
        assert!(!config.allow_unverified_tls && !config.crawl_ignore_robots);
        assert!(config.crawl_export_dir.is_none());
    }

    #[test]
    fn each_error_names_the_key_and_never_the_secret() {
        let default = RawExecutors::default;
        let secret =
            RawExecutors { signing_secrets: Some(vec!["short-s3cret".into()]), ..default() };
        let text = refusal(secret);
        assert!(text.contains("signing_secrets") && !text.contains("s3cret"), "{text}");
        let url = RawExecutors { public_url: Some("example.com".into()), ..default() };
        assert!(refusal(url).contains("https://jobs.example.com"));
        let identity = RawExecutors { client_identity: Some(vec!["a=b".into()]), ..default() };
        assert!(refusal(identity).contains("acme/partner=client.pem:client.key"));
    }

    #[test]
    fn client_identity_is_a_name_and_two_files() {
        let raw = RawExecutors {
            client_identity: Some(vec!["partner=/a/c.pem:/a/k.pem".into()]),
            public_url: Some("https://jobs.example.com/".into()),
            ..RawExecutors::default()
        };
        let config = resolve(raw).unwrap();
        assert_eq!(config.identities[0].key, PathBuf::from("/a/k.pem"));
        assert_eq!(config.identities[0].tenant, DEFAULT_TENANT);
        assert_eq!(config.public_url.as_deref(), Some("https://jobs.example.com"));
    }
}
