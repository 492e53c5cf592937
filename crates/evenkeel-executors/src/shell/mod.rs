//! The executor that runs a program.

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

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::after_attempt::RetryHint;
use evenkeel_core::executor::{ConfigField, ExecutorDeclaration, FieldKind};
use evenkeel_core::{Progress, TenantNo};
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::supervisor::{Spec, millis, monotonic_ms};
use crate::template::Values;
use crate::{CancelReason, ConfigFault, Executor, Invocation, Report, interrupted};
use config::ShellConfig;
use containment::Groups;
pub use containment::{Containment, NoCgroup};
pub use rights::{NoWall, is_root, is_user, nobody, try_wall};
use rights::{Rights, listed_program};
use session::{Session, Terms};
pub use settings::{CgroupUse, ShellSettings, SupervisorCommand, Tenants, WallSettings};

/// Runs a program under a [supervisor](crate::supervisor), which ends it when this node can't.
///
/// # Configuration
///
/// ```json
/// {"argv": ["/opt/report", "--day", "{{scheduled_at}}"],
///  "cwd": "/var/lib/reports", "env": {"MODE": "full"}, "user": "reports",
///  "limits": {"cpu_seconds": 600, "memory_mb": 512, "open_files": 1024, "processes": 50,
///             "file_size_mb": 100},
///  "stdin": "payload", "exit_codes": {"ok": [0], "partly_failed": [100], "give_up": [102]}}
/// ```
///
/// Only `argv` is required. The program is looked for in PATH and started as it is: no shell reads
/// the arguments. Values of the run are filled in, the payload never is: an interpreter could run it.
/// `cwd` is `/` by default, and `"~"` is the home of the user that the body runs as. `user` needs a
/// node that runs as root and lists that user in its settings.
///
/// Limits hold for each process by itself, but `memory_mb` and `processes` for all together where
/// the body has a control group that can limit them; see [`Containment`]. Without one, `memory_mb`
/// is each process's private memory, and `processes` counts all that its user has, and root is free
/// of it.
///
/// # What the body gets
///
/// The payload as JSON on standard input (nothing if that is null, or if `stdin` is `none`; with
/// `text`, a payload that is a string as it is), and an environment of what
/// [`ShellSettings::env_allow`] lets through, what `env` adds, `EVENKEEL_RUN_ID`,
/// `EVENKEEL_EXECUTION_ID`, `EVENKEEL_ATTEMPT`, `EVENKEEL_FENCE`, `EVENKEEL_SCHEDULED_AT`;
/// `EVENKEEL_CHECKPOINT`, the JSON that an earlier attempt has saved, if one has;
/// `EVENKEEL_PAYLOAD_<name>` for each text, number and truth value of the payload's own fields; and
/// `HOME`, `USER` and `LOGNAME` of the user it runs as, if they are not given.
///
/// # What it can't reach
///
/// With [`ShellSettings::wall`] a body has mount and PID namespaces of its own (and a user namespace,
/// if the node is not root): it sees no process but its own, and finds the hidden paths empty.
///
/// # What it says
///
/// A line on standard output that begins with `@evenkeel ` and goes on with a JSON object is for
/// Evenkeel, and no part of the output:
///
/// | line | says |
/// |---|---|
/// | `@evenkeel {"progress": {"done": 5, "total": 20, "message": "pages"}}` | how far it has come; each of the three may be left out |
/// | `@evenkeel {"items": {"crawled": 3, "indexed": 2}}` | how many items it has looked at and kept so far, in all; either may be left out |
/// | `@evenkeel {"checkpoint": …}` | what the next attempt gets: any JSON but `null`, up to 64 KiB |
///
/// One line may say several of these; the last word counts. A program that buffers its output has
/// to flush it after such a line. One that can't be read is output, and the log says so once.
///
/// | exit code | outcome |
/// |---|---|
/// | 0 | completed |
/// | 100 | partly failed: it did its work, but for some of its items |
/// | 102 | failed, and not tried again |
/// | any other; by convention 75 | failed, and tried again as the job says |
///
/// Both streams go to the log in the order in which they arrive. A failure's error is the exit code, or
/// the signal, and the last line that it wrote to standard error; if it wrote more, the end of that
/// follows. The job's timeout is the longest time without a byte on either stream.
#[derive(Debug)]
pub struct ShellExecutor {
    settings: ShellSettings,
    rights: Rights,
    inherited: Vec<(String, String)>,
    groups: Groups,
    places: Semaphore,
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

/// With a control group, the node itself can end all of a body: it need not wait for long.
const SUPERVISOR_LATE: Duration = Duration::from_millis(500);

/// Without, only the supervisor knows all of it, and is given more time to come round.
const SUPERVISOR_LATE_ALONE: Duration = Duration::from_secs(1);

impl ShellExecutor {
    /// Makes the executor, and ends what may be left of a former life's bodies. Bodies get those
    /// variables that this process has now.
    pub fn new(settings: ShellSettings) -> Result<Self, NoCgroup> {
        // Not settings, so not the config's: they are passed on, never looked at.
        let variable = |name: &String| {
            let value = std::env::var_os(name)?;
            Some((name.clone(), value.to_string_lossy().into_owned()))
        };
        Ok(Self {
            inherited: settings.env_allow.iter().filter_map(variable).collect(),
            groups: Groups::find(&settings)?,
            rights: Rights::new(&settings),
            places: Semaphore::new(settings.bodies_max),
            settings,
        })
    }

