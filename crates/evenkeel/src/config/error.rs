//! Errors of settings.

use std::net::SocketAddr;
use std::path::PathBuf;

use evenkeel_core::lease::LeaseTimingsError;

use crate::Failure;

/// An invalid setting. The error message names the setting by its configuration key.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the config file {} could not be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// The config file is not valid TOML, or a value has the wrong type.
    #[error("the config file {} is invalid: {message}", path.display())]
    Malformed { path: PathBuf, message: String },
    #[error("the config file {} has an unknown key {key:?}", path.display())]
    UnknownKey {
        path: PathBuf,
        key: String,
        /// Hint that names the table of the key, a similar known key, or all known keys.
        hint: String,
    },
    #[error("{key}: {message}")]
    Invalid { key: &'static str, message: String, way_out: String },
    /// The address to listen on is reachable from other machines, and TLS is off.
    #[error("listen: {0} can be reached from other machines without encryption")]
    ListensToAll(SocketAddr),
    /// A SQLite store has only one node, so that node needs the roles `scheduler` and `worker`.
    #[error("roles: a SQLite store has no other nodes, so without {0} nothing would ever run")]
    RolesOnSqlite(&'static str),
    #[error("[engine] {0}")]
    Leases(#[from] LeaseTimingsError),
}

impl ConfigError {
    fn way_out(&self) -> String {
        match self {
            Self::Unreadable { .. } => "give the path of an existing file to --config".into(),
            Self::Malformed { .. } => {
                "fix that line; `evenkeel serve --help` lists the keys, each a flag without \
                 its dashes and with _ for -"
                    .into()
            }
            Self::UnknownKey { hint, .. } => hint.clone(),
            Self::Invalid { way_out, .. } => way_out.clone(),
            Self::ListensToAll(address) => format!(
                "give --tls-cert and --tls-key\n\
                 or keep --listen 127.0.0.1:{port} and put a proxy with TLS in front of it\n\
                 or, in a network you trust, add --insecure-listen",
                port = address.port(),
            ),
            Self::RolesOnSqlite(_) => {
                "leave roles out, or share the work through --store postgres://…".into()
            }
            Self::Leases(LeaseTimingsError::PingTooSlow { .. }) => {
                "lower ping_seconds or raise lease_seconds in [engine]".into()
            }
            Self::Leases(LeaseTimingsError::GraceTooShort(_)) => {
                "raise grace_seconds in [engine]".into()
            }
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.to_string()).or_else(error.way_out())
    }
}
