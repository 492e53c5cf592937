//! Connections to the database: the pool, encryption, and notifications between nodes.

#[macro_use]
mod pool;

mod external;
mod listen;
mod rounds;
#[cfg(test)]
mod statements_test;
mod tls;

pub use external::connect_external;
pub(crate) use listen::{Announcer, listen};
pub(crate) use pool::{Connection, Connections, OwnedParams, Params};
pub(crate) use rounds::rounds;
pub(crate) use tls::connector;
