//! Connections to the database: the pool, encryption, calls that share a transaction, and
//! notifications between nodes.

#[macro_use]
mod pool;

mod external;
mod groups;
mod listen;
mod rounds;
#[cfg(test)]
mod statements_test;
mod tls;

pub use external::connect_external;
pub(crate) use groups::Groups;
pub(crate) use listen::{Announcer, listen};
pub(crate) use pool::{Connection, Connections, OwnedParams, Params};
pub(crate) use rounds::rounds;
pub(crate) use tls::connector;
