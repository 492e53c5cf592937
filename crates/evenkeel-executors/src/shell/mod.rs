//! The executor that runs a program. `docs/executors.md` describes the configuration of shell jobs,
//! the lines that a program can print for Evenkeel, and the meaning of exit codes.

mod argv;
mod config;
mod containment;
mod ending;
mod exit_codes;
mod lines;
mod output;
mod rights;
mod session;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::TenantNo;
use evenkeel_core::executor::{ConfigField, ExecutorDeclaration, FieldKind};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::supervisor::{Spec, millis, monotonic_ms};
use crate::template::Values;
use crate::{ConfigFault, Executor, Invocation, Report, permit};
use config::ShellConfig;
use containment::Groups;
pub use containment::{Containment, NoCgroup};
pub use rights::{NoSandbox, is_root, is_user, nobody, try_sandbox};
use session::{Session, SessionOptions};
pub use settings::{CgroupUse, SandboxSettings, ShellSettings, SupervisorCommand};

/// Runs a program under a [supervisor](crate::supervisor), which ends all processes of the program
/// if the node cannot.
///
/// - No shell interprets the arguments. Variables of the run are filled into the arguments. The
///   payload is not filled into the arguments, because an interpreter could execute it. The program
///   gets the payload on standard input and in environment variables.
/// - The program inherits only the environment variables in [`ShellSettings::env_allow`].
/// - Resource limits apply to each process. `memory_mb` and `processes` apply to the program as a
///   whole if it has a control group that supports this; see [`Containment`].
/// - With [`ShellSettings::sandbox`], the program runs in separate mount and PID namespaces (and a
///   user namespace, if the node is not root). The program sees only its own processes, and hidden
///   paths are empty.
/// - The job's timeout limits the time without output on standard output and standard error.
#[derive(Debug)]
pub struct ShellExecutor {
    settings: ShellSettings,
    /// The users in the settings that are root, under any name.
    roots: BTreeSet<String>,
    inherited: Vec<(String, String)>,
    groups: Groups,
    permits: Semaphore,
}

pub static DECLARATION: ExecutorDeclaration = ExecutorDeclaration {
    disabled_hint: Some("shell is off unless the server enables it"),
    ..ExecutorDeclaration::new(
        "shell",
        &[
            ConfigField::new("argv", FieldKind::Arguments),
            ConfigField::public("cwd"),
            ConfigField::new("env", FieldKind::HiddenValues).with_secrets(),
            ConfigField::public("user"),
            ConfigField::public("limits"),
            ConfigField::public("stdin"),
            ConfigField::public("exit_codes"),
        ],
    )
};

/// Time after `kill_grace` at which the node kills a supervisor that has not stopped, if the
/// program has a control group. The node can kill a control group without the supervisor.
const SUPERVISOR_LATE: Duration = Duration::from_millis(500);

/// Time after `kill_grace` at which the node kills a supervisor that has not stopped, if the
/// program has no control group. Without a control group, only the supervisor knows all processes.
const SUPERVISOR_LATE_ALONE: Duration = Duration::from_secs(1);

impl ShellExecutor {
    /// Creates the executor and ends programs that an earlier start of this node has left running.
    /// Programs inherit the environment variables that this process has at the time of this call.
    pub fn new(settings: ShellSettings) -> Result<Self, NoCgroup> {
        let variable = |name: &String| {
            let value = std::env::var_os(name)?;
            Some((name.clone(), value.to_string_lossy().into_owned()))
        };
        Ok(Self {
            inherited: settings.env_allow.iter().filter_map(variable).collect(),
            groups: Groups::find(&settings)?,
            roots: settings.roots(),
            permits: Semaphore::new(settings.bodies_max),
            settings,
        })
    }

    /// Returns how the processes of a program are kept together, for the startup log.
    pub const fn containment(&self) -> &Containment {
        self.groups.containment()
    }

    /// Restricts the executor to jobs of these tenants, unless `tenants` is `None`. Programs of a
    /// tenant in `tenant_users` run as the given user.
    #[must_use]
    pub fn for_tenants(
        mut self,
        tenants: Option<BTreeSet<TenantNo>>,
        tenant_users: BTreeMap<TenantNo, String>,
    ) -> Self {
        self.settings.tenants = tenants;
        self.settings.tenant_users = tenant_users;
        self.roots = self.settings.roots();
        self
    }

