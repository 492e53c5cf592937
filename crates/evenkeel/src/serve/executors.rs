//! What jobs of this node can do.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_commands::ExecutorCheck;
use evenkeel_executors::{
    HttpExecutor, NoopExecutor, Registry, ShellExecutor, ShellSettings, SupervisorCommand,
};
use evenkeel_outbound::{Outbound, OutboundSettings};
use serde_json::Value;

use crate::config::ServeConfig;
use crate::{Failure, SUPERVISE};

/// The executors that the configuration allows.
pub fn registry(config: &ServeConfig, bodies_lock: PathBuf) -> Result<Registry, Failure> {
    let outbound = Outbound::new(OutboundSettings {
        allow_networks: config.allow_networks.clone(),
        ..OutboundSettings::default()
    })
    .map_err(|error| Failure::because("HTTP jobs can't be run", &error))?;
    let http = HttpExecutor::new(outbound);
    let registry = Registry::new().with(Arc::new(NoopExecutor)).with(Arc::new(http));
    if !config.enable_shell {
        return Ok(registry);
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::because("this program can't be found", &error))?;
    let supervisor = SupervisorCommand { program, args: vec![SUPERVISE.into()] };
    // A body may outlive its lease by this much, and must be gone before others can have it.
    let half_grace = Duration::from(config.leases.grace) / 2;
    let settings = ShellSettings {
        bodies_lock: Some(bodies_lock),
        kill_grace: half_grace.min(Duration::from_secs(1)),
        ..ShellSettings::new(supervisor)
    };
    let shell = ShellExecutor::new(settings)
        .map_err(|error| Failure::because("shell jobs can't be run", &error))?;
    tracing::info!("{}", shell.containment());
    Ok(registry.with(Arc::new(shell)))
}

/// Lets commands ask the executors.
pub struct Checks(pub Arc<Registry>);

impl ExecutorCheck for Checks {
    fn check(&self, kind: &str, config: &Value, payload: &Value) -> Result<(), (String, String)> {
        match self.0.get(kind) {
            Some(executor) => {
                let checked = executor.check(config, payload);
                checked.map_err(|fault| (fault.field, fault.message))
            }
            None => Err(("executor_type".into(), "is not known here".into())),
        }
    }

    fn kinds(&self) -> Vec<String> {
        self.0.kinds().map(String::from).collect()
    }
}