    /// What keeps a body's processes together here, for the log.
    pub const fn containment(&self) -> &Containment {
        self.groups.containment()
    }

    /// The same, for jobs of these tenants alone, some of them as users of their own.
    #[must_use]
    pub fn for_tenants(
        mut self,
        tenants: Tenants,
        tenant_users: BTreeMap<TenantNo, String>,
    ) -> Self {
        self.settings.tenants = tenants;
        self.settings.tenant_users = tenant_users;
        self.rights = Rights::new(&self.settings);
        self
    }

    fn spec(&self, config: &ShellConfig, invocation: &Invocation) -> Result<Spec, ConfigFault> {
        let (id, payload) = (invocation.id, &invocation.definition.payload);
        let mut filled = config.fill(&Values { id, fence: invocation.fence, payload })?;
        if let (Some(path), Some(program)) =
            (listed_program(&self.settings, config.program()), filled.argv.first_mut())
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
                ("EVENKEEL_FENCE", invocation.fence.0.to_string()),
                ("EVENKEEL_SCHEDULED_AT", id.scheduled_at().to_string()),
            ]
            .map(|(name, value)| (name.into(), value)),
        );
        env.extend(checkpoint(invocation).map(|text| ("EVENKEEL_CHECKPOINT".into(), text)));
        let user = Rights::user(&self.settings, invocation.tenant, config);
        // Before the lease is looked at: see `lease_line`.
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
            user,
            limits: config.limits,
        })
    }

    /// Waits for one of the places, and says so.
    async fn place(&self, invocation: &Invocation) -> Result<SemaphorePermit<'_>, CancelReason> {
        if let Some(reason) = invocation.cancel.reason() {
            return Err(reason);
        }
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let say = |message: &str| {
            let message = Some(message.to_owned());
            invocation.live.progress(Progress { message, ..Progress::default() });
        };
        say("waiting for a free place");
        let mut lease = invocation.lease.clone();
        tokio::select! {
            biased;
            reason = interrupted(&invocation.cancel, &mut lease) => Err(reason),
            place = self.places.acquire() => {
                say("");
                // Nobody closes the semaphore.
                place.map_err(|_| CancelReason::ShuttingDown)
            }
        }
    }
}

/// What an earlier attempt has saved, if a body can be given it: the job may have had another
/// executor then, whose notes are its own.
fn checkpoint(invocation: &Invocation) -> Option<String> {
    let text = String::from_utf8(invocation.checkpoint.clone()?).ok()?;
    let fits = text.len() <= lines::CHECKPOINT_TEXT_MAX && !text.contains('\0');
    let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
    (fits && is_json()).then_some(text)
}

/// A run that can't be described can't be described better a minute later.
fn pointless(fault: &ConfigFault) -> Report {
    Report { again: RetryHint::Never, ..Report::failed(fault.to_string()) }
}

#[async_trait]
impl Executor for ShellExecutor {
    fn declaration(&self) -> &'static ExecutorDeclaration {
        &DECLARATION
    }

    fn check(&self, tenant: TenantNo, config: &Value, payload: &Value) -> Result<(), ConfigFault> {
        let config = ShellConfig::parse(config)?;
        self.rights.check(&self.settings, tenant, &config)?;
        config.check(payload)
    }

    async fn run(&self, invocation: Invocation) -> Report {
        let config = match ShellConfig::parse(&invocation.definition.executor.config) {
            Ok(config) => config,
            Err(fault) => return pointless(&fault),
        };
        // Another node may have other settings, so it may be tried again.
        if let Err(fault) = self.rights.check(&self.settings, invocation.tenant, &config) {
            return Report::failed(fault.to_string());
        }
        let _place = match self.place(&invocation).await {
            Ok(place) => place,
            Err(reason) => return Report::cancelled(reason),
        };
        let mut spec = match self.spec(&config, &invocation) {
            Ok(spec) => spec,
            Err(fault) => return pointless(&fault),
        };
        let wall = self.rights.wall(&self.settings, spec.user.as_deref());
        if wall.is_some() {
            // It holds the lock in place of the supervisor, which can't see it.
            spec.bodies_lock = None;
        }
        let session = match Session::open(&self.settings.supervisor, &spec, wall.as_ref()) {
            Ok(session) => session,
            Err(error) => {
                return Report::failed(format!("the supervisor can't be started: {error}"));
            }
        };
        let late = if spec.group.is_some() { SUPERVISOR_LATE } else { SUPERVISOR_LATE_ALONE };
        let terms = Terms {
            silence: invocation.definition.timeout,
            stopping: self.settings.kill_grace + late,
            codes: &config.exit_codes,
            cancel: &invocation.cancel,
            lease: invocation.lease,
            live: invocation.live,
        };
        // On the heap: there are thousands of these, and few are at their largest.
        Box::pin(session.run(terms)).await
    }
}
