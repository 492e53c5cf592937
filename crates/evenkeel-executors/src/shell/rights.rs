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

/// Sets up a sandbox without a program, to check whether this machine supports sandboxes.
pub fn try_sandbox(
    supervisor: &SupervisorCommand,
    sandbox: &SandboxSettings,
) -> Result<(), NoSandbox> {
    let refused = |reason: String| NoSandbox { reason };
    let sandbox = Sandbox { hidden: sandbox.hidden.clone(), bodies_lock: None };
    let sandbox = serde_json::to_string(&sandbox).map_err(|error| refused(error.to_string()))?;
    // This supervisor has no node, so it exits with `EXIT_ABANDONED` once the sandbox is set up.
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

/// True if the user exists. A user who is given by number always counts as existing.
pub fn is_user(name: &str) -> bool {
    uid_of(name).is_some()
}

/// True if the user is root, even under another name.
pub fn is_root(name: &str) -> bool {
    uid_of(name) == Some(0)
}

/// Returns the user with the fewest rights: `nobody`, or the user number that most systems give to
/// `nobody`.
pub fn nobody() -> String {
    let name = "nobody";
    if is_user(name) { name.into() } else { "65534".into() }
}

fn uid_of(name: &str) -> Option<u32> {
    let by_name = || User::from_name(name).ok().flatten().map(|user| user.uid.as_raw());
    name.parse().ok().or_else(by_name)
}

impl ShellSettings {
    /// Returns the users in the settings that are root, even under another name.
    pub(super) fn roots(&self) -> BTreeSet<String> {
        let users = self.user.iter().chain(self.tenant_users.values()).chain(&self.users);
        users.filter(|user| is_root(user)).cloned().collect()
    }

    /// Refuses a job that the settings of this node do not allow for the tenant.
    pub(super) fn check(&self, tenant: TenantNo, config: &ShellConfig) -> Result<(), ConfigFault> {
        if self.tenants.as_ref().is_some_and(|tenants| !tenants.contains(&tenant)) {
            let message = "shell is off for this tenant; the server's operator turns it on: \
                           --enable-shell names the tenants, as in --enable-shell=default,acme";
            return Err(ConfigFault { field: "executor_type".into(), message: message.into() });
        }
        if let Some(user) = &config.user {
            self.check_user(tenant, user)?;
        }
        self.check_program(config)
    }

    /// Returns the user that a program runs as, or `None` for the user of the node.
    pub(super) fn user_of(&self, tenant: TenantNo, config: &ShellConfig) -> Option<String> {
        config.user.as_ref().or_else(|| self.given_user(tenant)).cloned()
    }

    /// Returns the sandbox for a program that runs as this user, or `None` for root. `roots` is the
    /// result of [`roots`](Self::roots).
    pub(super) fn sandbox_of(
        &self,
        user: Option<&String>,
        roots: &BTreeSet<String>,
    ) -> Option<Sandbox> {
        let runs_as_root = user.map_or_else(|| geteuid().is_root(), |user| roots.contains(user));
        let sandbox = self.sandbox.as_ref().filter(|_| !runs_as_root)?;
        Some(Sandbox { hidden: sandbox.hidden.clone(), bodies_lock: self.bodies_lock.clone() })
    }

    fn given_user(&self, tenant: TenantNo) -> Option<&String> {
        self.tenant_users.get(&tenant).or(self.user.as_ref())
    }

    /// Refuses a user that the node cannot or may not switch to.
    fn check_user(&self, tenant: TenantNo, user: &String) -> Result<(), ConfigFault> {
        let given = self.given_user(tenant);
        if given != Some(user) && !self.users.contains(user) {
            let message = match given {
                Some(given) => format!(
                    "is {user:?}; jobs run as {given:?} here, and --shell-users of the server does \
                     not list another; leave it out"
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

    /// If the settings list programs, a job must name one of the listed programs by path or by file
    /// name. If programs are listed, a job may set only the environment variables in `env_allow`,
    /// except `PATH`, because other variables can make a program run another program.
    fn check_program(&self, config: &ShellConfig) -> Result<(), ConfigFault> {
        if self.programs.is_empty() {
            return Ok(());
        }
        let program = config.program();
        if self.listed_program(program).is_none() {
            let listed: Vec<_> =
                self.programs.iter().map(|path| path.display().to_string()).collect();
            let message = format!(
                "is {program:?}; this server runs only the programs that --shell-programs lists: {}",
                listed.join(", ")
            );
            return Err(ConfigFault::new("argv[0]", message));
        }
        let is_known = |name: &String| name != "PATH" && self.env_allow.contains(name);
        match config.env.iter().find(|(name, _)| !is_known(name)) {
            None => Ok(()),
            Some((name, _)) => Err(ConfigFault::new(
                &format!("env.{name}"),
                "can't be set by a job where --shell-programs lists the programs: it may change \
                 what they run; the server's operator can allow it with --shell-env",
            )),
        }
    }

    /// Returns the path in the settings' list of programs for a program name. A job cannot replace
    /// the listed program with a link or with `PATH`.
    pub(super) fn listed_program(&self, name: &str) -> Option<&Path> {
        let mut listed = self.programs.iter().map(|path| path.as_path());
        listed
            .find(|path| *path == Path::new(name) || path.file_name().is_some_and(|it| it == name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn settings() -> ShellSettings {
        let (program, args) = ("/no/supervisor".into(), Vec::new());
        ShellSettings::new(SupervisorCommand { program, args })
    }

    fn fault(settings: &ShellSettings, tenant: i32, config: &Value) -> Option<String> {
        let config = ShellConfig::parse(config).unwrap();
        settings.check(TenantNo(tenant), &config).err().map(|fault| fault.to_string())
    }

    #[test]
    fn tenant_without_shell_gets_an_error_with_the_flag() {
        let tenants = Some(BTreeSet::from([TenantNo(1)]));
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
        let given = |tenant| settings.user_of(TenantNo(tenant), &config);
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
            assert_eq!(settings.listed_program(argv0), listed.map(Path::new), "{argv0}");
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
        let roots = settings.roots();
        for (user, sandboxed) in [("root", false), ("0", false), ("nobody", true)] {
            let sandbox = settings.sandbox_of(Some(&user.to_owned()), &roots);
            assert_eq!(sandbox.is_some(), sandboxed, "{user}");
        }
    }
}
