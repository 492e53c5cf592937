//! Runs the supervisor as a program, for this crate's tests.
//!
//! With the arguments `node <executor_config> <bodies_lock> <auto|off|sandbox>` this program acts
//! as a node that runs a single program and that tests can kill. With `sandbox` the test node makes
//! no control groups and hides the directory `hidden` next to the lock file. A test node that runs
//! as root runs the program as the user nobody.

use std::path::Path;
use std::process::ExitCode;

use evenkeel_core::schedule::Once;
use evenkeel_core::{Definition, Schedule};
use evenkeel_executors::{
    CgroupUse, Executor, Invocation, SandboxSettings, ShellExecutor, ShellSettings,
    SupervisorCommand, supervisor,
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [word, config, lock, cgroup] if word == "node" => match node(config, lock, cgroup) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        _ => supervisor::main(),
    }
}

fn node(config: &str, lock: &str, cgroup: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut definition = Definition::noop(Schedule::Once(Once::NOW));
    definition.executor.kind = "shell".into();
    definition.executor.config = serde_json::from_str(config)?;
    let program = std::env::current_exe()?;
    let is_sandboxed = cgroup == "sandbox";
    let hidden = || vec![Path::new(lock).with_file_name("hidden")];
    let executor = ShellExecutor::new(ShellSettings {
        bodies_lock: Some(lock.into()),
        cgroup: if cgroup == "auto" { CgroupUse::Auto } else { CgroupUse::Off },
        sandbox: is_sandboxed.then(|| SandboxSettings { hidden: hidden() }),
        user: (is_sandboxed && rustix::process::geteuid().is_root()).then(|| "nobody".into()),
        ..ShellSettings::new(SupervisorCommand { program, args: Vec::new() })
    })?;
    let invocation = Invocation::example(definition);
    tokio::runtime::Runtime::new()?.block_on(executor.run(invocation));
    Ok(())
}
