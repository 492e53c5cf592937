//! Connections to the database file: one writer that commits requests in groups, several readers,
//! and the thread that copies the write-ahead log.

mod clock;
mod log;
mod open;
mod params;
mod readers;
mod session;
mod statements;
mod urgency;
mod writer;

pub(crate) use clock::{resolve, system_time};
pub(crate) use params::Params;
pub(crate) use readers::Readers;
pub(crate) use session::Session;
pub(crate) use statements::{RunPrepared, RunSql};
pub(crate) use urgency::{Urgency, weight};
pub(crate) use writer::Writer;
