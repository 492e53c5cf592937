//! State that every command uses: global options, config file and output.

use std::path::PathBuf;

use evenkeel_core::Timestamp;
use evenkeel_engine::{Clock as _, SystemClock};
use tokio::runtime::{Builder, Runtime};

use crate::Result;
use crate::client::{self, Answer, Client};
use crate::config::raw::{RawClient, RawGlobal};
use crate::config::{self, ConfigFile};
use crate::failure::Because as _;
use crate::output::{Output, Table};

pub struct Context {
    /// The global options, merged with the config file.
    pub global: RawGlobal,
    pub file: ConfigFile,
    pub output: Output,
}

impl Context {
    /// Reads the config file, if the options name one.
    pub fn new(global: RawGlobal) -> Result<Self> {
        let file = config::read_file(global.config.as_deref())?;
        let global = global.or(&file.global);
        let output = Output::new(global.json == Some(true));
        Ok(Self { global, file, output })
    }

    pub fn data_dir(&self) -> PathBuf {
        config::data_dir(&self.global)
    }

    /// Returns a client of the server that the options name, or else of the server that uses the
    /// data directory.
    pub fn session(&self, client: RawClient) -> Result<Session> {
        let endpoint = client::find(&client.or(&self.file.client), &self.data_dir())?;
        Ok(Session { client: Client::new(endpoint)?, output: self.output })
    }

    /// Runs a command that sends requests to a server.
    pub fn run<A>(
        &self,
        client: RawClient,
        args: A,
        command: impl AsyncFnOnce(&Session, A) -> Result,
    ) -> Result {
        let session = self.session(client)?;
        self.runtime()?.block_on(command(&session, args))
    }

    /// Returns this machine's time, from which the output computes durations such as `3m ago`.
    pub fn now(&self) -> Timestamp {
        SystemClock::default().wall()
    }

    /// Returns a single-threaded runtime.
    pub fn runtime(&self) -> Result<Runtime> {
        built(Builder::new_current_thread())
    }

    pub fn multi_threaded_runtime(&self) -> Result<Runtime> {
        built(Builder::new_multi_thread())
    }
}

fn built(mut builder: Builder) -> Result<Runtime> {
    builder.enable_all().build().because("the runtime can't be started")
}

/// The client and the output of a command that sends requests to a server.
pub struct Session {
    pub client: Client,
    pub output: Output,
}

impl Session {
    /// Returns this machine's time, from which the output computes durations such as `3m ago`.
    pub fn now(&self) -> Timestamp {
        SystemClock::default().wall()
    }

    /// Prints the response of the server with `--json`, and `text` without it.
    pub fn answer(&self, answer: &Answer, text: &str) -> Result {
        self.output.line(if self.output.is_json() { &answer.text } else { text })
    }

    /// Prints one page of a list: the response of the server with `--json`, else the table and the
    /// flag or command that shows the next page. If the list is empty, prints `nothing`.
    pub fn page(&self, answer: &Answer, table: Table, next: &str, nothing: &str) -> Result {
        let is_empty = table.is_empty() && next.is_empty();
        self.answer(answer, &if is_empty { nothing.into() } else { table.render() + next })
    }
}
