//! One server process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::api::Api;
use crate::clock::wait_for;

/// Maximum time that a server may take to start on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Maximum time that a server may take to drain. The server itself limits a drain to 25 s.
const STOP_LIMIT: Duration = Duration::from_secs(40);

/// A server process with its data directory. Dropping a `Node` kills the server process.
#[derive(Debug)]
pub struct Node {
    pub name: String,
    program: PathBuf,
    arguments: Vec<String>,
    data_dir: PathBuf,
    log: PathBuf,
    child: Option<Child>,
}

impl Node {
    pub fn new(name: &str, program: &Path, folder: &Path, store: &str, roles: &[&str]) -> Self {
        let data_dir = folder.join(name);
        let mut arguments: Vec<String> = ["serve", "--listen", "127.0.0.1:0", "--enable-shell"]
            .into_iter()
            // `--shell-unconfined` lets the programs of shell jobs write into the folder of the
            // test.
            .chain(["--shell-unconfined"])
            // The high retention keeps the server from pruning runs, because the checks need all
            // runs.
            .chain(["--allow-network", "127.0.0.0/8", "--retention-per-job", "1000000"])
            .chain(["--node-name", name, "--store", store, "--data-dir"])
            .map(str::to_owned)
            .collect();
        arguments.push(data_dir.display().to_string());
        arguments.extend(roles.iter().map(|word| (*word).to_owned()));
        Self {
            name: name.to_owned(),
            program: program.to_owned(),
            arguments,
            data_dir,
            log: folder.join(format!("{name}.log")),
            child: None,
        }
    }

    /// Starts the server and waits until it has written `server.json`.
    pub fn start(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().stdin(Stdio::null()).stdout(Stdio::null());
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        let child = command.stderr(log).spawn().context("the server cannot be started")?;
        let pid = child.id();
        self.child = Some(child);
        let up = wait_for(START_LIMIT, || match self.ended() {
            Some(status) => Some(Err(status)),
            None => self.server_json().filter(|json| json["pid"] == pid).map(|_| Ok(())),
        });
        match up {
            Some(Ok(())) => Ok(()),
            Some(Err(status)) => bail!("server {} did not start: {status}", self.name),
            None => bail!("server {} was not up within {START_LIMIT:?}", self.name),
        }
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Returns the exit status of the server if its process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.as_mut().and_then(|child| child.try_wait().ok().flatten())
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        let child = self.child.as_ref().context("the server does not run")?;
        kill_process(Pid::from_child(child), signal)?;
        Ok(())
    }

    pub fn wait(&mut self) -> Result<ExitStatus> {
        let Some(status) = wait_for(STOP_LIMIT, || self.ended()) else {
            bail!("server {} still ran {STOP_LIMIT:?} after SIGTERM", self.name)
        };
        self.child = None;
        Ok(status)
    }

    pub fn api(&self) -> Result<Api> {
        let json = self.server_json().context("the server has no server.json")?;
        let url = json["url"].as_str().context("server.json has no url")?;
        let address = url.strip_prefix("http://").context("the url is not http")?.to_owned();
        let token = std::fs::read_to_string(self.data_dir.join("token"))?.trim().to_owned();
        Ok(Api { address, token })
    }

    fn server_json(&self) -> Option<Value> {
        let text = std::fs::read_to_string(self.data_dir.join("server.json")).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Returns the lines about panics in the log of the server, with the name of the server.
    pub fn panics(&self) -> Vec<String> {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().filter(|line| line.contains("panicked"));
        lines.map(|line| format!("{} panicked: {line}", self.name)).collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("server {} could not be killed: {error:#}", self.name);
        }
    }
}
