use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no PostgreSQL server binaries found in /usr/lib/postgresql/*/bin or on the PATH; \
         `cargo xtask test` installs them"
    )]
    NoBinaries,
    /// This process is root, and no other user exists that can run PostgreSQL.
    #[error("PostgreSQL refuses to run as root, and neither `postgres` nor `nobody` exists here")]
    NoAccount,
    #[error("no free TCP port found on 127.0.0.1")]
    NoPort,
    /// The PostgreSQL server was stopped and not restarted.
    #[error("the private server is stopped")]
    Stopped,
    /// A file or folder of PostgreSQL could not be read, written or given to another user.
    #[error("cannot use {path}")]
    File { path: PathBuf, source: io::Error },
    /// A program could not be started, waited for or signalled.
    #[error("cannot run {program}")]
    Run { program: String, source: io::Error },
    /// A program ended with a failure status.
    #[error("{program} failed ({status}): {output}")]
    Failed {
        program: String,
        status: ExitStatus,
        /// The last lines that the program printed.
        output: String,
    },
    /// A program, or the start of the PostgreSQL server, exceeded its time limit.
    #[error("{program} did not finish within {limit:?}: {output}")]
    TooSlow {
        program: String,
        limit: Duration,
        /// The last lines that the program printed.
        output: String,
    },
}

impl Error {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    pub(crate) fn run(program: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Run { program: program.to_owned(), source }
    }

    /// True if PostgreSQL failed to start because another process already uses the port.
    pub(crate) fn is_port_taken(&self) -> bool {
        matches!(self, Self::Failed { output, .. } if output.contains("Address already in use"))
    }
}
