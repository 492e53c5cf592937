//! What was written: a flag, an environment variable and a key of the file for each field.

use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use evenkeel_core::Span;
use ipnet::IpNet;
use serde::Deserialize;

use super::EnableShell;

/// What every command has.
#[derive(Args, Deserialize, Clone, Default, Debug)]
#[serde(default)]
pub struct RawGlobal {
    /// Read settings from this TOML file; flags and environment variables win over it
    #[arg(long, global = true, env = "EVENKEEL_CONFIG", value_name = "FILE")]
    #[arg(help_heading = "Everywhere")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Where the server keeps its data, and clients on the same machine find it
    /// [default: ./evenkeel-data]
    #[arg(long, global = true, env = "EVENKEEL_DATA_DIR", value_name = "DIR")]
    #[arg(help_heading = "Everywhere")]
    pub data_dir: Option<PathBuf>,

    /// Answer in JSON, for programs
    #[arg(long, global = true, env = "EVENKEEL_JSON", value_parser = BoolishValueParser::new())]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    #[arg(help_heading = "Everywhere")]
    pub json: Option<bool>,
}

/// Where a server is.
#[derive(Args, Deserialize, Clone, Default)]
#[serde(default)]
pub struct RawClient {
    /// The server's address [default: the one that runs on the data directory]
    #[arg(long, global = true, env = "EVENKEEL_URL", value_name = "URL")]
    #[arg(help_heading = "Server")]
    pub url: Option<String>,

    /// The token to show it [default: the data directory's]; rather use the variable, because
    /// others on the machine can see command lines
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

/// Where the data is. Not yet read: a message about it must not show its password.
#[derive(Args, Deserialize, Clone, Default)]
#[serde(default)]
pub struct RawStore {
    /// The database: sqlite:PATH or postgres://USER@HOST/DATABASE
    /// [default: sqlite:DATA_DIR/evenkeel.db]
    #[arg(long, env = "EVENKEEL_STORE", hide_env_values = true, value_name = "STORE")]
    pub store: Option<String>,
}

/// What a server does.
#[derive(Args, Deserialize, Clone, Default, Debug)]
#[serde(default)]
pub struct RawServer {
    /// The address to listen on; port 0 takes a free one [default: 127.0.0.1:8060]
    #[arg(long, env = "EVENKEEL_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,

    /// Listen on an address that other machines can reach, although nothing is encrypted
    #[arg(long, env = "EVENKEEL_INSECURE_LISTEN", value_parser = BoolishValueParser::new())]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    pub insecure_listen: Option<bool>,

    /// What this node does: api, scheduler, worker [default: all]
    #[arg(long, env = "EVENKEEL_ROLES", value_delimiter = ',', value_name = "ROLES")]
    pub roles: Option<Vec<String>>,

    /// What people call this node [default: the machine's name]
    #[arg(long, env = "EVENKEEL_NODE_NAME", value_name = "NAME")]
    pub node_name: Option<String>,

    /// How many jobs may run at once [default: 4096]
    #[arg(long, env = "EVENKEEL_WORKERS", value_name = "N")]
    pub workers: Option<u32>,

    /// The pools whose jobs it runs [default: default]
    #[arg(long, env = "EVENKEEL_POOLS", value_delimiter = ',', value_name = "POOLS")]
    pub pools: Option<Vec<String>>,

    /// Let jobs run programs on this machine: those of the tenant default, or of the tenants that
    /// are named (--enable-shell=default,acme; * is all). Programs can't read the server's data
    #[arg(long, env = "EVENKEEL_ENABLE_SHELL", value_name = "TENANTS")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub enable_shell: Option<EnableShell>,

    /// Let HTTP jobs call this network although it is not public; repeatable
    #[arg(long, env = "EVENKEEL_ALLOW_NETWORK", value_delimiter = ',', value_name = "CIDR")]
    pub allow_network: Option<Vec<IpNet>>,

    /// On shutdown, let running jobs end for this long before they are handed back [default: 25s]
    #[arg(long, env = "EVENKEEL_DRAIN_GRACE", value_name = "TIME")]
    pub drain_grace: Option<Span>,

    /// How the log is written: text or json [default: text]
    #[arg(long, env = "EVENKEEL_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<String>,

    /// What is logged: error, warn, info, debug, trace, or a filter like info,evenkeel_engine=debug
    /// [default: info]
    #[arg(long, env = "EVENKEEL_LOG", value_name = "FILTER")]
    pub log: Option<String>,

    /// Let /metrics be read without a token
    #[arg(long, env = "EVENKEEL_OPEN_METRICS", value_parser = BoolishValueParser::new())]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    pub open_metrics: Option<bool>,

    /// Let the OpenAPI document be read without a token
    #[arg(long, env = "EVENKEEL_OPEN_OPENAPI", value_parser = BoolishValueParser::new())]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    pub open_openapi: Option<bool>,

