//! The executor that runs a program.

mod config;
mod session;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::supervisor::{Spec, millis, monotonic_ms};
use crate::{ConfigFault, Executor, Invocation, Report};
use config::ShellConfig;
use session::{Limits, Session};

/// How programs are run.
#[derive(Clone, Debug)]
pub struct ShellSettings {
    /// What starts a supervisor.
    pub supervisor: SupervisorCommand,
    /// The file supervisors hold a shared lock on while their bodies run.
    pub bodies_lock: Option<PathBuf>,
    /// Between the SIGTERM that asks a body to end and the SIGKILL that ends it.
    pub kill_grace: Duration,
    /// So many programs run at once; more wait. A program costs far more than a call.
    pub bodies_max: usize,
}

impl ShellSettings {
    /// With a second of grace, no lock, and at most 256 programs.
    pub const fn new(supervisor: SupervisorCommand) -> Self {
        Self { supervisor, bodies_lock: None, kill_grace: Duration::from_secs(1), bodies_max: 256 }
    }
}

/// A command line that ends up in [`supervisor::main`](crate::supervisor::main).
#[derive(Clone, Debug)]
pub struct SupervisorCommand {
    /// The program: `evenkeel` itself.
    pub program: PathBuf,
    /// Its arguments: `__supervise`.
    pub args: Vec<String>,
}

/// Runs a program under a [supervisor](crate::supervisor), which ends it when this node can't.
///
/// Its configuration is `{"argv": ["program", "argument"], "cwd": "/somewhere", "env": {}}`. The
/// program is looked for in PATH and started as it is: no shell reads the arguments. It gets the
/// payload as JSON on standard input (nothing if that is null) and an environment of PATH,
/// `EVENKEEL_RUN_ID`, `EVENKEEL_EXECUTION_ID`, `EVENKEEL_ATTEMPT`, `EVENKEEL_FENCE`,
/// `EVENKEEL_SCHEDULED_AT` and what `env` adds.
///
/// Exit code 0 is success; everything else fails with the end of what it wrote to standard error.
/// The output is the end of its standard output. The job's timeout is the longest time without a
/// byte on either.
#[derive(Debug)]
pub struct ShellExecutor {
    settings: ShellSettings,
    path: Option<String>,
    places: Semaphore,
}

impl ShellExecutor {
    /// Makes the executor. Bodies get the PATH this process has now.
    pub fn new(settings: ShellSettings) -> Self {
        // Not a setting, so not the config's: it is passed on, never looked at.
        let path = std::env::var_os("PATH").map(|path| path.to_string_lossy().into_owned());
        let places = Semaphore::new(settings.bodies_max);
        Self { settings, path, places }
    }

    fn spec(&self, config: ShellConfig, invocation: &Invocation) -> Spec {
        let key = invocation.key;
        let mut env: BTreeMap<String, String> =
            self.path.iter().map(|path| ("PATH".into(), path.clone())).collect();
        env.extend(config.env);
        env.extend(
            [
                ("EVENKEEL_RUN_ID", key.run_id().to_string()),
                ("EVENKEEL_EXECUTION_ID", key.execution_id().to_string()),
                ("EVENKEEL_ATTEMPT", key.attempt.to_string()),
                ("EVENKEEL_FENCE", invocation.fence.0.to_string()),
                ("EVENKEEL_SCHEDULED_AT", key.scheduled_at.to_string()),
            ]
            .map(|(name, value)| (name.into(), value)),
        );
        let payload = &invocation.definition.payload;
        // Before the lease is looked at: see `lease_line`.
        let sent_ms = monotonic_ms();
        Spec {
            argv: config.argv,
            env,
            cwd: config.cwd,
            payload: (!payload.is_null()).then(|| payload.to_string()),
            bodies_lock: self.settings.bodies_lock.clone(),
            kill_grace_ms: millis(self.settings.kill_grace),
            lease_ms: invocation.lease.remaining().map(millis),
            sent_ms,
        }
    }
}

#[async_trait]
impl Executor for ShellExecutor {
    fn kind(&self) -> &'static str {
        "shell"
    }

    fn check(&self, config: &Value, _payload: &Value) -> Result<(), ConfigFault> {
        ShellConfig::parse(config).map(drop)
    }

    async fn run(&self, invocation: Invocation) -> Report {
        let config = match ShellConfig::parse(&invocation.definition.executor.config) {
            Ok(config) => config,
            Err(fault) => return Report::failed(fault.to_string()),
        };
        let _place = tokio::select! {
            biased;
            reason = invocation.cancel.cancelled() => return Report::cancelled(reason),
            place = self.places.acquire() => place,
        };
        let spec = self.spec(config, &invocation);
        let session = Session::open(&self.settings.supervisor, self.path.as_deref(), &spec);
        let limits = Limits {
            silence: invocation.definition.timeout,
            // The supervisor kills after the grace; that it doesn't is not to be waited for.
            stopping: self.settings.kill_grace + Duration::from_secs(2),
        };
        match session {
            Ok(session) => {
                // On the heap: there are thousands of these, and few are at their largest.
                Box::pin(session.run(limits, &invocation.cancel, invocation.lease)).await
            }
            Err(error) => Report::failed(format!("the supervisor can't be started: {error}")),
        }
    }
}
