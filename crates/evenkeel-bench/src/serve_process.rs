//! Runs `evenkeel serve` as a process of its own, as users do.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::server::TENANT;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// A running server with a data directory of its own. Dropping it kills the server.
pub(crate) struct ServeProcess {
    pub(crate) pid: u32,
    child: Child,
    folder: TempDir,
    store: String,
}

/// The part of `server.json` that a client needs.
#[derive(Deserialize)]
struct Local {
    url: String,
}

impl ServeProcess {
    /// Starts a server on the store and does not wait until the server is ready.
    pub(crate) fn start(store: &str) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("evenkeel-serve-").tempdir()?;
        let child = this_program()?
            .args(["serve", "--listen", "127.0.0.1:0", "--store", store, "--data-dir"])
            .arg(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .context("starting the server")?;
        let pid = child.id().context("the server has no process id")?;
        Ok(Self { pid, child, folder, store: store.to_owned() })
    }

    /// Fails if the server has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        let ended = self.child.try_wait()?;
        ensure!(ended.is_none(), "the server ended early: {}", ended.unwrap_or_default());
        Ok(())
    }

    /// Waits until the server listens, and returns its URL.
    pub(crate) async fn url(&mut self) -> anyhow::Result<String> {
        let path = self.folder.path().join("server.json");
        let wait = async {
            loop {
                self.check()?;
                // The file does not exist, or is not complete, until the server listens.
                let text = tokio::fs::read_to_string(&path).await.unwrap_or_default();
                if let Ok(local) = serde_json::from_str::<Local>(&text) {
                    return anyhow::Ok(local.url);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(START_TIMEOUT, wait).await.context("the server does not start")?
    }

    /// Returns an admin token of the tenant whose jobs are measured.
    pub(crate) async fn token(&self) -> anyhow::Result<String> {
        let output = this_program()?
            .args(["token", "create", "--role", "admin", "--tenant", TENANT, "--store"])
            .arg(&self.store)
            .arg("--data-dir")
            .arg(self.folder.path())
            .output()
            .await
            .context("creating a token")?;
        ensure!(output.status.success(), "no token was created: {}", output.status);
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        kill_process(pid.context("the server has no valid process id")?, Signal::TERM)?;
        let ended = tokio::time::timeout(STOP_TIMEOUT, self.child.wait()).await;
        let ended = ended.context("the server has not stopped after 60 s")??;
        ensure!(ended.success(), "the server failed: {ended}");
        Ok(())
    }
}

fn this_program() -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("finding this program")?);
    command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    Ok(command)
}
