//! The `evenkeel` program: its command line, its configuration, the server and the client.

pub mod cli;
pub mod client;
pub mod config;
pub mod failure;
pub mod output;
pub mod serve;

use std::process::ExitCode;

use clap::Parser as _;

pub use failure::{Exit, Failure};

/// The hidden command that makes a process the supervisor of a shell body.
pub const SUPERVISE: &str = "__supervise";

/// Reads the command line and does what it says.
pub fn main() -> ExitCode {
    let args = cli::Args::parse();
    let as_json = args.global.json == Some(true);
    match cli::run(args) {
        Ok(()) => Exit::Done.into(),
        Err(failure) => {
            failure.report(as_json);
            failure.exit.into()
        }
    }
}
