//! Decides which tenants, users and programs a node allows for shell jobs, and in which sandbox
//! they run.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use evenkeel_core::TenantNo;
use nix::unistd::User;
use rustix::process::geteuid;

use super::config::ShellConfig;
use super::settings::{SandboxSettings, ShellSettings, SupervisorCommand};
use crate::ConfigFault;
use crate::supervisor::{EXIT_ABANDONED, SANDBOX, Sandbox};

/// This machine cannot set up a sandbox.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct NoSandbox {
    pub reason: String,
}

/// Sets up an empty sandbox, to check whether this machine supports it.
pub fn try_sandbox(
    supervisor: &SupervisorCommand,
    sandbox: &SandboxSettings,
) -> Result<(), NoSandbox> {
    let refused = |reason: String| NoSandbox { reason };
    let sandbox = Sandbox { hidden: sandbox.hidden.clone(), bodies_lock: None };
    let sandbox = serde_json::to_string(&sandbox).map_err(|error| refused(error.to_string()))?;
    // This supervisor has no node to talk to, so it exits with this code once the sandbox is set
    // up.
    let tried = Command::new(&supervisor.program)
        .args(&supervisor.args)
        .args([SANDBOX, &sandbox])
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .map_err(|error| refused(format!("the supervisor can't be started: {error}")))?;
    if tried.status.code() == Some(EXIT_ABANDONED.into()) {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&tried.stderr);
    let message = message.trim().trim_start_matches("evenkeel: ");
    Err(refused(if message.is_empty() { tried.status.to_string() } else { message.to_owned() }))
}

/// True if the user exists. A user number always counts as existing.
pub fn is_user(name: &str) -> bool {
    uid_of(name).is_some()
}

/// True if the user is root, even under another name.
pub fn is_root(name: &str) -> bool {
    uid_of(name) == Some(0)
}

/// Returns the user with the fewest rights: `nobody`, or the number that most systems give this
/// user.
pub fn nobody() -> String {
    let name = "nobody";
    if is_user(name) { name.into() } else { "65534".into() }
}

fn uid_of(name: &str) -> Option<u32> {
    let by_name = || User::from_name(name).ok().flatten().map(|user| user.uid.as_raw());
    name.parse().ok().or_else(by_name)
}

/// The tenants, users and programs that the settings allow.
#[derive(Debug)]
pub(super) struct Rights {
    /// The users in the settings that are root, even under another name.
    roots: BTreeSet<String>,
}

impl Rights {
    pub(super) fn new(settings: &ShellSettings) -> Self {
        let users = settings.user.iter().chain(settings.tenant_users.values());
        let roots = users.chain(&settings.users).filter(|user| is_root(user));
        Self { roots: roots.cloned().collect() }
    }

    /// Refuses a job that the settings of this node do not allow for the tenant.
    pub(super) fn check(
        &self,
        settings: &ShellSettings,
        tenant: TenantNo,
        config: &ShellConfig,
    ) -> Result<(), ConfigFault> {
        check_tenant(settings, tenant)?;
        check_user(settings, tenant, config.user.as_deref())?;
        check_program(settings, config)
    }

    /// Returns the user that a program runs as, or `None` for the user of the node.
    pub(super) fn user(
        settings: &ShellSettings,
        tenant: TenantNo,
        config: &ShellConfig,
    ) -> Option<String> {
        config.user.clone().or_else(|| given_user(settings, tenant).map(String::from))
    }

    /// Returns the sandbox for a program that runs as this user.
    pub(super) fn sandbox(&self, settings: &ShellSettings, user: Option<&str>) -> Option<Sandbox> {
        let runs_as_root = match user {
            Some(user) => self.roots.contains(user),
            None => geteuid().is_root(),
        };
        let sandbox = settings.sandbox.as_ref().filter(|_| !runs_as_root)?;
        Some(Sandbox { hidden: sandbox.hidden.clone(), bodies_lock: settings.bodies_lock.clone() })
    }
}

fn given_user(settings: &ShellSettings, tenant: TenantNo) -> Option<&str> {
    settings.tenant_users.get(&tenant).or(settings.user.as_ref()).map(String::as_str)
}

fn check_tenant(settings: &ShellSettings, tenant: TenantNo) -> Result<(), ConfigFault> {
    if settings.tenants.contains(tenant) {
        return Ok(());
    }
    let message = "shell is off for this tenant; the server's operator turns it on: --enable-shell \
                   names the tenants, as in --enable-shell=default,acme";
    Err(ConfigFault { field: "executor_type".into(), message: message.into() })
}

/// Refuses a user that the node cannot or may not switch to.
fn check_user(
    settings: &ShellSettings,
    tenant: TenantNo,
    user: Option<&str>,
) -> Result<(), ConfigFault> {
    let Some(user) = user else { return Ok(()) };
    let given = given_user(settings, tenant);
    if given != Some(user) && !settings.users.iter().any(|allowed| allowed == user) {
        let message = match given {
            Some(given) => format!(
                "is {user:?}; jobs run as {given:?} here, and --shell-users of the server does not \
                 list another; leave it out"
            ),
            None => format!("is {user:?}, which --shell-users of the server does not list"),
        };
        return Err(ConfigFault::new("user", message));
    }
    if !geteuid().is_root() {
        let message = format!("is {user:?}; only a server that runs as root can switch users");
        return Err(ConfigFault::new("user", message));
    }
    Ok(())
}