    fn spec(&self, config: &ShellConfig, invocation: &Invocation) -> Result<Spec, ConfigFault> {
        let values = Values::of(invocation);
        let Values { id, fence, payload } = values;
        let mut filled = config.fill(&values)?;
        if let (Some(path), Some(program)) =
            (self.settings.listed_program(config.program()), filled.argv.first_mut())
        {
            *program = path.to_string_lossy().into_owned();
        }
        let mut env: BTreeMap<String, String> = self.inherited.iter().cloned().collect();
        env.extend(filled.env);
        env.extend(argv::payload_variables(payload));
        env.extend(
            [
                ("EVENKEEL_RUN_ID", id.run_id().to_string()),
                ("EVENKEEL_EXECUTION_ID", id.to_string()),
                ("EVENKEEL_ATTEMPT", id.attempt().from_one().to_string()),
                ("EVENKEEL_FENCE", fence.0.to_string()),
                ("EVENKEEL_SCHEDULED_AT", id.scheduled_at().to_string()),
            ]
            .map(|(name, value)| (name.into(), value)),
        );
        env.extend(checkpoint(invocation).map(|text| ("EVENKEEL_CHECKPOINT".into(), text)));
        // The clock must be read before the remaining time of the lease; see `lease_line`.
        let sent_ms = monotonic_ms();
        Ok(Spec {
            argv: filled.argv,
            env,
            cwd: config.cwd.clone(),
            payload: config.input(payload),
            bodies_lock: self.settings.bodies_lock.clone(),
            kill_grace_ms: millis(self.settings.kill_grace),
            lease_ms: invocation.lease.remaining().map(millis),
            sent_ms,
            group: self.groups.next(&id),
            user: self.settings.user_of(invocation.tenant, config),
            limits: config.limits,
        })
    }
}

/// Returns the checkpoint of an earlier attempt as text, if it is JSON that fits into an
/// environment variable. An earlier attempt with another executor may have saved a checkpoint that
/// is not JSON.
fn checkpoint(invocation: &Invocation) -> Option<String> {
    let text = String::from_utf8(invocation.checkpoint.clone()?).ok()?;
    let fits = text.len() <= lines::CHECKPOINT_TEXT_MAX && !text.contains('\0');
    let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
    (fits && is_json()).then_some(text)
}

#[async_trait]
impl Executor for ShellExecutor {
    fn declaration(&self) -> &'static ExecutorDeclaration {
        &DECLARATION
    }

    fn check(&self, tenant: TenantNo, config: &Value, payload: &Value) -> Result<(), ConfigFault> {
        let config = ShellConfig::parse(config)?;
        self.settings.check(tenant, &config)?;
        config.check(payload)
    }

    async fn run(&self, invocation: Invocation) -> Report {
        self.run_program(invocation).await.unwrap_or_else(std::convert::identity)
    }
}

impl ShellExecutor {
    /// Runs the program of an attempt. Returns an error with the report of the attempt if the
    /// program was not started.
    async fn run_program(&self, invocation: Invocation) -> Result<Report, Report> {
        let config = ShellConfig::parse(&invocation.definition.executor.config)
            .map_err(Report::failed_for_good)?;
        // Another node may have settings that allow the job, so the attempt may be retried.
        self.settings.check(invocation.tenant, &config).map_err(Report::failed)?;
        let waiting = "waiting: the node runs as many programs as it may";
        let permit = permit::acquire(&self.permits, &invocation, waiting).await;
        let _permit = permit.map_err(Report::cancelled)?;
        let mut spec = self.spec(&config, &invocation).map_err(Report::failed_for_good)?;
        let sandbox = self.settings.sandbox_of(spec.user.as_ref(), &self.roots);
        if sandbox.is_some() {
            // The sandbox builder holds the lock, because the supervisor inside the sandbox cannot
            // see the lock file.
            spec.bodies_lock = None;
        }
        let late = if spec.group.is_some() { SUPERVISOR_LATE } else { SUPERVISOR_LATE_ALONE };
        let options = SessionOptions {
            timeout: invocation.definition.timeout,
            stop_timeout: self.settings.kill_grace + late,
            codes: &config.exit_codes,
            cancel: &invocation.cancel,
            lease: invocation.lease,
            live: invocation.live,
        };
        let session = Session::open(&self.settings.supervisor, &spec, sandbox.as_ref(), options)
            .map_err(|error| Report::failed(format!("the supervisor can't be started: {error}")))?;
        // The large future is boxed, so that attempts which wait for a permit need little memory.
        Ok(Box::pin(session.run()).await)
    }
}
