//! Validates settings, and refuses contradictory settings before any part of the server starts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use evenkeel_commands::limits::POOL_CHARS_MAX;
use evenkeel_core::Span;
use evenkeel_core::balance::BalanceSettings;
use evenkeel_core::history::DEFAULT_ALPHA;
use evenkeel_core::job::DEFAULT_POOL;
use evenkeel_core::lease::LeaseTimings;
use evenkeel_engine::{Retention, Staleness};
use evenkeel_executors::LOG_BYTES_DEFAULT;
use evenkeel_store::Roles;
use ipnet::IpNet;
use tracing_subscriber::EnvFilter;

use super::access::{self, AccessConfig};
use super::executors::{self, ExecutorsConfig};
use super::leases::leases;
use super::limits::{self, LimitsConfig};
use super::queue::{self, QueueConfig};
use super::raw::{RawGlobal, RawServer, RawStore};
use super::shell::{self, ShellConfig};
use super::{ConfigError, RawTables, Result, StoreChoice, balance, targets};

/// All settings of a server.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    pub config_file: Option<PathBuf>,
    pub data_dir: PathBuf,
    pub store: StoreChoice,
    pub listen: SocketAddr,
    pub roles: Roles,
    pub node_name: String,
    pub workers: usize,
    pub pools: Vec<String>,
    pub shell: ShellConfig,
    /// Private networks that HTTP jobs may call.
    pub allow_networks: Vec<IpNet>,
    pub executors: ExecutorsConfig,
    pub access: AccessConfig,
    pub drain_grace: Duration,
    pub log: LogConfig,
    pub open_metrics: bool,
    pub open_openapi: bool,
    /// Host names under which browsers reach the dashboard.
    pub dashboard_hosts: Vec<String>,
    /// True to open the dashboard in a browser.
    pub open: bool,
    pub demo: bool,
    pub leases: LeaseTimings,
    pub poll: Duration,
    pub metrics_interval: Duration,
    pub long_run_after: Duration,
    pub run_log_bytes: usize,
    pub retention: Retention,
    pub average_alpha: f64,
    pub balance: BalanceSettings,
    pub queue: QueueConfig,
    pub limits: LimitsConfig,
    pub stale: Staleness,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogConfig {
    pub json: bool,
    pub filter: String,
}

pub fn data_dir(global: &RawGlobal) -> PathBuf {
    global.data_dir.clone().unwrap_or_else(|| "evenkeel-data".into())
}

/// Returns the configured database, or else the database in the data directory.
pub fn store_of(raw: &RawStore, data_dir: &Path) -> Result<StoreChoice> {
    let Some(text) = &raw.store else { return Ok(StoreChoice::in_dir(data_dir)) };
    // The error message omits the store's address, which may contain a password.
    text.parse().map_err(|error: super::StoreChoiceError| {
        invalid("store", error.to_string(), "or leave it out for a file in the data directory")
    })
}