/// If the settings list programs, a job must name one of them by path or by file name. The job may
/// set only variables that the server knows, because other variables can make a program run another
/// program.
fn check_program(settings: &ShellSettings, config: &ShellConfig) -> Result<(), ConfigFault> {
    if settings.programs.is_empty() {
        return Ok(());
    }
    if listed_program(settings, config.program()).is_none() {
        let listed: Vec<_> =
            settings.programs.iter().map(|path| path.display().to_string()).collect();
        let message = format!(
            "is {:?}; this server runs only the programs that --shell-programs lists: {}",
            config.program(),
            listed.join(", ")
        );
        return Err(ConfigFault::new("argv[0]", message));
    }
    let is_known = |name: &str| name != "PATH" && settings.env_allow.iter().any(|it| it == name);
    match config.env.iter().find(|(name, _)| !is_known(name)) {
        None => Ok(()),
        Some((name, _)) => Err(ConfigFault::new(
            &format!("env.{name}"),
            "can't be set by a job where --shell-programs lists the programs: it may change what \
             they run; the server's operator can allow it with --shell-env",
        )),
    }
}

/// Returns the listed path for a program name, if the settings list programs. A job cannot change
/// this path with a link or with `PATH`.
pub(super) fn listed_program<'a>(settings: &'a ShellSettings, name: &str) -> Option<&'a Path> {
    let mut listed = settings.programs.iter().map(|path| path.as_path());
    listed.find(|path| *path == Path::new(name) || path.file_name().is_some_and(|it| it == name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::shell::Tenants;

    fn settings() -> ShellSettings {
        let (program, args) = ("/no/supervisor".into(), Vec::new());
        ShellSettings::new(SupervisorCommand { program, args })
    }

    fn fault(settings: &ShellSettings, tenant: i32, config: &Value) -> Option<String> {
        let config = ShellConfig::parse(config).unwrap();
        let rights = Rights::new(settings);
        rights.check(settings, TenantNo(tenant), &config).err().map(|fault| fault.to_string())
    }

    #[test]
    fn tenant_without_shell_gets_an_error_with_the_flag() {
        let tenants = Tenants::Only(BTreeSet::from([TenantNo(1)]));
        let settings = ShellSettings { tenants, ..settings() };
        assert_eq!(fault(&settings, 1, &json!({"argv": ["true"]})), None);
        let message = fault(&settings, 2, &json!({"argv": ["true"]})).unwrap();
        assert!(message.starts_with("executor_type: shell is off for this tenant"), "{message}");
        assert!(message.contains("--enable-shell=default,acme"), "{message}");
    }

    #[test]
    fn job_cannot_choose_a_user_that_the_operator_does_not_allow() {
        let tenant_users = [(TenantNo(2), "acme".to_owned())].into();
        let settings = ShellSettings { user: Some("nobody".into()), tenant_users, ..settings() };
        let user = |name: &str| json!({"argv": ["true"], "user": name});
        let message = fault(&settings, 1, &user("acme")).unwrap();
        assert!(message.contains("jobs run as \"nobody\" here"), "{message}");
        assert!(fault(&settings, 2, &user("nobody")).unwrap().contains("jobs run as \"acme\""));
        let config = ShellConfig::parse(&json!({"argv": ["true"]})).unwrap();
        let given = |tenant| Rights::user(&settings, TenantNo(tenant), &config);
        assert_eq!((given(1).as_deref(), given(2).as_deref()), (Some("nobody"), Some("acme")));
    }

    #[test]
    fn only_listed_programs_run_and_only_by_their_listed_path() {
        let programs = vec!["/usr/bin/find".into(), "/opt/report".into()];
        let settings = ShellSettings { programs, ..settings() };
        for (argv0, listed) in [
            ("/usr/bin/find", Some("/usr/bin/find")),
            ("find", Some("/usr/bin/find")),
            ("report", Some("/opt/report")),
            ("/usr/bin/../bin/find", None),
            ("/bin/find", None),
            ("./find", None),
            ("sh", None),
        ] {
            assert_eq!(listed_program(&settings, argv0), listed.map(Path::new), "{argv0}");
            let refused = fault(&settings, 1, &json!({"argv": [argv0, "x"]}));
            assert_eq!(refused.is_none(), listed.is_some(), "{argv0}: {refused:?}");
        }
        let with = |name: &str| json!({"argv": ["find"], "env": {name: "x"}});
        for name in ["LD_PRELOAD", "PATH", "BASH_ENV"] {
            let message = fault(&settings, 1, &with(name)).unwrap();
            assert!(message.contains(&format!("env.{name}")), "{message}");
        }
        assert_eq!(fault(&settings, 1, &with("TZ")), None);
    }

    #[test]
    fn root_is_never_in_a_sandbox() {
        let sandbox = Some(SandboxSettings { hidden: vec!["/data".into()] });
        let users = ["root", "0", "nobody"].map(String::from).to_vec();
        let settings = ShellSettings { sandbox, users, ..settings() };
        let rights = Rights::new(&settings);
        for (user, sandboxed) in [("root", false), ("0", false), ("nobody", true)] {
            assert_eq!(rights.sandbox(&settings, Some(user)).is_some(), sandboxed, "{user}");
        }
    }
}
