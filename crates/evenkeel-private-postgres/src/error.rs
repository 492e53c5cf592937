use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a private server could not be had, or did not obey.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No PostgreSQL server is installed here.
    #[error(
        "no PostgreSQL server binaries found in /usr/lib/postgresql/*/bin or on the PATH; \
         `cargo xtask test` installs them"
    )]
    NoBinaries,
    /// We are root, and there is nobody to hand the server to.
    #[error("PostgreSQL refuses to run as root, and neither `postgres` nor `nobody` exists here")]
    NoAccount,
    /// Every port that was tried is taken.
    #[error("no free TCP port found on 127.0.0.1")]
    NoPort,
    /// The server was stopped and not started again.
    #[error("the private server is stopped")]
    Stopped,
    /// A file or folder of the server could not be read, written or handed over.
    #[error("cannot use {path}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A program could not be started, watched or signalled.
    #[error("cannot run {program}")]
    Run {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// A helper program ended badly.
    #[error("{program} failed ({status}): {output}")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it printed.
        output: String,
    },
    /// A helper program, or the server's start, took longer than it may.
    #[error("{program} was not done within {limit:?}: {output}")]
    TooSlow {
        /// The program.
        program: String,
        /// How long it had.
        limit: Duration,
        /// The end of what it printed.
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

    /// Whether the server failed to start because another process took its port first.
    pub(crate) fn is_port_taken(&self) -> bool {
        matches!(self, Self::Failed { output, .. } if output.contains("Address already in use"))
    }
}
