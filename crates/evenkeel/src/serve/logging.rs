//! The log, written to standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::Result;
use crate::config::LogConfig;
use crate::failure::Because as _;

pub fn start(config: &LogConfig) -> Result {
    let filter = EnvFilter::try_new(&config.filter).because("the log filter can't be used")?;
    let log = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = if config.json {
        log.json().flatten_event(true).finish().try_init()
    } else {
        let colours = std::io::stderr().is_terminal();
        log.compact().with_target(false).with_ansi(colours).finish().try_init()
    };
    started.because("the log can't be started")
}
