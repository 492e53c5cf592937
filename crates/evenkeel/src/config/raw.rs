//! Settings as given: each struct field is a flag, an environment variable and a configuration key.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use evenkeel_core::Span;
use ipnet::IpNet;

use super::EnableShell;

/// Defines a struct of settings, and a method that merges the settings of two sources. Every field
/// of the struct becomes a flag with the clap attributes `$each`.
macro_rules! settings {
    ($each:tt $(#[$meta:meta])* pub struct $name:ident {
        $( $(#[$field_meta:meta])* pub $field:ident: $kind:ty, )+
    }) => {
        $(#[$meta])*
        #[derive(clap::Args, serde::Deserialize, Clone, Default)]
        #[serde(default)]
        pub struct $name {
            $(
                #[arg(long, hide_possible_values = true)]
                #[arg $each]
                $(#[$field_meta])*
                pub $field: $kind,
            )+
        }

        impl $name {
            /// Uses the values of `other` for settings without a value.
            #[must_use]
            pub fn or(mut self, other: &Self) -> Self {
                $( self.$field = self.$field.or_else(|| other.$field.clone()); )+
                self
            }
        }
    };
}

pub(super) use settings;

pub(super) fn boolean() -> BoolishValueParser {
    BoolishValueParser::new()
}

settings! {
    (global = true, help_heading = "Everywhere")
    /// Options of all commands.
    pub struct RawGlobal {
        /// TOML file with settings; flags and environment variables take precedence
        #[arg(env = "EVENKEEL_CONFIG", value_name = "FILE")]
        #[serde(skip)]
        pub config: Option<PathBuf>,

        /// Folder for the server's data, in which local clients find the server [default:
        /// ./evenkeel-data]
        #[arg(env = "EVENKEEL_DATA_DIR", value_name = "DIR")]
        pub data_dir: Option<PathBuf>,

        /// Print JSON
        #[arg(env = "EVENKEEL_JSON", value_name = "BOOL", value_parser = boolean())]
        #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub json: Option<bool>,
    }
}

settings! {
    (global = true, help_heading = "Server")
    pub struct RawClient {
        /// URL of the server [default: the server of the data directory]
        #[arg(env = "EVENKEEL_URL", value_name = "URL")]
        pub url: Option<String>,

        /// API token [default: the token of the data directory]; prefer the environment variable,
        /// because other users can see command lines
        #[arg(env = "EVENKEEL_TOKEN", hide_env_values = true, value_name = "TOKEN")]
        pub token: Option<String>,
    }
}

settings! {
    ()
    /// The store as text. Error messages must not show the password in the store's address.
    pub struct RawStore {
        /// Database: sqlite:PATH or postgres://USER@HOST/DATABASE [default:
        /// sqlite:DATA_DIR/evenkeel.db]
        #[arg(env = "EVENKEEL_STORE", hide_env_values = true, value_name = "STORE")]
        pub store: Option<String>,
    }
}

settings! {
    ()
    pub struct RawServer {
        /// Address to listen on; port 0 selects a free port [default: 127.0.0.1:8060]
        #[arg(env = "EVENKEEL_LISTEN", value_name = "ADDRESS:PORT")]
        pub listen: Option<String>,

        /// Allow an address that other machines can reach, although TLS is off
        #[arg(env = "EVENKEEL_INSECURE_LISTEN", value_name = "BOOL", value_parser = boolean())]
        #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub insecure_listen: Option<bool>,

        /// Roles of this node: api, scheduler, worker [default: all]
        #[arg(env = "EVENKEEL_ROLES", value_delimiter = ',', value_name = "ROLES")]
        pub roles: Option<Vec<String>>,

        /// Name of this node [default: the machine's name]
        #[arg(env = "EVENKEEL_NODE_NAME", value_name = "NAME")]
        pub node_name: Option<String>,

        /// Maximum number of executions that this node runs at the same time [default: 4096]
        #[arg(env = "EVENKEEL_WORKERS", value_name = "N")]
        pub workers: Option<u32>,

        /// Worker pools whose jobs this node runs [default: the pool `default`]
        #[arg(env = "EVENKEEL_POOLS", value_delimiter = ',', value_name = "POOLS")]
        pub pools: Option<Vec<String>>,

        /// Allow jobs to run programs on this machine: for the tenant default, or for named tenants
        /// (--enable-shell=default,acme; * means all). Programs can't read the server's data
        #[arg(env = "EVENKEEL_ENABLE_SHELL", value_name = "TENANTS")]
        #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub enable_shell: Option<EnableShell>,

        /// Private network that HTTP jobs may call; repeatable
        #[arg(env = "EVENKEEL_ALLOW_NETWORK", value_delimiter = ',', value_name = "CIDR")]
        pub allow_network: Option<Vec<IpNet>>,

        /// On shutdown, time for running executions to finish before they are returned to the queue
        /// [default: 25s]
        #[arg(env = "EVENKEEL_DRAIN_GRACE", value_name = "TIME")]
        pub drain_grace: Option<Span>,

        /// Log format: text or json [default: text]
        #[arg(env = "EVENKEEL_LOG_FORMAT", value_name = "FORMAT")]
        pub log_format: Option<String>,

        /// Log level: error, warn, info, debug, trace, or a filter like info,evenkeel_engine=debug
        /// [default: info]
        #[arg(env = "EVENKEEL_LOG", value_name = "FILTER")]
        pub log: Option<String>,

        /// Serve /metrics without a token
        #[arg(env = "EVENKEEL_OPEN_METRICS", value_name = "BOOL", value_parser = boolean())]
        #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub open_metrics: Option<bool>,

        /// Serve the OpenAPI document without a token
        #[arg(env = "EVENKEEL_OPEN_OPENAPI", value_name = "BOOL", value_parser = boolean())]
        #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub open_openapi: Option<bool>,

        /// Host names under which browsers reach the dashboard, besides addresses, localhost and the
        /// host of --public-url; separate several names by commas
        #[arg(env = "EVENKEEL_DASHBOARD_HOSTS", value_name = "NAMES", value_delimiter = ',')]
        pub dashboard_hosts: Option<Vec<String>>,

        /// Open the dashboard in the browser of this machine, signed in
        #[arg(env = "EVENKEEL_OPEN", value_name = "BOOL", value_parser = boolean())]
        #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub open: Option<bool>,

        /// Fill an empty store with 500 sample jobs and their past, to try the dashboard
        #[arg(env = "EVENKEEL_DEMO", value_name = "BOOL", value_parser = boolean())]
        #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub demo: Option<bool>,
    }
}

settings! {
    (hide_short_help = true, help_heading = "Engine")
    /// Engine settings: the table `[engine]` of the config file.
    pub struct RawEngine {
        /// Interval in milliseconds at which the node polls the store, in case a notification was
        /// lost [default: 1000]
        #[arg(env = "EVENKEEL_CHECK_INTERVAL_MS", value_name = "MS")]
        pub check_interval_ms: Option<u64>,

        /// Seconds without a heartbeat after which other nodes may challenge a node [default: 6]
        #[arg(env = "EVENKEEL_LEASE_SECONDS", value_name = "SECONDS")]
        pub lease_seconds: Option<u64>,

        /// Seconds between two heartbeats of a node [default: 2]
        #[arg(env = "EVENKEEL_PING_SECONDS", value_name = "SECONDS")]
        pub ping_seconds: Option<u64>,

        /// Seconds from the challenge of a silent node to the takeover of its executions [default:
        /// 4]
        #[arg(env = "EVENKEEL_GRACE_SECONDS", value_name = "SECONDS")]
        pub grace_seconds: Option<u64>,

        /// Time without a heartbeat after which other nodes run a node's executions: the sum of
        /// lease_seconds and grace_seconds [default: 10s]
        #[arg(env = "EVENKEEL_RESET_RUNNING_AFTER", value_name = "TIME")]
        pub reset_running_after: Option<Span>,

        /// Seconds between two writes of run statistics [default: 5]
        #[arg(env = "EVENKEEL_METRICS_INTERVAL_SECONDS", value_name = "SECONDS")]
        pub metrics_interval_seconds: Option<u64>,

        /// Seconds after which a running execution counts as long-running and is listed with its
        /// node [default: 30]
        #[arg(env = "EVENKEEL_LONG_RUN_SECONDS", value_name = "SECONDS")]
        pub long_run_seconds: Option<u64>,

        /// Bytes of log to keep per run: a quarter from the beginning of the log, the rest from its
        /// end; 4096 to 16777216 [default: 262144]
        #[arg(env = "EVENKEEL_RUN_LOG_BYTES", value_name = "BYTES")]
        pub run_log_bytes: Option<u32>,

        /// Number of newest runs to keep per job [default: 100]
        #[arg(env = "EVENKEEL_RETENTION_PER_JOB", value_name = "N")]
        pub retention_per_job: Option<u32>,

        /// Days to keep finished runs [default: 30]
        #[arg(env = "EVENKEEL_RETENTION_DAYS", value_name = "DAYS")]
        pub retention_days: Option<u64>,

        /// Weight of the newest successful run in the average duration of its job, above 0 and up
        /// to 1 [default: 0.37]
        #[arg(env = "EVENKEEL_AVERAGE_ALPHA", value_name = "WEIGHT")]
        pub average_alpha: Option<f64>,
    }
}
