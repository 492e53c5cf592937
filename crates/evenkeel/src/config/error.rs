//! Settings that cannot be.

use std::net::SocketAddr;
use std::path::PathBuf;

use evenkeel_core::lease::LeaseTimingsError;

use crate::Failure;

/// Settings that cannot be. The key to blame is named; flags and variables are called alike.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is not there, or not for us.
    #[error("the config file {} could not be read: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML, or a value is of the wrong kind.
    #[error("the config file {} is not right: {message}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What the reader says.
        message: String,
    },
    /// The file has a key that means nothing.
    #[error("the config file {} has an unknown key {key:?}", path.display())]
    UnknownKey {
        /// Which file.
        path: PathBuf,
        /// Which key.
        key: String,
        /// Which was probably meant, or which there are.
        hint: String,
    },
    /// A value that makes no sense.
    #[error("{key}: {message}")]
    Bad {
        /// Which key.
        key: &'static str,
        /// What is wrong with it.
        message: String,
        /// What would be right.
        way_out: String,
    },
    /// Others could read along.
    #[error("listen: {0} can be reached from other machines, and nothing would be encrypted")]
    ListensToAll(SocketAddr),
    /// A node that nobody could help.
    #[error("roles: a SQLite store has no other nodes, so without {0} nothing would ever run")]
    RolesOnSqlite(&'static str),
    /// Leases that could lose work.
    #[error("[engine] {0}")]
    Leases(#[from] LeaseTimingsError),
}

impl ConfigError {
    fn way_out(&self) -> String {
        match self {
            Self::Unreadable { .. } => "give the path of an existing file to --config".into(),
            Self::Malformed { .. } => {
                "mend that line; `evenkeel serve --help` lists the keys, each a flag without \
                 its dashes and with _ for -"
                    .into()
            }
            Self::UnknownKey { hint, .. } => hint.clone(),
            Self::Bad { way_out, .. } => way_out.clone(),
            Self::ListensToAll(address) => format!(
                "give --tls-cert and --tls-key\n\
                 or keep to --listen 127.0.0.1:{port} and put a proxy with TLS before it\n\
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
