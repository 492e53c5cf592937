//! The folder of a PostgreSQL server, and commands that run PostgreSQL's programs in this folder.

use crate::account::{Account, temporary_root};
use crate::{Error, bounded};
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The folder of a PostgreSQL server. Dropping the `Home` removes the folder.
#[derive(Debug)]
pub struct Home {
    binaries: PathBuf,
    account: Option<Account>,
    folder: TempDir,
    pub data: PathBuf,
}

impl Home {
    pub fn create(binaries: PathBuf) -> Result<Self, Error> {
        let account = Account::for_server()?;
        let root = temporary_root(account);
        let folder = tempfile::Builder::new()
            .prefix("evenkeel-pg-")
            .tempdir_in(&root)
            .map_err(Error::file(root))?;
        if let Some(account) = account {
            account.give(folder.path())?;
        }
        let data = folder.path().join("data");
        Ok(Self { binaries, account, folder, data })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a command that runs one of PostgreSQL's programs as the server's user, without the
    /// environment variables of this process.
    pub fn command(&self, program: &str) -> Result<Command, Error> {
        let path = self.output_of(program);
        let output =
            OpenOptions::new().create(true).append(true).open(&path).map_err(Error::file(&path))?;
        let again = output.try_clone().map_err(Error::file(&path))?;
        let mut command = Command::new(self.binaries.join(program));
        command
            .env_clear()
            .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C"), ("TZ", "UTC")])
            .current_dir(self.folder())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(again);
        if let Some(account) = self.account {
            account.run(&mut command);
        }
        Ok(command)
    }

    pub fn run<A: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = A>,
        limit: Duration,
    ) -> Result<(), Error> {
        let mut child =
            self.command(program)?.args(arguments).spawn().map_err(Error::run(program))?;
        match bounded::wait(&mut child, limit).map_err(Error::run(program))? {
            Some(status) if status.success() => Ok(()),
            Some(status) => {
                let output = self.last_output(program);
                Err(Error::Failed { program: program.to_owned(), status, output })
            }
            None => {
                child.kill().and_then(|()| child.wait()).map_err(Error::run(program))?;
                let output = self.last_output(program);
                Err(Error::TooSlow { program: program.to_owned(), limit, output })
            }
        }
    }

    /// Returns the last 20 lines that a program printed.
    pub fn last_output(&self, program: &str) -> String {
        let text = fs::read(self.output_of(program)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    fn output_of(&self, program: &str) -> PathBuf {
        self.folder().join(format!("{program}.log"))
    }
}