/// Validates all settings of a server; `host` is the machine's name.
pub fn resolve(
    global: &RawGlobal,
    store: &RawStore,
    server: RawServer,
    tables: RawTables,
    machine: &str,
) -> Result<ServeConfig> {
    let RawTables { engine, executors, shell, access, balance, queue, targets, limits } = tables;
    let data_dir = data_dir(global);
    let store = store_of(store, &data_dir)?;
    let leases = leases(&engine)?;
    let executors = executors::resolve(executors)?;
    let access = access::resolve(access, executors.public_url.as_deref())?;
    let may_be_reached = server.insecure_listen == Some(true) || access.tls.is_some();
    let poll = number("[engine] check_interval_ms", engine.check_interval_ms, 1000, 10..=60_000)?;
    let key = "[engine] metrics_interval_seconds";
    let metrics_interval = number(key, engine.metrics_interval_seconds, 5, 1..=3600)?;
    let (key, default) = ("[engine] run_log_bytes", LOG_BYTES_DEFAULT as u32);
    let run_log_bytes = number(key, engine.run_log_bytes, default, 4096..=16 * 1024 * 1024)?;
    let key = "[engine] retention_per_job";
    let per_job = number(key, engine.retention_per_job, 100, 1..=1_000_000)?;
    let days = number("[engine] retention_days", engine.retention_days, 30, 1..=36_500)?;
    let age = Span::from_secs(86_400).saturating_mul(days);
    Ok(ServeConfig {
        config_file: global.config.clone(),
        listen: listen(server.listen.as_deref(), may_be_reached)?,
        access,
        roles: roles(server.roles.as_deref(), &store)?,
        node_name: node_name(server.node_name, machine)?,
        workers: number("workers", server.workers, 4096, 1..=1_000_000)? as usize,
        pools: pools(server.pools)?,
        shell: shell::resolve(server.enable_shell, shell)?,
        allow_networks: server.allow_network.unwrap_or_default(),
        executors,
        drain_grace: drain_grace(server.drain_grace)?,
        log: log(server.log_format.as_deref(), server.log)?,
        open_metrics: server.open_metrics == Some(true),
        open_openapi: server.open_openapi == Some(true),
        dashboard_hosts: server.dashboard_hosts.unwrap_or_default(),
        open: server.open == Some(true),
        demo: server.demo == Some(true),
        leases,
        poll: Duration::from_millis(poll),
        metrics_interval: Duration::from_secs(metrics_interval),
        long_run_after: seconds("long_run_seconds", engine.long_run_seconds, 30)?.into(),
        run_log_bytes: run_log_bytes as usize,
        retention: Retention { per_job, age, ..Retention::default() },
        average_alpha: alpha(engine.average_alpha)?,
        balance: balance::resolve(&balance)?,
        queue: queue::resolve(&queue)?,
        stale: targets::resolve(&targets)?,
        limits: limits::resolve(&limits)?,
        store,
        data_dir,
    })
}

pub(super) fn invalid(
    key: &'static str,
    message: impl Into<String>,
    way_out: impl Into<String>,
) -> ConfigError {
    ConfigError::Invalid { key, message: message.into(), way_out: way_out.into() }
}

pub(super) fn number<T: Copy + PartialOrd + std::fmt::Display>(
    key: &'static str,
    given: Option<T>,
    default: T,
    range: RangeInclusive<T>,
) -> Result<T> {
    let value = given.unwrap_or(default);
    if range.contains(&value) {
        return Ok(value);
    }
    let (low, high) = range.into_inner();
    let message = format!("{value} is not between {low} and {high}");
    Err(invalid(key, message, format!("leave it out for {default}")))
}

