//! The servers and their database.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use evenkeel_private_postgres::{Options, PrivatePostgres};
use rustix::process::Signal;

use crate::node::Node;
use crate::plan::Fault;

/// Where the servers keep their jobs.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub enum StoreKind {
    /// A PostgreSQL server that all share.
    Postgres,
    /// A file of the only server.
    Sqlite,
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres => "PostgreSQL",
            Self::Sqlite => "SQLite",
        })
    }
}

/// Everything that can be killed.
pub struct Cluster {
    pub nodes: Vec<Node>,
    /// After the servers, so that they go first.
    postgres: Option<PrivatePostgres>,
    folder: PathBuf,
    program: PathBuf,
    store: String,
}

impl Cluster {
    /// Starts the database and the servers, whose files are all in `folder`.
    pub fn start(kind: StoreKind, count: usize, program: &Path, folder: &Path) -> Result<Self> {
        Self::start_with(kind, count, program, folder, &[])
    }

    /// The same, with these flags for each server.
    pub fn start_with(
        kind: StoreKind,
        count: usize,
        program: &Path,
        folder: &Path,
        flags: &[&str],
    ) -> Result<Self> {
        let postgres = match kind {
            StoreKind::Sqlite => None,
            StoreKind::Postgres => Some(start_postgres()?),
        };
        let store = match &postgres {
            Some(server) => server.url().to_owned(),
            None => format!("sqlite:{}", folder.join("evenkeel.db").display()),
        };
        let mut nodes: Vec<Node> = ('a'..='z')
            .take(count)
            .map(|name| Node::new(&format!("node-{name}"), program, folder, &store, flags))
            .collect();
        for node in &mut nodes {
            node.start()?;
        }
        Ok(Self { nodes, postgres, folder: folder.to_owned(), program: program.to_owned(), store })
    }

    /// Makes something go wrong.
    pub fn begin(&mut self, fault: Fault, number: usize) -> Result<()> {
        match fault {
            Fault::Kill => self.node(number)?.kill(),
            Fault::Freeze => self.node(number)?.signal(Signal::STOP),
            Fault::Database => Ok(self.postgres()?.stop_immediately()?),
        }
    }

    /// Makes it well again.
    pub fn end(&mut self, fault: Fault, number: usize) -> Result<()> {
        match fault {
            Fault::Kill => self.node(number)?.start(),
            Fault::Freeze => self.node(number)?.signal(Signal::CONT),
            Fault::Database => Ok(self.postgres()?.restart()?),
        }
    }

    /// A server that answers questions and runs nothing, for when the others have ended. On
    /// SQLite there is no such role: that one may fire, but works for a pool that has no jobs.
    pub fn start_reader(&self) -> Result<Node> {
        let roles: &[&str] = match self.postgres {
            Some(_) => &["--roles", "api"],
            None => &["--pools", "nobody"],
        };
        let mut node = Node::new("reader", &self.program, &self.folder, &self.store, roles);
        node.start()?;
        Ok(node)
    }

    fn node(&mut self, number: usize) -> Result<&mut Node> {
        self.nodes.get_mut(number).context("there is no such server")
    }

    fn postgres(&mut self) -> Result<&mut PrivatePostgres> {
        self.postgres.as_mut().context("there is no database server")
    }
}

fn start_postgres() -> Result<PrivatePostgres> {
    // What was committed must survive the crash: `unit_test` would not even write it down.
    let options = Options { shared_buffers_mb: 128, ..Options::benchmark() };
    PrivatePostgres::start(options).context("the database can't be started")
}
