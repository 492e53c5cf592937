//! Settings for signing in to the dashboard at an identity provider: part of the table `[access]` of
//! the config file.

use std::path::PathBuf;

use reqwest::Url;

use super::access::{ProviderConfig, RawAccess};
use super::resolve::invalid;
use super::secret_key::Hidden;
use super::{ConfigError, Result};

const NAME_CHARS_MAX: usize = 60;

/// Resolved settings of the sign-in at an identity provider.
#[derive(Clone, Debug)]
pub struct OidcConfig {
    pub client_id: String,
    pub client_secret: ClientSecret,
    pub authorization_endpoint: Url,
    pub token_endpoint: Url,
    /// Scopes, separated by spaces.
    pub scopes: String,
    /// Name of the identity provider on the sign-in page.
    pub name: String,
    /// URL under which browsers reach this server.
    pub public_url: String,
}

/// Where the server reads the client secret from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientSecret {
    File(PathBuf),
    Given(Hidden),
    /// The server is a public client.
    None,
}

/// Returns the settings, or `None` without any of them.
pub(super) fn resolve(
    raw: &RawAccess,
    provider: Option<&ProviderConfig>,
    public_url: Option<&str>,
) -> Result<Option<OidcConfig>> {
    let Some(client_id) = client_id(raw)? else { return Ok(None) };
    let trusts_provider = provider.is_some_and(|it| it.settings.issuer.is_some());
    if !trusts_provider {
        let message = "needs jwt_algorithm, jwt_issuer, and jwt_jwks_file or jwt_key_file, with \
                       which the server checks the tokens of the identity provider";
        return Err(invalid("[access] oidc_client_id", message, "set them in [access]"));
    }
    let audience = provider.map_or(&[][..], |it| &it.settings.audience);
    if !audience.contains(&client_id) {
        let message = format!(
            "does not contain {client_id:?}, the oidc_client_id, which is the audience of tokens for \
             the dashboard"
        );
        let way_out = format!("add {client_id:?} to jwt_audience");
        return Err(invalid("[access] jwt_audience", message, way_out));
    }
    let endpoint = |key, given: &Option<String>| match given {
        Some(text) => endpoint(key, text),
        None => Err(invalid(key, "is missing", "copy it from your identity provider")),
    };
    let authorization =
        endpoint("[access] oidc_authorization_endpoint", &raw.oidc_authorization_endpoint)?;
    let token = endpoint("[access] oidc_token_endpoint", &raw.oidc_token_endpoint)?;
    Ok(Some(OidcConfig {
        client_id,
        client_secret: client_secret(raw)?,
        authorization_endpoint: authorization,
        token_endpoint: token,
        scopes: scopes(raw.oidc_scopes.as_deref())?,
        name: name(raw.oidc_name.as_deref())?,
        public_url: own_url(public_url)?,
    }))
}

fn client_id(raw: &RawAccess) -> Result<Option<String>> {
    const KEY: &str = "[access] oidc_client_id";
    let id = raw.oidc_client_id.as_deref().map(str::trim);
    let has_others = raw.oidc_client_secret.is_some()
        || raw.oidc_client_secret_file.is_some()
        || raw.oidc_authorization_endpoint.is_some()
        || raw.oidc_token_endpoint.is_some()
        || raw.oidc_scopes.is_some()
        || raw.oidc_name.is_some();
    match id {
        None if !has_others => Ok(None),
        None | Some("") => {
            let message = "is missing: the other oidc_ settings need the id of this client";
            Err(invalid(KEY, message, "copy it from your identity provider"))
        }
        Some(id) => Ok(Some(id.to_owned())),
    }
}

fn client_secret(raw: &RawAccess) -> Result<ClientSecret> {
    const KEY: &str = "[access] oidc_client_secret";
    const WAY_OUT: &str =
        "give oidc_client_secret_file or the variable EVENKEEL_OIDC_CLIENT_SECRET, or none of both";
    match (&raw.oidc_client_secret_file, &raw.oidc_client_secret) {
        (None, None) => Ok(ClientSecret::None),
        (Some(path), None) => Ok(ClientSecret::File(path.clone())),
        (None, Some(secret)) if secret.reveal().trim().is_empty() => {
            Err(invalid(KEY, "is empty", WAY_OUT))
        }
        (None, Some(secret)) => Ok(ClientSecret::Given(secret.clone())),
        (Some(_), Some(_)) => {
            Err(invalid(KEY, "can't be combined with oidc_client_secret_file", WAY_OUT))
        }
    }
}