/// Returns the choice with the name `given`, or the first choice without a name. `about` contains
/// texts for the error message: the configuration key, a noun for the choice, and a hint.
pub(super) fn choice<T: Copy>(
    about: (&'static str, &str, &str),
    given: Option<&str>,
    choices: &[(&str, T)],
) -> Result<T> {
    let (key, what, way_out) = about;
    let name = given.unwrap_or(choices[0].0);
    let found = choices.iter().find(|(known, _)| *known == name);
    let unknown = || invalid(key, format!("{name:?} is not a {what}"), way_out);
    found.map(|(_, choice)| *choice).ok_or_else(unknown)
}

pub(super) fn seconds(key: &'static str, given: Option<u64>, default: u64) -> Result<Span> {
    number(key, given, default, 1..=86_400).map(Span::from_secs)
}

fn alpha(given: Option<f64>) -> Result<f64> {
    let alpha = given.unwrap_or(DEFAULT_ALPHA);
    if alpha > 0.0 && alpha <= 1.0 {
        return Ok(alpha);
    }
    let message = format!("{alpha} is not above 0 and at most 1");
    Err(invalid("[engine] average_alpha", message, format!("leave it out for {DEFAULT_ALPHA}")))
}

fn listen(text: Option<&str>, may_be_reached: bool) -> Result<SocketAddr> {
    let text = text.unwrap_or("127.0.0.1:8060");
    let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    let address = match local {
        Some(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        None => text.parse().map_err(|_| {
            let message = format!("{text:?} is not an address with a port");
            invalid("listen", message, "write it like 127.0.0.1:8060 or [::1]:8060")
        })?,
    };
    if address.ip().is_loopback() || may_be_reached {
        Ok(address)
    } else {
        Err(ConfigError::ListensToAll(address))
    }
}

fn roles(names: Option<&[String]>, store: &StoreChoice) -> Result<Roles> {
    let Some(names) = names else { return Ok(Roles::ALL) };
    let mut roles = Roles { api: false, scheduler: false, worker: false };
    for name in names {
        match name.trim() {
            "api" => roles.api = true,
            "scheduler" => roles.scheduler = true,
            "worker" => roles.worker = true,
            _ => {
                let message = format!("{name:?} is not a role");
                return Err(invalid("roles", message, "the roles are api, scheduler, worker"));
            }
        }
    }
    if names.is_empty() {
        return Err(invalid("roles", "is empty", "leave it out for api, scheduler, worker"));
    }
    if matches!(store, StoreChoice::Sqlite(_)) {
        for (has, role) in [(roles.scheduler, "scheduler"), (roles.worker, "worker")] {
            if !has {
                return Err(ConfigError::RolesOnSqlite(role));
            }
        }
    }
    Ok(roles)
}

fn node_name(given: Option<String>, machine: &str) -> Result<String> {
    let name = given.unwrap_or_else(|| machine.into());
    if (1..=255).contains(&name.chars().count()) && !name.contains(char::is_control) {
        return Ok(name);
    }
    let message = format!("{name:?} is not a name");
    Err(invalid("node_name", message, "give 1 to 255 characters on one line"))
}

fn pools(given: Option<Vec<String>>) -> Result<Vec<String>> {
    let pools = given.unwrap_or_else(|| vec![DEFAULT_POOL.into()]);
    let mut pools: Vec<String> = pools.iter().map(|pool| pool.trim().to_owned()).collect();
    if pools.is_empty() || pools.iter().any(String::is_empty) {
        let way_out = format!("leave it out for the pool {DEFAULT_POOL:?}");
        return Err(invalid("pools", "a pool needs a name", way_out));
    }
    // Jobs accept only these characters in pool names, so a pool with another name would never run
    // a job.
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let illegal = |pool: &&String| pool.len() > POOL_CHARS_MAX || !pool.chars().all(legal);
    if let Some(pool) = pools.iter().find(illegal) {
        let message = format!("{pool:?} is not the name of a pool");
        let advice =
            format!("use up to {POOL_CHARS_MAX} letters, digits, dots, dashes and underscores");
        return Err(invalid("pools", message, advice));
    }
    pools.sort();
    pools.dedup();
    Ok(pools)
}

fn drain_grace(given: Option<Span>) -> Result<Duration> {
    let grace = given.unwrap_or(Span::from_secs(25));
    if grace > Span::from_secs(86_400) {
        let message = format!("{grace} is more than a day");
        return Err(invalid("drain_grace", message, "leave it out for 25s"));
    }
    Ok(grace.into())
}

fn log(format: Option<&str>, filter: Option<String>) -> Result<LogConfig> {
    let about = ("log_format", "format", "the formats are text and json");
    let json = choice(about, format, &[("text", false), ("json", true)])?;
    // The default filter limits `tokio_postgres` to warnings, because it logs internal details at
    // level info.
    let filter = filter.unwrap_or_else(|| "info,tokio_postgres=warn".into());
    if let Err(error) = EnvFilter::try_new(&filter) {
        let message = format!("{filter:?} is not a filter: {error}");
        return Err(invalid("log", message, "write it like info or warn,evenkeel_engine=debug"));
    }
    Ok(LogConfig { json, filter })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;
    use crate::config::raw::RawEngine;

    fn with(server: RawServer, engine: RawEngine) -> Result<ServeConfig, Failure> {
        let (global, store) = (RawGlobal::default(), RawStore::default());
        let tables = RawTables { engine, ..RawTables::default() };
        resolve(&global, &store, server, tables, "box").map_err(Failure::from)
    }

    fn refusal(server: RawServer) -> String {
        let failure = with(server, RawEngine::default()).unwrap_err();
        format!("{} | {}", failure.what, failure.way_out.unwrap())
    }

    #[test]
    fn defaults_are_sensible() {
        let config = with(RawServer::default(), RawEngine::default()).unwrap();
        assert_eq!(config.listen.to_string(), "127.0.0.1:8060");
        assert_eq!(config.store.to_string(), "sqlite:evenkeel-data/evenkeel.db");
        assert_eq!((config.node_name.as_str(), config.workers), ("box", 4096));
        assert_eq!(config.leases, LeaseTimings::default());
        assert_eq!(config.retention, Retention::default());
        assert!(!config.shell.enabled.is_on() && config.allow_networks.is_empty());
    }

    #[test]
    fn public_address_needs_insecure_listen() {
        let open = |insecure_listen| RawServer {
            listen: Some("0.0.0.0:80".into()),
            insecure_listen,
            ..RawServer::default()
        };
        assert!(refusal(open(None)).contains("--insecure-listen"));
        assert!(with(open(Some(true)), RawEngine::default()).is_ok());
        let named = RawServer { listen: Some("localhost:1".into()), ..RawServer::default() };
        assert!(with(named, RawEngine::default()).unwrap().listen.ip().is_loopback());
    }

    #[test]
    fn each_error_names_the_key_and_the_way_out() {
        let default = RawServer::default;
        let listen = RawServer { listen: Some("8060".into()), ..default() };
        assert!(refusal(listen).starts_with("listen: \"8060\" is not an address"));
        let roles = RawServer { roles: Some(vec!["boss".into()]), ..default() };
        assert!(refusal(roles).starts_with("roles: \"boss\" is not a role"));
        let lonely = RawServer { roles: Some(vec!["api".into()]), ..default() };
        assert!(refusal(lonely).contains("without scheduler nothing would ever run"));
        let workers = RawServer { workers: Some(0), ..default() };
        assert!(refusal(workers).starts_with("workers: 0 is not between 1 and"));
        let pools = |names: &[&str]| RawServer {
            pools: Some(names.iter().map(|name| (*name).to_owned()).collect()),
            ..default()
        };
        assert!(refusal(pools(&["a", " "])).starts_with("pools: a pool needs a name"));
        let error = refusal(pools(&["two words"]));
        assert!(error.starts_with("pools: \"two words\" is not the name of a pool"));
        let served = with(pools(&["b", " a", "b"]), RawEngine::default()).unwrap().pools;
        assert_eq!(served, ["a", "b"]);
        let format = RawServer { log_format: Some("xml".into()), ..default() };
        assert!(refusal(format).ends_with("the formats are text and json"));
    }

    #[test]
    fn average_alpha_is_above_0_and_at_most_1() {
        let with = |average_alpha| {
            with(RawServer::default(), RawEngine { average_alpha, ..RawEngine::default() })
        };
        assert_eq!(with(None).unwrap().average_alpha, DEFAULT_ALPHA);
        assert_eq!(with(Some(1.0)).unwrap().average_alpha, 1.0);
        for alpha in [0.0, -0.1, 1.1, f64::NAN] {
            let failure = with(Some(alpha)).unwrap_err();
            assert!(failure.what.starts_with("[engine] average_alpha"), "{}", failure.what);
        }
    }

    #[test]
    fn leases_that_could_lose_work_are_refused() {
        let engine = RawEngine { ping_seconds: Some(4), ..RawEngine::default() };
        let failure = with(RawServer::default(), engine).unwrap_err();
        assert!(
            failure.what.contains("ping_seconds (4s) must be at most half"),
            "{}",
            failure.what
        );
        assert!(failure.way_out.unwrap().contains("lease_seconds"));
    }

    #[test]
    fn invalid_store_is_not_shown() {
        let raw = RawStore { store: Some("mysql://ann:s3cret@db".into()) };
        let failure = Failure::from(store_of(&raw, Path::new("d")).unwrap_err());
        assert!(failure.what.starts_with("store: not a store"), "{}", failure.what);
        assert!(!format!("{failure:?}").contains("s3cret"));
    }
}
