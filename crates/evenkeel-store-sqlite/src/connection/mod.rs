//! The connections to the file: one writer, several readers, and the copying of the log.

pub(crate) mod clock;
mod log;
mod open;
pub(crate) mod readers;
pub(crate) mod session;
pub(crate) mod urgency;
pub(crate) mod writer;
