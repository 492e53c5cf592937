//! Connections to the database file: one writer that commits requests in groups, several readers,
//! and the thread that copies the write-ahead log.

pub(crate) mod clock;
mod log;
mod open;
pub(crate) mod readers;
pub(crate) mod session;
pub(crate) mod urgency;
pub(crate) mod writer;
