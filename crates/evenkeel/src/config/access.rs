//! Authentication settings: the table `[access]` of the config file.

use std::path::PathBuf;

use evenkeel_access::{ExternalAlgorithm, ExternalSettings};
use evenkeel_core::Span;

use super::Result;
use super::oidc::{self, OidcConfig};
use super::raw::{boolean, settings};
use super::resolve::{invalid, number};
use super::secret_key::{self, Hidden, SecretKeys};

settings! {
    (hide_short_help = true, help_heading = "Access")
    /// Unresolved settings of access.
    pub struct RawAccess {
        /// Certificate chain for TLS (PEM); reloaded on SIGHUP
        #[arg(env = "EVENKEEL_TLS_CERT", value_name = "FILE", hide_short_help = false)]
        pub tls_cert: Option<PathBuf>,

        /// Private key of the certificate (PEM)
        #[arg(env = "EVENKEEL_TLS_KEY", value_name = "FILE", hide_short_help = false)]
        pub tls_key: Option<PathBuf>,

        /// Algorithm of the identity provider's tokens: RS256, ES256 or EdDSA [default: HS256,
        /// tokens of `evenkeel token create`]
        #[arg(env = "EVENKEEL_JWT_ALGORITHM", value_name = "NAME")]
        pub jwt_algorithm: Option<String>,

        /// Public key of the identity provider (PEM); reloaded on SIGHUP
        #[arg(env = "EVENKEEL_JWT_KEY_FILE", value_name = "FILE")]
        pub jwt_key_file: Option<PathBuf>,

        /// Public keys of the identity provider as a JSON Web Key Set; reloaded on SIGHUP
        #[arg(env = "EVENKEEL_JWT_JWKS_FILE", value_name = "FILE")]
        pub jwt_jwks_file: Option<PathBuf>,

        /// Accepted values of `aud`
        #[arg(env = "EVENKEEL_JWT_AUDIENCE", value_delimiter = ',', value_name = "NAMES")]
        pub jwt_audience: Option<Vec<String>>,

        /// Required value of `iss`
        #[arg(env = "EVENKEEL_JWT_ISSUER", value_name = "ISSUER")]
        pub jwt_issuer: Option<String>,

        /// Token claim with the role (viewer, operator, admin, or a list that contains one): a
        /// name, or a path like realm_access.roles [default: role]
        #[arg(env = "EVENKEEL_JWT_ROLE_CLAIM", value_name = "CLAIM")]
        pub jwt_role_claim: Option<String>,

        /// Token claim with the tenant [default: tenant]
        #[arg(env = "EVENKEEL_JWT_TENANT_CLAIM", value_name = "CLAIM")]
        pub jwt_tenant_claim: Option<String>,

        /// Accept tokens of `evenkeel token create` in addition to the identity provider's tokens
        #[arg(env = "EVENKEEL_JWT_LOCAL", value_name = "BOOL", value_parser = boolean())]
        #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub jwt_local: Option<bool>,

        /// Client id of this server at the identity provider, with which users sign in to the
        /// dashboard
        #[arg(env = "EVENKEEL_OIDC_CLIENT_ID", value_name = "ID")]
        pub oidc_client_id: Option<String>,

        /// Client secret; set the environment variable, because other users can see command lines
        #[arg(env = "EVENKEEL_OIDC_CLIENT_SECRET", hide_env_values = true, value_name = "SECRET")]
        #[arg(hide = true)]
        pub oidc_client_secret: Option<Hidden>,

        /// File with the client secret
        #[arg(env = "EVENKEEL_OIDC_CLIENT_SECRET_FILE", value_name = "FILE")]
        pub oidc_client_secret_file: Option<PathBuf>,

        /// Address of the identity provider's sign-in page
        #[arg(env = "EVENKEEL_OIDC_AUTHORIZATION_ENDPOINT", value_name = "URL")]
        pub oidc_authorization_endpoint: Option<String>,

        /// Address at which the identity provider exchanges codes for tokens
        #[arg(env = "EVENKEEL_OIDC_TOKEN_ENDPOINT", value_name = "URL")]
        pub oidc_token_endpoint: Option<String>,

        /// Scopes to ask for, separated by spaces [default: openid profile]
        #[arg(env = "EVENKEEL_OIDC_SCOPES", value_name = "SCOPES")]
        pub oidc_scopes: Option<String>,

        /// Name of the identity provider on the sign-in page [default: your identity provider]
        #[arg(env = "EVENKEEL_OIDC_NAME", value_name = "NAME")]
        pub oidc_name: Option<String>,

        /// Days to keep entries of the audit log [default: 90]
        #[arg(env = "EVENKEEL_AUDIT_DAYS", value_name = "DAYS")]
        pub audit_days: Option<u64>,

        /// File with the keys for secrets, one per line: the first key encrypts, all keys decrypt
        /// [default on SQLite: DATA_DIR/secret-key, created at the first start]
        #[arg(env = "EVENKEEL_SECRET_KEY_FILE", value_name = "FILE", hide_short_help = false)]
        pub secret_key_file: Option<PathBuf>,

        /// Keys for secrets, as in --secret-key-file, separated by commas; set the environment
        /// variable, because other users can see command lines
        #[arg(env = "EVENKEEL_SECRET_KEY", hide_env_values = true, value_name = "KEYS")]
        #[arg(hide = true)]
        pub secret_key: Option<Hidden>,

        /// Program that prints the keys for secrets, one per line; runs once when the server starts
        #[arg(env = "EVENKEEL_SECRET_KEY_COMMAND", value_delimiter = ',')]
        #[arg(value_name = "PROGRAM,ARGUMENTS")]
        pub secret_key_command: Option<Vec<String>>,
    }
}