/// Codes and secrets pass through the endpoints, so they need TLS unless they are on this machine.
fn endpoint(key: &'static str, text: &str) -> Result<Url> {
    let wrong = |message: String| -> ConfigError {
        invalid(key, message, "write it like https://id.example.com/oauth2/token")
    };
    let url: Url = text.parse().map_err(|_| wrong(format!("{text:?} is not a URL")))?;
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(wrong("contains a user, a password or a fragment".into()));
    }
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    let is_local = host == "localhost" || address.is_ok_and(|it| it.is_loopback());
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_local => Ok(url),
        _ => Err(wrong(format!("{text:?} does not begin with https://"))),
    }
}

fn scopes(given: Option<&str>) -> Result<String> {
    const KEY: &str = "[access] oidc_scopes";
    let scopes: Vec<&str> = given.unwrap_or("openid profile").split_whitespace().collect();
    let legal = |c: char| c.is_ascii_graphic() && !"\"\\".contains(c);
    if let Some(scope) = scopes.iter().find(|scope| !scope.chars().all(legal)) {
        let message = format!("{scope:?} is not a scope");
        return Err(invalid(KEY, message, "separate scopes by spaces: openid profile"));
    }
    if !scopes.contains(&"openid") {
        let message = "does not contain openid, without which there is no ID token";
        return Err(invalid(KEY, message, "leave it out for openid profile"));
    }
    Ok(scopes.join(" "))
}

fn name(given: Option<&str>) -> Result<String> {
    let name = given.unwrap_or("your identity provider").trim();
    if (1..=NAME_CHARS_MAX).contains(&name.chars().count()) && !name.contains(char::is_control) {
        return Ok(name.to_owned());
    }
    let message = format!("{name:?} is not a name for the sign-in page");
    let way_out = format!("give 1 to {NAME_CHARS_MAX} characters on one line");
    Err(invalid("[access] oidc_name", message, way_out))
}

