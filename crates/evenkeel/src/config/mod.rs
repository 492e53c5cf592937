//! Settings, from flags, environment variables and a config file, in this order of precedence.
//!
//! [`raw`] contains the values as given; [`resolve()`] validates them and adds defaults. One struct
//! field defines the flag, the environment variable and the configuration key of a setting.

mod access;
mod balance;
mod error;
mod executors;
mod file;
mod leases;
mod limits;
mod oidc;
mod other_names;
mod queue;
pub mod raw;
mod resolve;
mod secret_key;
mod shell;
mod store;
mod targets;

pub use access::{AccessConfig, KeyFile, ProviderConfig, RawAccess, TlsFiles};
pub use balance::RawBalance;
pub use error::ConfigError;
pub use executors::{ExecutorsConfig, IdentityFiles, RawExecutors};
pub use file::{ConfigFile, RawTables, read_file};
pub use limits::{LimitsConfig, RawLimits};
pub use oidc::{ClientSecret, OidcConfig};
pub use other_names::other_names;
pub use queue::{QueueConfig, RawQueue};
pub use resolve::{LogConfig, ServeConfig, data_dir, resolve, store_of};
pub use secret_key::{Hidden, SecretKeys};
pub use shell::{EnableShell, RawShell, ShellConfig};
pub use store::{StoreChoice, StoreChoiceError};
pub use targets::RawTargets;

type Result<T, E = ConfigError> = std::result::Result<T, E>;