/// Resolved settings of access.
#[derive(Clone, Debug)]
pub struct AccessConfig {
    pub tls: Option<TlsFiles>,
    pub provider: Option<ProviderConfig>,
    pub oidc: Option<OidcConfig>,
    pub audit_kept: Span,
    pub secret_keys: SecretKeys,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The certificate chain.
    pub cert: PathBuf,
    pub key: PathBuf,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProviderConfig {
    pub settings: ExternalSettings,
    pub keys: KeyFile,
    /// True if tokens signed with the store's secret are accepted in addition to the identity
    /// provider's tokens.
    pub with_local: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyFile {
    Pem(PathBuf),
    Jwks(PathBuf),
}

impl RawAccess {
    /// Like [`Self::or`], but if `self` sets a file, text or command for encryption keys, ignores
    /// all three settings of `other`. The same holds for the file and text of the client secret.
    #[must_use]
    pub fn or_with_one_source(self, other: &Self) -> Self {
        let mut other = other.clone();
        if self.secret_key_file.is_some()
            || self.secret_key.is_some()
            || self.secret_key_command.is_some()
        {
            other.secret_key_file = None;
            other.secret_key = None;
            other.secret_key_command = None;
        }
        if self.oidc_client_secret.is_some() || self.oidc_client_secret_file.is_some() {
            other.oidc_client_secret = None;
            other.oidc_client_secret_file = None;
        }
        self.or(&other)
    }
}

/// `public_url` is the resolved setting of the table `[executors]`.
pub(super) fn resolve(raw: RawAccess, public_url: Option<&str>) -> Result<AccessConfig> {
    let missing = |key, way_out: &str| Err(invalid(key, "is missing", way_out));
    let tls = match (raw.tls_cert.clone(), raw.tls_key.clone()) {
        (None, None) => None,
        (Some(cert), Some(key)) => Some(TlsFiles { cert, key }),
        (Some(_), None) => return missing("[access] tls_key", "give the key of tls_cert"),
        (None, Some(_)) => return missing("[access] tls_cert", "give the certificate of tls_key"),
    };
    let days = number("[access] audit_days", raw.audit_days, 90, 1..=36_500)?;
    let audit_kept = Span::from_secs(86_400).saturating_mul(days);
    let secret_keys = secret_key::resolve(
        raw.secret_key_file.clone(),
        raw.secret_key.clone(),
        raw.secret_key_command.clone(),
    )?;
    let provider = provider(&raw)?;
    let oidc = oidc::resolve(&raw, provider.as_ref(), public_url)?;
    Ok(AccessConfig { tls, provider, oidc, audit_kept, secret_keys })
}

fn provider(raw: &RawAccess) -> Result<Option<ProviderConfig>> {
    const KEY: &str = "[access] jwt_algorithm";
    const NAMES: &str = "it is RS256, ES256 or EdDSA, or left out for tokens of this server's own";
    let algorithm = match raw.jwt_algorithm.as_deref() {
        None | Some("HS256") => None,
        Some(name) => match ExternalAlgorithm::ALL.into_iter().find(|one| one.as_str() == name) {
            Some(algorithm) => Some(algorithm),
            None => return Err(invalid(KEY, format!("{name:?} is not supported"), NAMES)),
        },
    };
    let Some(algorithm) = algorithm else {
        let about_others = raw.jwt_key_file.is_some()
            || raw.jwt_jwks_file.is_some()
            || raw.jwt_audience.is_some()
            || raw.jwt_issuer.is_some()
            || raw.jwt_role_claim.is_some()
            || raw.jwt_tenant_claim.is_some();
        if about_others {
            let message =
                "is missing: the other jwt_ settings need the algorithm of the identity provider";
            return Err(invalid(KEY, message, NAMES));
        }
        return Ok(None);
    };
    let keys = match (raw.jwt_key_file.clone(), raw.jwt_jwks_file.clone()) {
        (Some(path), None) => KeyFile::Pem(path),
        (None, Some(path)) => KeyFile::Jwks(path),
        (None, None) => {
            let way_out = "give jwt_key_file (PEM) or jwt_jwks_file";
            return Err(invalid(KEY, "the identity provider's public key is missing", way_out));
        }
        (Some(_), Some(_)) => {
            let message = "can't be combined with jwt_jwks_file";
            return Err(invalid("[access] jwt_key_file", message, "leave one of them out"));
        }
    };
    let settings = ExternalSettings {
        algorithm,
        audience: raw.jwt_audience.clone().unwrap_or_default(),
        issuer: raw.jwt_issuer.clone(),
        role_claim: raw.jwt_role_claim.clone().unwrap_or_else(|| "role".into()),
        tenant_claim: raw.jwt_tenant_claim.clone().unwrap_or_else(|| "tenant".into()),
    };
    Ok(Some(ProviderConfig { settings, keys, with_local: raw.jwt_local == Some(true) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

    fn refusal(raw: RawAccess) -> String {
        let failure = resolve(raw, None).map_err(Failure::from).unwrap_err();
        format!("{} | {}", failure.what, failure.way_out.unwrap_or_default())
    }

    #[test]
    fn defaults_accept_only_own_tokens() {
        let config = resolve(RawAccess::default(), None).unwrap();
        assert!(config.tls.is_none() && config.provider.is_none());
        assert_eq!(config.audit_kept, Span::from_secs(90 * 86_400));
        let same = RawAccess { jwt_algorithm: Some("HS256".into()), ..RawAccess::default() };
        assert!(resolve(same, None).unwrap().provider.is_none());
    }

    #[test]
    fn contradicting_access_settings_are_refused() {
        let raw = RawAccess::default;
        let (file, name) = (|| Some("x.pem".into()), |name: &str| Some(name.to_owned()));
        for (raw, text) in [
            (RawAccess { tls_cert: file(), ..raw() }, "tls_key: is missing"),
            (RawAccess { tls_key: file(), ..raw() }, "tls_cert: is missing"),
            (RawAccess { jwt_algorithm: name("none"), ..raw() }, "\"none\" is not supported"),
            (RawAccess { jwt_algorithm: name("HS512"), ..raw() }, "RS256, ES256 or EdDSA"),
            (RawAccess { jwt_algorithm: name("RS256"), ..raw() }, "give jwt_key_file"),
            (RawAccess { jwt_key_file: file(), ..raw() }, "need the algorithm"),
            (RawAccess { jwt_issuer: name("x"), ..raw() }, "need the algorithm"),
            (RawAccess { audit_days: Some(0), ..raw() }, "audit_days: 0 is not between"),
        ] {
            let refusal = refusal(raw);
            assert!(refusal.contains(text), "{refusal}");
        }
        let both = RawAccess {
            jwt_algorithm: name("EdDSA"),
            jwt_key_file: file(),
            jwt_jwks_file: file(),
            ..raw()
        };
        assert!(refusal(both).contains("leave one of them out"));
    }
}