    /// Create a few sample jobs, once
    #[arg(long, env = "EVENKEEL_DEMO", value_parser = BoolishValueParser::new())]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    pub demo: Option<bool>,
}

/// The rhythm of the engine: the table `[engine]` of the file.
#[derive(Args, Deserialize, Clone, Default, Debug)]
#[serde(default)]
pub struct RawEngine {
    /// A lost wake-up costs no more than this many milliseconds [default: 1000]
    #[arg(long, env = "EVENKEEL_CHECK_INTERVAL_MS", value_name = "MS")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub check_interval_ms: Option<u64>,

    /// A node that is silent for so many seconds may be challenged [default: 6]
    #[arg(long, env = "EVENKEEL_LEASE_SECONDS", value_name = "SECONDS")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub lease_seconds: Option<u64>,

    /// A node says that it lives every so many seconds [default: 2]
    #[arg(long, env = "EVENKEEL_PING_SECONDS", value_name = "SECONDS")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub ping_seconds: Option<u64>,

    /// A challenged node keeps its work for so many seconds more [default: 4]
    #[arg(long, env = "EVENKEEL_GRACE_SECONDS", value_name = "SECONDS")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub grace_seconds: Option<u64>,

    /// What runs on a node that is silent for this long is run again elsewhere: the time of
    /// lease_seconds and grace_seconds together, said in one [default: 10s]
    #[arg(long, env = "EVENKEEL_RESET_RUNNING_AFTER", value_name = "TIME")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub reset_running_after: Option<Span>,

    /// Sums over runs are written every so many seconds [default: 5]
    #[arg(long, env = "EVENKEEL_METRICS_INTERVAL_SECONDS", value_name = "SECONDS")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub metrics_interval_seconds: Option<u64>,

    /// A run of more than so many seconds is shown with its owner [default: 30]
    #[arg(long, env = "EVENKEEL_LONG_RUN_SECONDS", value_name = "SECONDS")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub long_run_seconds: Option<u64>,

    /// Of what a run prints, about so many bytes are kept: the first quarter from its beginning, the
    /// rest from its end; from 4096 to 16777216 [default: 262144]
    #[arg(long, env = "EVENKEEL_RUN_LOG_BYTES", value_name = "BYTES")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub run_log_bytes: Option<u32>,

    /// So many of the newest runs of each job are kept [default: 100]
    #[arg(long, env = "EVENKEEL_RETENTION_PER_JOB", value_name = "N")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub retention_per_job: Option<u32>,

    /// Of those, the ones that are younger than so many days [default: 30]
    #[arg(long, env = "EVENKEEL_RETENTION_DAYS", value_name = "DAYS")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub retention_days: Option<u64>,

    /// What the newest good run weighs in the average duration of its job, above 0 and up to 1
    /// [default: 0.37]
    #[arg(long, env = "EVENKEEL_AVERAGE_ALPHA", value_name = "WEIGHT")]
    #[arg(hide_short_help = true, help_heading = "Engine")]
    pub average_alpha: Option<f64>,
}

/// Takes from `$file` what `$said` leaves open.
macro_rules! fill {
    ($said:expr, $file:expr, $($field:ident),+ $(,)?) => {
        $( $said.$field = $said.$field.take().or_else(|| $file.$field.clone()); )+
    };
}

pub(super) use fill;

impl RawGlobal {
    /// With what the file says where flags and environment are silent.
    #[must_use]
    pub fn or(mut self, file: &Self) -> Self {
        fill!(self, file, data_dir, json);
        self
    }
}

impl RawClient {
    /// With what the file says where flags and environment are silent.
    #[must_use]
    pub fn or(mut self, file: &Self) -> Self {
        fill!(self, file, url, token);
        self
    }
}

impl RawStore {
    /// With what the file says where flags and environment are silent.
    #[must_use]
    pub fn or(mut self, file: &Self) -> Self {
        fill!(self, file, store);
        self
    }
}

impl RawServer {
    /// With what the file says where flags and environment are silent.
    #[must_use]
    pub fn or(mut self, file: &Self) -> Self {
        fill!(
            self,
            file,
            listen,
            insecure_listen,
            roles,
            node_name,
            workers,
            pools,
            enable_shell,
            allow_network,
            drain_grace,
            log_format,
            log,
            open_metrics,
            open_openapi,
            demo,
        );
        self
    }
}

impl RawEngine {
    /// With what the file says where flags and environment are silent.
    #[must_use]
    pub fn or(mut self, file: &Self) -> Self {
        fill!(
            self,
            file,
            check_interval_ms,
            lease_seconds,
            ping_seconds,
            grace_seconds,
            reset_running_after,
            metrics_interval_seconds,
            long_run_seconds,
            run_log_bytes,
            retention_per_job,
            retention_days,
            average_alpha,
        );
        self
    }
}
