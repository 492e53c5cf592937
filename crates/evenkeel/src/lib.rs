//! The `evenkeel` program.
//!
//! - `cli/`: the commands
//! - `client/`: the HTTP client that commands use
//! - `config/`: flags, environment variables and the config file
//! - `output/`: tables and JSON
//! - `serve/`: the server

pub mod cli;
pub mod client;
pub mod config;
pub mod failure;
pub mod output;
pub mod serve;

use std::process::ExitCode;

use clap::Parser as _;

pub use failure::{Exit, Failure};

pub type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// The hidden command that runs this process as the supervisor of a shell program.
pub const SUPERVISE: &str = "__supervise";

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
