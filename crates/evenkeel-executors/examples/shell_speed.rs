//! How many programs a second this machine runs through the shell executor, and whether memory
//! stays flat.
//!
//! `cargo run --release -p evenkeel-executors --example shell_speed -- [runs] [at_once] [auto|off]
//! [supervisor…]`. Without a supervisor it takes the tests' small one, which has to be built; the
//! real one is `target/release/evenkeel __supervise`.

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel_core::lease::Fence;
use evenkeel_core::run::Outcome;
use evenkeel_core::schedule::Once;
use evenkeel_core::{Definition, JobNo, RunKey, Schedule, TenantNo, Timestamp};
use evenkeel_executors::{
    Cancel, CgroupUse, Executor, Invocation, Lease, ShellExecutor, ShellSettings,
    SupervisorCommand, Wire,
};
use serde_json::json;
use tokio::time::Instant;

fn invocation() -> Invocation {
    let mut definition = Definition::noop(Schedule::Once(Once { at: None }));
    definition.executor.kind = "shell".into();
    definition.executor.config = json!({"argv": ["/bin/true"]});
    Invocation {
        key: RunKey::regular(JobNo(7), Timestamp::MIN),
        fence: Fence(1),
        tenant: TenantNo(1),
        started_at: Timestamp::MIN,
        definition: Arc::new(definition),
        checkpoint: None,
        cancel: Cancel::none(),
        lease: Lease::endless(),
        wire: Wire::default(),
    }
}

fn resident_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let runs: usize = args.next().map_or(Ok(2_000), |arg| arg.parse())?;
    let at_once: usize = args.next().map_or(Ok(8), |arg| arg.parse())?;
    let cgroup =
        if args.next().as_deref() == Some("off") { CgroupUse::Off } else { CgroupUse::Auto };
    let program = match args.next() {
        Some(program) => program.into(),
        None => {
            let own = std::env::current_exe()?;
            let folder = own.parent().and_then(std::path::Path::parent).ok_or("no folder")?;
            folder.join("evenkeel-supervisor-test")
        }
    };
    let supervisor = SupervisorCommand { program, args: args.collect() };
    let settings = ShellSettings { cgroup, ..ShellSettings::new(supervisor) };
    let executor = Arc::new(ShellExecutor::new(settings)?);
    let mut out = std::io::stdout();
    writeln!(out, "{}", executor.containment())?;
    let left = Arc::new(AtomicUsize::new(runs));
    let start = now();
    let workers: Vec<_> = (0..at_once)
        .map(|_| {
            let (executor, left) = (Arc::clone(&executor), Arc::clone(&left));
            tokio::spawn(async move {
                let take = |n: usize| n.checked_sub(1);
                while let Ok(n) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
                    let report = executor.run(invocation()).await;
                    if report.outcome != Outcome::Completed {
                        return Err(format!("{report:?}"));
                    }
                    if n % (runs / 5).max(1) == 0 {
                        let rss = resident_kb().unwrap_or(0);
                        let _ = writeln!(std::io::stdout(), "{n} to go, {rss} kB resident");
                    }
                }
                Ok(())
            })
        })
        .collect();
    for worker in workers {
        worker.await??;
    }
    let seconds = start.elapsed().as_secs_f64();
    writeln!(out, "{runs} runs in {seconds:.2} s: {:.0} runs/s", runs as f64 / seconds)?;
    Ok(())
}