/// Checks that the identity provider can send browsers back to this server.
fn own_url(public_url: Option<&str>) -> Result<String> {
    const KEY: &str = "[executors] public_url";
    const WAY_OUT: &str =
        "give the address of the dashboard: --public-url https://jobs.example.com";
    let Some(text) = public_url else {
        let message = "is missing: the identity provider sends browsers to this address + \
                       /sign-in/callback";
        return Err(invalid(KEY, message, WAY_OUT));
    };
    let url: Url = text
        .parse()
        .map_err(|_| invalid(KEY, format!("{text:?} is not the address of a server"), WAY_OUT))?;
    if url.path() != "/" {
        let message =
            format!("{text:?} has a path, but the dashboard is at the root of its server");
        return Err(invalid(KEY, message, WAY_OUT));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use evenkeel_access::{ExternalAlgorithm, ExternalSettings};

    use super::*;
    use crate::Failure;
    use crate::config::KeyFile;

    const PUBLIC_URL: Option<&str> = Some("https://jobs.example.com");

    fn raw() -> RawAccess {
        RawAccess {
            oidc_client_id: Some("dashboard".into()),
            oidc_authorization_endpoint: Some("https://id.example.com/authorize?tenant=1".into()),
            oidc_token_endpoint: Some("https://id.example.com/token".into()),
            ..RawAccess::default()
        }
    }

    fn provider(issuer: Option<&str>, audience: &[&str]) -> ProviderConfig {
        let settings = ExternalSettings {
            algorithm: ExternalAlgorithm::Rs256,
            audience: audience.iter().map(|name| (*name).to_owned()).collect(),
            issuer: issuer.map(String::from),
            role_claim: "role".into(),
            tenant_claim: "tenant".into(),
        };
        ProviderConfig { settings, keys: KeyFile::Jwks("jwks.json".into()), with_local: false }
    }

    fn trusted() -> ProviderConfig {
        provider(Some("https://id.example.com/"), &["evenkeel", "dashboard"])
    }

    fn refusal(
        raw: &RawAccess,
        provider: Option<&ProviderConfig>,
        public_url: Option<&str>,
    ) -> String {
        let failure = resolve(raw, provider, public_url).map_err(Failure::from).unwrap_err();
        format!("{} | {}", failure.what, failure.way_out.unwrap_or_default())
    }

    #[test]
    fn defaults_ask_for_an_id_token_without_a_client_secret() {
        assert!(resolve(&RawAccess::default(), None, None).unwrap().is_none());
        let config = resolve(&raw(), Some(&trusted()), PUBLIC_URL).unwrap().unwrap();
        assert_eq!(config.scopes, "openid profile");
        assert_eq!(config.name, "your identity provider");
        assert_eq!(config.client_secret, ClientSecret::None);
        assert_eq!(config.authorization_endpoint.query(), Some("tenant=1"));
        assert_eq!(config.public_url, "https://jobs.example.com");
    }

    #[test]
    fn settings_of_the_provider_and_the_public_url_are_required() {
        let lone = RawAccess { oidc_name: Some("Keycloak".into()), ..RawAccess::default() };
        assert!(
            refusal(&lone, Some(&trusted()), PUBLIC_URL).contains("oidc_client_id: is missing")
        );
        assert!(refusal(&raw(), None, PUBLIC_URL).contains("needs jwt_algorithm, jwt_issuer"));
        let no_issuer = provider(None, &["dashboard"]);
        assert!(refusal(&raw(), Some(&no_issuer), PUBLIC_URL).contains("jwt_issuer"));
        for audience in [&[][..], &["evenkeel"]] {
            let other = provider(Some("https://id.example.com/"), audience);
            let text = refusal(&raw(), Some(&other), PUBLIC_URL);
            assert!(text.contains("add \"dashboard\" to jwt_audience"), "{text}");
        }
        let text = refusal(&raw(), Some(&trusted()), None);
        assert!(text.contains("public_url: is missing") && text.contains("callback"), "{text}");
        let text = refusal(&raw(), Some(&trusted()), Some("https://example.com/evenkeel"));
        assert!(text.contains("has a path"), "{text}");
    }

    #[test]
    fn endpoints_need_tls_unless_they_are_on_this_machine() {
        let at = |url: &str| RawAccess { oidc_token_endpoint: Some(url.into()), ..raw() };
        for url in ["http://127.0.0.1:9/t", "http://[::1]:9/t", "http://localhost/t"] {
            assert!(resolve(&at(url), Some(&trusted()), PUBLIC_URL).is_ok(), "{url}");
        }
        for (url, text) in [
            ("http://id.example.com/token", "does not begin with https://"),
            ("http://127.0.0.1.example.com/token", "does not begin with https://"),
            ("id.example.com/token", "is not a URL"),
            ("https://user:s3cret@id.example.com/", "contains a user"),
            ("https://id.example.com/#x", "a fragment"),
        ] {
            let refusal = refusal(&at(url), Some(&trusted()), PUBLIC_URL);
            assert!(refusal.contains(text) && !refusal.contains("s3cret"), "{refusal}");
        }
        let none = RawAccess { oidc_authorization_endpoint: None, ..raw() };
        let text = refusal(&none, Some(&trusted()), PUBLIC_URL);
        assert!(text.contains("oidc_authorization_endpoint: is missing"), "{text}");
    }

    #[test]
    fn client_secret_has_one_source_and_is_never_shown() {
        let secret = || Some(Hidden::from("s3cret".to_owned()));
        let both = RawAccess {
            oidc_client_secret: secret(),
            oidc_client_secret_file: Some("file".into()),
            ..raw()
        };
        let text = refusal(&both, Some(&trusted()), PUBLIC_URL);
        assert!(text.contains("can't be combined") && !text.contains("s3cret"), "{text}");
        let given = RawAccess { oidc_client_secret: secret(), ..raw() };
        let config = resolve(&given, Some(&trusted()), PUBLIC_URL).unwrap().unwrap();
        assert_eq!(config.client_secret, ClientSecret::Given(secret().unwrap()));
        assert!(!format!("{config:?}").contains("s3cret"));
        let empty = RawAccess { oidc_client_secret: Some(" ".to_owned().into()), ..raw() };
        assert!(refusal(&empty, Some(&trusted()), PUBLIC_URL).contains("is empty"));
    }

    #[test]
    fn scopes_contain_openid_and_the_name_fits_on_the_button() {
        let with = |scopes: &str| RawAccess { oidc_scopes: Some(scopes.into()), ..raw() };
        assert!(refusal(&with("profile"), Some(&trusted()), PUBLIC_URL).contains("openid"));
        assert!(refusal(&with("openid \"x"), Some(&trusted()), PUBLIC_URL).contains("not a scope"));
        let config = resolve(&with(" openid  groups "), Some(&trusted()), PUBLIC_URL);
        assert_eq!(config.unwrap().unwrap().scopes, "openid groups");
        for name in ["", "a\nb", &"x".repeat(61)] {
            let named = RawAccess { oidc_name: Some(name.into()), ..raw() };
            assert!(refusal(&named, Some(&trusted()), PUBLIC_URL).contains("oidc_name"), "{name}");
        }
    }
}
