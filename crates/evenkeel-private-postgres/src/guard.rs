//! Stops the PostgreSQL server and removes its folder if the process that owns it is killed.

use crate::{Error, bounded};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A shell script that reads from a pipe whose other end this process holds open. When this process
/// ends for any reason, the operating system closes the pipe. Then the shell script stops the
/// PostgreSQL server and removes its folder.
///
/// The shell script identifies the PostgreSQL server by its working directory, because the process
/// id in an outdated `postmaster.pid` may belong to another process. A zombie process is not
/// mistaken for the PostgreSQL server, because a zombie process has no working directory.
const SCRIPT: &str = r#"
read -r _
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
is_ours() { [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd")" = "$1/data" ]; }
if is_ours "$1"; then
    kill -QUIT "$pid"
    tries=0
    while is_ours "$1" && [ "$tries" -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
fi
rm -rf -- "$1"
"#;

/// Time limit for the clean-up script, longer than the script can take.
const LIMIT: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub struct Guard(Child);

impl Guard {
    /// Guards the PostgreSQL server in `folder`, which must be a path without symbolic links.
    pub fn watch(folder: &Path) -> Result<Self, Error> {
        Command::new("sh")
            .args(["-c", SCRIPT, "evenkeel-private-postgres-guard"])
            .arg(folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // The guard process has its own process group, so that Ctrl-C in the terminal does not
            // end it.
            .process_group(0)
            .spawn()
            .map(Self)
            .map_err(Error::run("sh"))
    }

    /// Ends the guard process without stopping the PostgreSQL server.
    pub fn stand_down(&mut self) -> Result<(), Error> {
        self.0.kill().and_then(|()| self.0.wait()).map(drop).map_err(Error::run("sh"))
    }

    fn dismiss(&mut self) -> io::Result<()> {
        drop(self.0.stdin.take());
        if bounded::wait(&mut self.0, LIMIT)?.is_none() {
            self.0.kill()?;
            self.0.wait()?;
        }
        Ok(())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Err(error) = self.dismiss() {
            eprintln!("the guard of a private PostgreSQL server did not end: {error}");
        }
    }
}
