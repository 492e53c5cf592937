//! The second node of `max --split`: a separate process that only runs attempts.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use evenkeel_store::Roles;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use crate::ledger::LedgerExecutor;
use crate::machine;
use crate::node::Sources;
use crate::target::Target;

/// The parent's handle of the child process.
pub struct SecondNode {
    child: Child,
    ledger: PathBuf,
}

impl SecondNode {
    pub fn start(store: &str, folder: &Path, workers: usize) -> anyhow::Result<Self> {
        let ledger = folder.join("ledger-of-second-node");
        let child = Command::new(std::env::current_exe().context("finding this program")?)
            .args(["bench", "worker", "--store", store, "--workers", &workers.to_string()])
            .arg("--ledger")
            .arg(&ledger)
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("starting the second node")?;
        Ok(Self { child, ledger })
    }

    /// Stops the child process and waits for its exit. Returns the file in which the child process
    /// recorded its executions, and the CPU seconds of the child process.
    pub async fn finish(mut self) -> anyhow::Result<(PathBuf, f64)> {
        drop(self.child.stdin.take());
        let ended = tokio::time::timeout(Duration::from_secs(60), self.child.wait())
            .await
            .context("the second node has not ended after 60 s")??;
        ensure!(ended.success(), "the second node failed: {ended}");
        let cpu = std::fs::read_to_string(cpu_file(&self.ledger))
            .context("reading the CPU time of the second node")?;
        Ok((self.ledger, cpu.trim().parse()?))
    }
}

/// The main function of the child process. Runs attempts until standard input is closed.
pub async fn work(store: &str, workers: usize, ledger: &Path) -> anyhow::Result<()> {
    let target = Target::open(store).await?;
    let sources = Sources::default();
    let executor = LedgerExecutor::create(ledger, Arc::clone(&sources.clock), None)?;
    let roles = Roles { api: false, scheduler: false, worker: true };
    let engine = sources.start(&target.store, &executor, roles, workers).await?;
    let mut rest = Vec::new();
    tokio::io::stdin().read_to_end(&mut rest).await?;
    engine.drain(Duration::from_secs(30)).await;
    executor.flush()?;
    std::fs::write(cpu_file(ledger), machine::cpu_seconds().to_string())
        .context("writing the CPU time")
}

/// The file in which the child process reports its CPU seconds.
fn cpu_file(ledger: &Path) -> PathBuf {
    ledger.with_extension("cpu")
}
