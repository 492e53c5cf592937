//! What the commands share.

use std::path::PathBuf;

use evenkeel_core::Timestamp;
use evenkeel_engine::{Clock as _, SystemClock};
use tokio::runtime::{Builder, Runtime};

use crate::Failure;
use crate::client::{self, Client};
use crate::config::raw::{RawClient, RawGlobal};
use crate::config::{self, ConfigFile};
use crate::output::Output;

/// What the commands share.
pub struct Context {
    /// What every command has, with the file's word in it.
    pub global: RawGlobal,
    /// The config file.
    pub file: ConfigFile,
    /// Where answers go.
    pub output: Output,
}

impl Context {
    /// Reads the config file, if there is one.
    pub fn new(global: RawGlobal) -> Result<Self, Failure> {
        let file = config::read_file(global.config.as_deref())?;
        let global = global.or(&file.global);
        let output = Output::new(global.json == Some(true));
        Ok(Self { global, file, output })
    }

    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        config::data_dir(&self.global)
    }

    /// A client of the server that is meant.
    pub fn client(&self, raw: RawClient) -> Result<Client, Failure> {
        Client::new(client::find(&raw.or(&self.file.client), &self.data_dir())?)
    }

    /// What the machine's clock says, to tell people how long ago something was.
    pub fn now(&self) -> Timestamp {
        SystemClock::default().wall()
    }

    /// A runtime for one task.
    pub fn runtime(&self) -> Result<Runtime, Failure> {
        built(Builder::new_current_thread())
    }

    /// A runtime for many tasks.
    pub fn runtime_of_many(&self) -> Result<Runtime, Failure> {
        built(Builder::new_multi_thread())
    }
}

fn built(mut builder: Builder) -> Result<Runtime, Failure> {
    builder
        .enable_all()
        .build()
        .map_err(|error| Failure::because("the runtime can't be started", &error))
}
