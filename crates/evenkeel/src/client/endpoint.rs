//! Finds the URL of the server and the token for its API.

use std::path::Path;

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::read_url;
use crate::config::raw::RawClient;
use crate::{Exit, Failure, Result};

/// The file `server.json` that a running server writes to its data directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LocalServer {
    pub url: String,
    pub pid: u32,
    /// The SHA-256 of the server's certificate, if the server uses TLS. Clients that can read
    /// `server.json` trust the server's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_sha256: Option<String>,
}

#[derive(Clone)]
pub struct Endpoint {
    pub url: Url,
    pub token: Option<String>,
    /// True if `server.json` in the data directory named the server.
    pub is_local: bool,
    /// SHA-256 of the only certificate that the client accepts from the server.
    pub certificate_sha256: Option<String>,
}

/// Reads `server.json`, the address of the server that uses a data directory.
pub fn read_local(data_dir: &Path) -> Option<LocalServer> {
    let text = std::fs::read_to_string(data_dir.join("server.json")).ok()?;
    serde_json::from_str(&text).ok()
}

/// Returns the server that the user named, or else the server of the data directory. The client
/// sends the token in the data directory only to the server that uses the directory.
pub fn find(client: &RawClient, data_dir: &Path) -> Result<Endpoint> {
    let local = read_local(data_dir);
    let local_url = local.as_ref().map(|server| read_url(&server.url)).transpose()?;
    let url = match (&client.url, &local_url) {
        (Some(text), _) => read_url(text)?,
        (None, Some(url)) => url.clone(),
        (None, None) => {
            let what = format!("no server runs on the data directory {}", data_dir.display());
            return Err(Failure::new(Exit::Unreachable, what).or_else(
                "start one with `evenkeel serve`, or name one with --url or EVENKEEL_URL, \
                 or its directory with --data-dir",
            ));
        }
    };
    let is_local = local_url.as_ref() == Some(&url);
    let token = match &client.token {
        Some(token) => Some(token.clone()),
        None if is_local => std::fs::read_to_string(data_dir.join("token")).ok(),
        None => None,
    };
    let token = token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
    let certificate_sha256 = local.filter(|_| is_local).and_then(|local| local.certificate_sha256);
    Ok(Endpoint { url, token, is_local, certificate_sha256 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data_dir() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let url = "http://127.0.0.1:9".into();
        let server = LocalServer { url, pid: 1, certificate_sha256: None };
        let text = serde_json::to_string(&server).unwrap();
        std::fs::write(dir.path().join("server.json"), text).unwrap();
        std::fs::write(dir.path().join("token"), "local-token\n").unwrap();
        dir
    }

    fn client(url: &str) -> RawClient {
        RawClient { url: Some(url.into()), token: None }
    }

    #[test]
    fn local_server_is_found_with_its_token() {
        let dir = data_dir();
        let endpoint = find(&RawClient::default(), dir.path()).unwrap();
        assert_eq!(endpoint.url.as_str(), "http://127.0.0.1:9/");
        assert_eq!(endpoint.token.as_deref(), Some("local-token"));
        let named = find(&client("http://127.0.0.1:9/"), dir.path()).unwrap();
        assert_eq!(named.token.as_deref(), Some("local-token"));
    }

    #[test]
    fn local_token_is_not_sent_to_another_server() {
        let dir = data_dir();
        assert!(find(&client("http://example.com"), dir.path()).unwrap().token.is_none());
        let own = RawClient { token: Some("own".into()), ..client("http://example.com") };
        assert_eq!(find(&own, dir.path()).unwrap().token.as_deref(), Some("own"));
    }

    #[test]
    fn missing_server_is_reported_with_advice() {
        let dir = tempfile::tempdir().unwrap();
        let failure = find(&RawClient::default(), dir.path()).err().unwrap();
        assert_eq!(failure.exit, Exit::Unreachable);
        assert!(failure.way_out.unwrap().contains("evenkeel serve"));
        for url in ["localhost:8060", "ftp://a", "http://", "http://ann:pw@a"] {
            assert_eq!(find(&client(url), dir.path()).err().unwrap().exit, Exit::Usage, "{url}");
        }
    }
}
