//! Tests what programs in a sandbox cannot see and cannot reach.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use evenkeel_core::attempt::Outcome;
use evenkeel_executors::{CgroupUse, Executor, ShellSettings, SupervisorCommand, try_sandbox};
use serde_json::json;
use tempfile::TempDir;

use crate::shell::{executor_with, in_a_sandbox, supervisor};
use crate::support::invocation;

/// Returns a directory with a secret that every user may read, so that only the sandbox protects
/// it.
fn secret() -> TempDir {
    let folder = TempDir::new().unwrap();
    let open = |mode| fs::Permissions::from_mode(mode);
    fs::set_permissions(folder.path(), open(0o777)).unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    for file in ["data/token", "config.toml", "other"] {
        fs::write(folder.path().join(file), format!("secret of {file}")).unwrap();
        fs::set_permissions(folder.path().join(file), open(0o666)).unwrap();
    }
    fs::set_permissions(folder.path().join("data"), open(0o777)).unwrap();
    folder
}

/// Returns settings that hide data and configuration. If this machine supports no sandbox, prints a
/// note and returns `None`.
fn sandboxed(folder: &TempDir) -> Option<ShellSettings> {
    let settings = ShellSettings {
        cgroup: CgroupUse::Off,
        bodies_lock: Some(folder.path().join("data/bodies.lock")),
        ..ShellSettings::new(supervisor())
    };
    let mut settings = in_a_sandbox(settings, &folder.path().join("data"));
    let sandbox = settings.sandbox.as_mut().unwrap();
    sandbox.hidden.push(folder.path().join("config.toml"));
    sandbox.hidden.push(folder.path().join("missing"));
    match try_sandbox(&settings.supervisor, settings.sandbox.as_ref().unwrap()) {
        Ok(()) => Some(settings),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

async fn output(settings: ShellSettings, folder: &TempDir, script: &str) -> String {
    let config = json!({"argv": ["sh", "-c", script], "cwd": folder.path()});
    let report = executor_with(settings).run(invocation("shell", config)).await;
    assert_eq!(report.outcome, Outcome::Completed, "{report:?}");
    report.output.unwrap_or_default()
}

#[tokio::test]
async fn hidden_paths_are_empty_and_others_are_visible() {
    let folder = secret();
    let Some(settings) = sandboxed(&folder) else { return };
    let script = "cat other; echo; ls data | grep -v hidden; cat data/token config.toml; \
                  touch data/x config.toml; echo new >made; true";
    assert_eq!(output(settings, &folder, script).await, "secret of other\n");
    let read = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap();
    assert_eq!(
        (read("data/token").as_str(), read("made").as_str()),
        ("secret of data/token", "new\n")
    );
    assert!(!folder.path().join("data/x").exists());
}

/// A program has capabilities in a namespace that it creates, but not over the mounts of the parent
/// namespace.
#[tokio::test]
async fn program_cannot_remove_the_covers() {
    let folder = secret();
    let Some(settings) = sandboxed(&folder) else { return };
    let script = "umount data; umount -l data; umount /proc; umount config.toml; mkdir -m 777 copy
        unshare -Urm sh -c 'umount data; umount -l data; umount config.toml; umount /proc
            mount --bind . copy; mount --rbind . copy; cat copy/data/token copy/config.toml'
        cat data/token config.toml; nsenter -t 1 -m cat data/token
        grep -i '^capeff' /proc/self/status | tr -d '[:space:]'";
    assert_eq!(output(settings, &folder, script).await, "CapEff:0000000000000000");
}

#[tokio::test]
async fn program_sees_only_its_own_processes() {
    let folder = secret();
    let Some(settings) = sandboxed(&folder) else { return };
    let own = std::process::id();
    let script = format!(
        "ls -d /proc/[0-9]* | wc -l; kill -0 {own} 2>&1 | tr -d '\\n' | tail -c 16
         test -e /proc/{own} || echo; kill -9 1; cat /proc/1/environ; ls /proc/1/fd"
    );
    let seen = output(settings, &folder, &format!("({script}); true")).await;
    let processes: u32 = seen.lines().next().unwrap().parse().unwrap();
    // The sandbox contains the supervisor, one or two shells, and the commands `ls` and `wc`.
    assert!(processes <= 6, "{seen}");
    assert!(seen.lines().nth(1).unwrap().ends_with("No such process"), "{seen}");
    assert_eq!(seen.lines().count(), 2, "{seen}");
}

/// Besides the three standard streams, a program may inherit only a descriptor of the lock file.
#[tokio::test]
async fn program_inherits_no_open_files() {
    let folder = secret();
    let Some(settings) = sandboxed(&folder) else { return };
    let script = "for fd in /proc/self/fd/*; do readlink $fd; done; true";
    let seen = output(settings, &folder, script).await;
    let is_expected = |line: &&str| {
        line.starts_with("pipe:") || *line == "/dev/null" || line.ends_with("bodies.lock")
    };
    let others: Vec<&str> = seen.lines().filter(|line| !is_expected(line)).collect();
    assert!(others.is_empty(), "{seen}");
    assert!(seen.lines().filter(|line| line.ends_with("bodies.lock")).count() <= 1, "{seen}");
}

#[test]
fn missing_namespaces_are_reported_with_the_reason() {
    let folder = secret();
    let program = "/no/such/supervisor".into();
    let missing = SupervisorCommand { program, args: Vec::new() };
    let settings = in_a_sandbox(ShellSettings::new(missing), folder.path());
    let error = try_sandbox(&settings.supervisor, settings.sandbox.as_ref().unwrap()).unwrap_err();
    assert!(error.to_string().contains("the supervisor can't be started"), "{error}");
    // The path that the sandbox should hide does not exist.
    let nowhere = in_a_sandbox(ShellSettings::new(supervisor()), &folder.path().join("none"));
    let error = try_sandbox(&nowhere.supervisor, nowhere.sandbox.as_ref().unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("the sandbox can't be set up: "), "{error}");
}
