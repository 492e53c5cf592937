//! Sets up the shell executor and its confinement.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use evenkeel_executors::{
    Containment, SandboxSettings, ShellExecutor, ShellSettings, is_root, is_user, nobody,
    try_sandbox,
};
use evenkeel_store::Store;
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior};
use tokio_postgres::config::Host;

use super::data_dir::{DataDir, with_ending};
use super::executors::supervisor_command;
use crate::config::{EnableShell, SecretKeys, ServeConfig, ShellConfig, StoreChoice};
use crate::failure::Because as _;
use crate::{Failure, Result};

/// Returns the shell executor, if it is enabled. Call this function before waiting for programs of
/// the previous server process, because creating the executor kills their remaining processes.
pub fn executor(config: &ServeConfig, dir: &DataDir) -> Result<Option<ShellExecutor>> {
    let shell = &config.shell;
    if !shell.enabled.is_on() {
        return Ok(None);
    }
    // If the server were dumpable, a program of the same user could read the server's memory and
    // environment.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .because("the server's memory can't be protected")?;
    let user = user(shell)?;
    // After a node loses its lease, its shell programs must be dead before the grace period ends,
    // because another node then starts the attempts.
    let half_grace = Duration::from(config.leases.grace) / 2;
    let defaults = ShellSettings::new(supervisor_command());
    let mut env_allow = defaults.env_allow.clone();
    env_allow.extend(shell.env.clone());
    let executor = ShellExecutor::new(ShellSettings {
        bodies_lock: Some(dir.bodies_lock()),
        kill_grace: half_grace.min(Duration::from_secs(1)),
        bodies_max: shell.workers,
        env_allow,
        sandbox: sandbox(config, dir, user.as_deref(), &defaults)?,
        user,
        users: shell.users.clone(),
        programs: shell.programs.clone(),
        cgroup: shell.cgroup,
        ..defaults
    })
    .map_err(|error| {
        Failure::because("programs can't be contained as --shell-cgroup asks", &error)
            .or_else("leave it out to use control groups only where the system allows them")
    })?;
    let containment = executor.containment();
    if matches!(containment, Containment::Cgroup { memory: true, processes: true, .. }) {
        tracing::info!(%containment, "programs of shell jobs run in control groups");
    } else {
        tracing::warn!(
            %containment,
            "without control groups for memory and processes, limits of shell jobs apply to each \
             process separately; the limit `processes` does not apply to root"
        );
    }
    Ok(Some(executor))
}

/// Restricts the shell executor to the configured tenants, and creates tenants that do not exist.
pub async fn for_tenants(
    executor: ShellExecutor,
    config: &ShellConfig,
    store: &dyn Store,
) -> Result<ShellExecutor> {
    let number = async |name: &str| store.tenant(name).await.because("the store failed");
    let mut users = BTreeMap::new();
    for (tenant, user) in &config.tenant_users {
        users.insert(number(tenant).await?, user.clone());
    }
    let mut tenants = std::collections::BTreeSet::new();
    match &config.enabled {
        EnableShell::All => return Ok(executor.for_tenants(None, users)),
        EnableShell::Off => {}
        EnableShell::Tenants(names) => {
            for name in names {
                tenants.insert(number(name).await?);
            }
        }
    }
    Ok(executor.for_tenants(Some(tenants), users))
}

/// Returns the user that runs programs; `None` for the server's user.
fn user(shell: &ShellConfig) -> Result<Option<String>> {
    let named = shell.user.iter().chain(shell.tenant_users.iter().map(|(_, user)| user));
    for user in named {
        if !geteuid().is_root() {
            let what = format!("shell_user is {user:?}, but only root can run programs as others");
            return Err(Failure::usage(what).or_else(
                "leave it out to run programs as the server's own user, or start the server as root",
            ));
        }
        if !is_user(user) {
            let what = format!("shell_user is {user:?}, but there is no such user");
            return Err(Failure::usage(what).or_else("create that user, or name another user"));
        }
    }
    let default = || (geteuid().is_root() && !shell.unconfined).then(nobody);
    Ok(shell.user.clone().or_else(default))
}

