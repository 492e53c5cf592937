//! Settings as given. Each field is a flag, an environment variable and a key of the config file.

use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use evenkeel_core::Span;
use ipnet::IpNet;
use serde::Deserialize;

use super::EnableShell;

/// Options of all commands.
#[derive(Args, Deserialize, Clone, Default, Debug)]
#[serde(default)]
pub struct RawGlobal {
    /// TOML file with settings; flags and environment variables take precedence
    #[arg(long, global = true, env = "EVENKEEL_CONFIG", value_name = "FILE")]
    #[arg(help_heading = "Everywhere")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Folder for the server's data, in which local clients find the server [default:
    /// ./evenkeel-data]
    #[arg(long, global = true, env = "EVENKEEL_DATA_DIR", value_name = "DIR")]
    #[arg(help_heading = "Everywhere")]
    pub data_dir: Option<PathBuf>,

    /// Print JSON
    #[arg(long, global = true, env = "EVENKEEL_JSON", value_parser = BoolishValueParser::new())]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    #[arg(help_heading = "Everywhere")]
    pub json: Option<bool>,
}

#[derive(Args, Deserialize, Clone, Default)]
#[serde(default)]
pub struct RawClient {
    /// URL of the server [default: the server of the data directory]
    #[arg(long, global = true, env = "EVENKEEL_URL", value_name = "URL")]
    #[arg(help_heading = "Server")]
    pub url: Option<String>,

    /// API token [default: the token of the data directory]; prefer the environment variable,
    /// because other users can see command lines
    #[arg(
        long,
        global = true,
        env = "EVENKEEL_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    #[arg(help_heading = "Server")]
    pub token: Option<String>,
}

/// The store as text. Messages must not show the password in this address.
#[derive(Args, Deserialize, Clone, Default)]
#[serde(default)]
pub struct RawStore {
    /// Database: sqlite:PATH or postgres://USER@HOST/DATABASE [default:
    /// sqlite:DATA_DIR/evenkeel.db]
    #[arg(long, env = "EVENKEEL_STORE", hide_env_values = true, value_name = "STORE")]
    pub store: Option<String>,
}

#[derive(Args, Deserialize, Clone, Default, Debug)]
#[serde(default)]
pub struct RawServer {
    /// Address to listen on; port 0 selects a free port [default: 127.0.0.1:8060]
    #[arg(long, env = "EVENKEEL_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,

    /// Allow an address that other machines can reach, although TLS is off
    #[arg(long, env = "EVENKEEL_INSECURE_LISTEN", value_parser = BoolishValueParser::new())]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    pub insecure_listen: Option<bool>,

    /// Roles of this node: api, scheduler, worker [default: all]
    #[arg(long, env = "EVENKEEL_ROLES", value_delimiter = ',', value_name = "ROLES")]
    pub roles: Option<Vec<String>>,

    /// Name of this node [default: the machine's name]
    #[arg(long, env = "EVENKEEL_NODE_NAME", value_name = "NAME")]
    pub node_name: Option<String>,

    /// Maximum number of executions that this node runs at the same time [default: 4096]
    #[arg(long, env = "EVENKEEL_WORKERS", value_name = "N")]
    pub workers: Option<u32>,

    /// Worker pools whose jobs this node runs [default: the pool `default`]
    #[arg(long, env = "EVENKEEL_POOLS", value_delimiter = ',', value_name = "POOLS")]
    pub pools: Option<Vec<String>>,

    /// Allow jobs to run programs on this machine: for the tenant default, or for named tenants
    /// (--enable-shell=default,acme; * means all). Programs can't read the server's data
    #[arg(long, env = "EVENKEEL_ENABLE_SHELL", value_name = "TENANTS")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub enable_shell: Option<EnableShell>,

    /// Private network that HTTP jobs may call; repeatable
    #[arg(long, env = "EVENKEEL_ALLOW_NETWORK", value_delimiter = ',', value_name = "CIDR")]
    pub allow_network: Option<Vec<IpNet>>,

    /// On shutdown, time for running executions to finish before they are returned to the queue
    /// [default: 25s]
    #[arg(long, env = "EVENKEEL_DRAIN_GRACE", value_name = "TIME")]
    pub drain_grace: Option<Span>,

    /// Log format: text or json [default: text]
    #[arg(long, env = "EVENKEEL_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<String>,

    /// Log level: error, warn, info, debug, trace, or a filter like info,evenkeel_engine=debug
    /// [default: info]
    #[arg(long, env = "EVENKEEL_LOG", value_name = "FILTER")]
    pub log: Option<String>,

    /// Serve /metrics without a token
    #[arg(long, env = "EVENKEEL_OPEN_METRICS", value_parser = BoolishValueParser::new())]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    pub open_metrics: Option<bool>,

