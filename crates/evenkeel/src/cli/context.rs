//! State that every command uses: global options, config file and output.

use std::path::PathBuf;

use evenkeel_core::Timestamp;
use evenkeel_engine::{Clock as _, SystemClock};
use tokio::runtime::{Builder, Runtime};

use crate::Failure;
use crate::client::{self, Client};
use crate::config::raw::{RawClient, RawGlobal};
use crate::config::{self, ConfigFile};
use crate::output::Output;

pub struct Context {
    /// The global options, merged with the config file.
    pub global: RawGlobal,
    pub file: ConfigFile,
    pub output: Output,
}

impl Context {
    /// Reads the config file, if it exists.
    pub fn new(global: RawGlobal) -> Result<Self, Failure> {
        let file = config::read_file(global.config.as_deref())?;
        let global = global.or(&file.global);
        let output = Output::new(global.json == Some(true));
        Ok(Self { global, file, output })
    }

    pub fn data_dir(&self) -> PathBuf {
        config::data_dir(&self.global)
    }

    /// Returns an HTTP client for the selected server.
    pub fn client(&self, raw: RawClient) -> Result<Client, Failure> {
        Client::new(client::find(&raw.or(&self.file.client), &self.data_dir())?)
    }

    /// Returns this machine's time, from which the output computes durations such as `3m ago`.
    pub fn now(&self) -> Timestamp {
        SystemClock::default().wall()
    }

    /// Returns a single-threaded runtime.
    pub fn runtime(&self) -> Result<Runtime, Failure> {
        built(Builder::new_current_thread())
    }

    /// Returns a multi-threaded runtime.
    pub fn multi_threaded_runtime(&self) -> Result<Runtime, Failure> {
        built(Builder::new_multi_thread())
    }
}

fn built(mut builder: Builder) -> Result<Runtime, Failure> {
    builder
        .enable_all()
        .build()
        .map_err(|error| Failure::because("the runtime can't be started", &error))
}