/// Returns the confinement. Returns an error if confinement is required and this machine does not
/// support it.
fn sandbox(
    config: &ServeConfig,
    dir: &DataDir,
    user: Option<&str>,
    settings: &ShellSettings,
) -> Result<Option<SandboxSettings>> {
    let shell = &config.shell;
    let as_root = user.map_or_else(|| geteuid().is_root(), is_root);
    if shell.unconfined || as_root {
        let user = user.map_or_else(|| "the server's own user".into(), |user| format!("{user:?}"));
        tracing::warn!(
            "programs of shell jobs run as {user} without confinement: a user who may create shell \
             jobs can become an administrator of every tenant"
        );
    }
    if shell.unconfined || !config.roles.worker {
        return Ok(None);
    }
    let sandbox = SandboxSettings { hidden: hidden(config, dir) };
    let Err(error) = try_sandbox(&settings.supervisor, &sandbox) else { return Ok(Some(sandbox)) };
    // If programs run as another user, they cannot read the server's files, but programs of
    // different tenants can still see each other's processes.
    let is_one_tenants = matches!(&shell.enabled, EnableShell::Tenants(names) if names.len() == 1);
    if geteuid().is_root() && (is_one_tenants || as_root) {
        if !as_root {
            must_be_private(&sandbox.hidden)?;
        }
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "programs of shell jobs can see each other's processes, because this machine allows no namespaces"
        );
        return Ok(None);
    }
    let what = format!(
        "programs can't be isolated from the server's files and processes on this machine: {error}"
    );
    Err(Failure::failed(what).or_else(
        "allow user namespaces on this machine (in a container: CAP_SYS_ADMIN), or run the server \
         as root for one tenant, so that programs run as another user; --shell-unconfined runs them \
         all the same, if all users who may create shell jobs may also administer the server",
    ))
}

/// Returns an error if every user of the machine can read one of these paths. Without namespaces,
/// only file permissions keep shell programs from reading the server's files.
fn must_be_private(paths: &[PathBuf]) -> Result {
    let is_open = |path: &&PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| match found.file_type() {
            kind if kind.is_dir() => found.mode() & 0o005 != 0,
            kind => kind.is_file() && found.mode() & 0o004 != 0,
        })
    };
    let Some(open) = paths.iter().find(is_open) else { return Ok(()) };
    let path = open.display();
    let what = format!(
        "every user can read {path}, and without namespaces programs can't be kept from reading it"
    );
    Err(Failure::failed(what).or_else(format!("chmod o-rx {path}, or allow namespaces")))
}

/// Returns the files and folders of the server to hide from shell programs.
fn hidden(config: &ServeConfig, dir: &DataDir) -> Vec<PathBuf> {
    let mut hidden = vec![dir.path().to_owned()];
    hidden.extend(config.config_file.clone());
    hidden.extend(config.access.tls.as_ref().map(|files| files.key.clone()));
    if let SecretKeys::File(path) = &config.access.secret_keys {
        hidden.push(path.clone());
    }
    hidden.extend(config.executors.identities.iter().map(|files| files.key.clone()));
    hidden.extend(store_files(&config.store));
    if !geteuid().is_root() {
        // Through the sockets in `/run/user/UID`, a program could ask other services of the user to
        // start programs.
        hidden.push(format!("/run/user/{}", geteuid().as_raw()).into());
    }
    hidden.extend(config.shell.hide.clone());
    // Hidden paths must be absolute, because the supervisor starts in another folder. The sandbox
    // ignores hidden paths that do not exist.
    hidden.into_iter().map(|path| std::fs::canonicalize(&path).unwrap_or(path)).collect()
}

/// Returns the database files to hide from shell programs. PostgreSQL's Unix socket is hidden,
/// because PostgreSQL may let a program of the server's user connect without a password.
fn store_files(store: &StoreChoice) -> Vec<PathBuf> {
    match store {
        StoreChoice::Sqlite(file) => {
            ["", "-wal", "-shm", "-journal", ".lock"].map(|end| with_ending(file, end)).into()
        }
        StoreChoice::Postgres(url) => {
            let Ok(config) = url.parse::<tokio_postgres::Config>() else { return Vec::new() };
            let ports = config.get_ports();
            let port = |n: usize| ports.get(n).or(ports.first()).copied().unwrap_or(5432);
            let socket = |(n, host): (usize, &Host)| match host {
                Host::Unix(folder) => Some(folder.join(format!(".s.PGSQL.{}", port(n)))),
                Host::Tcp(_) => None,
            };
            config.get_hosts().iter().enumerate().filter_map(socket).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_outside_the_data_directory_is_hidden() {
        let files = store_files(&StoreChoice::Sqlite("/srv/x.db".into()));
        assert!(files.contains(&"/srv/x.db".into()) && files.contains(&"/srv/x.db-wal".into()));
        let socket = |url: &str| store_files(&url.parse().unwrap());
        assert_eq!(
            socket("postgres://u@%2Frun%2Fpg:5433/db"),
            [PathBuf::from("/run/pg/.s.PGSQL.5433")]
        );
        assert!(socket("postgres://u@db/x").is_empty());
    }
}