    /// Serve the OpenAPI document without a token
    #[arg(long, env = "EVENKEEL_OPEN_OPENAPI", value_parser = BoolishValueParser::new())]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    pub open_openapi: Option<bool>,

    /// Create sample jobs at the first start
    #[arg(long, env = "EVENKEEL_DEMO", value_parser = BoolishValueParser::new())]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    pub demo: Option<bool>,
}

/// Engine settings: the table `[engine]` of the config file.
#[derive(Args, Deserialize, Clone, Default, Debug)]
#[serde(default)]
pub struct RawEngine {
    /// Interval in milliseconds at which the node polls the store, in case a notification was lost
    /// [default: 1000]
    #[arg(long, env = "EVENKEEL_CHECK_INTERVAL_MS", value_name = "MS")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub check_interval_ms: Option<u64>,

    /// Seconds without a heartbeat after which other nodes may challenge a node [default: 6]
    #[arg(long, env = "EVENKEEL_LEASE_SECONDS", value_name = "SECONDS")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub lease_seconds: Option<u64>,

    /// Seconds between two heartbeats of a node [default: 2]
    #[arg(long, env = "EVENKEEL_PING_SECONDS", value_name = "SECONDS")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub ping_seconds: Option<u64>,

    /// Seconds from the challenge of a silent node to the takeover of its executions [default: 4]
    #[arg(long, env = "EVENKEEL_GRACE_SECONDS", value_name = "SECONDS")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub grace_seconds: Option<u64>,

    /// Time without a heartbeat after which other nodes run a node's executions: the sum of
    /// lease_seconds and grace_seconds [default: 10s]
    #[arg(long, env = "EVENKEEL_RESET_RUNNING_AFTER", value_name = "TIME")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub reset_running_after: Option<Span>,

    /// Seconds between two writes of run statistics [default: 5]
    #[arg(long, env = "EVENKEEL_METRICS_INTERVAL_SECONDS", value_name = "SECONDS")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub metrics_interval_seconds: Option<u64>,

    /// Seconds after which a running execution counts as long-running and is listed with its node
    /// [default: 30]
    #[arg(long, env = "EVENKEEL_LONG_RUN_SECONDS", value_name = "SECONDS")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub long_run_seconds: Option<u64>,

    /// Bytes of log to keep per run: a quarter from the beginning of the log, the rest from its
    /// end; 4096 to 16777216 [default: 262144]
    #[arg(long, env = "EVENKEEL_RUN_LOG_BYTES", value_name = "BYTES")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub run_log_bytes: Option<u32>,

    /// Number of newest runs to keep per job [default: 100]
    #[arg(long, env = "EVENKEEL_RETENTION_PER_JOB", value_name = "N")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub retention_per_job: Option<u32>,

    /// Days to keep finished runs [default: 30]
    #[arg(long, env = "EVENKEEL_RETENTION_DAYS", value_name = "DAYS")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub retention_days: Option<u64>,

    /// Weight of the newest successful run in the average duration of its job, above 0 and up to 1
    /// [default: 0.37]
    #[arg(long, env = "EVENKEEL_AVERAGE_ALPHA", value_name = "WEIGHT")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub average_alpha: Option<f64>,
}

/// Copies the fields that `$given` lacks from `$file`.
macro_rules! fill {
    ($given:expr, $file:expr, $($field:ident),+ $(,)?) => {
        $( $given.$field = $given.$field.take().or_else(|| $file.$field.clone()); )+
    };
}

pub(super) use fill;

impl RawGlobal {
    /// Uses the values of the config file for settings without a flag or environment variable.
    #[must_use]
    pub fn or(mut self, file: &Self) -> Self {
        fill!(self, file, data_dir, json);
        self
    }
}

impl RawClient {
    #[must_use]
    pub fn or(mut self, file: &Self) -> Self {
        fill!(self, file, url, token);
        self
    }
}

impl RawStore {
    #[must_use]
    pub fn or(mut self, file: &Self) -> Self {
        fill!(self, file, store);
        self
    }
}

impl RawServer {
    #[must_use]
    pub fn or(mut self, file: &Self) -> Self {
        fill!(
            self, file, listen, insecure_listen, roles, node_name, workers, pools, enable_shell,
            allow_network, drain_grace, log_format, log, open_metrics, open_openapi, demo,
        );
        self
    }
}

impl RawEngine {
    #[must_use]
    pub fn or(mut self, file: &Self) -> Self {
        fill!(
            self, file, check_interval_ms, lease_seconds, ping_seconds, grace_seconds,
            reset_running_after, metrics_interval_seconds, long_run_seconds, run_log_bytes,
            retention_per_job, retention_days, average_alpha,
        );
        self
    }
}
