//! The servers and their database.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use evenkeel_private_postgres::{Options, PrivatePostgres};
use rustix::process::Signal;

use crate::node::Node;
use crate::plan::Fault;

#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub enum StoreKind {
    Postgres,
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

pub struct Cluster {
    pub nodes: Vec<Node>,
    // The database is declared after the servers, so that it is dropped last.
    postgres: Option<PrivatePostgres>,
    folder: PathBuf,
    program: PathBuf,
    store: String,
}

impl Cluster {
    /// Starts the database and the servers with additional flags. All files of the servers are in
    /// `folder`.
    pub fn start(
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

    pub fn begin(&mut self, fault: Fault, number: usize) -> Result<()> {
        match fault {
            Fault::Kill => self.node(number)?.kill(),
            Fault::Freeze => self.node(number)?.signal(Signal::STOP),
            Fault::Database => Ok(self.postgres()?.stop_immediately()?),
        }
    }

    pub fn end(&mut self, fault: Fault, number: usize) -> Result<()> {
        match fault {
            Fault::Kill => self.node(number)?.start(),
            Fault::Freeze => self.node(number)?.signal(Signal::CONT),
            Fault::Database => Ok(self.postgres()?.restart()?),
        }
    }

    /// Drains all servers. Returns one message for each server that exited with an error.
    pub fn drain(&mut self) -> Result<Vec<String>> {
        for node in &self.nodes {
            node.signal(Signal::TERM)?;
        }
        let mut incidents = Vec::new();
        for node in &mut self.nodes {
            let status = node.wait()?;
            if !status.success() {
                incidents.push(format!("{} did not drain: {status}", node.name));
            }
        }
        Ok(incidents)
    }

    /// Starts a server that only answers API requests, after all other servers have drained. With
    /// SQLite a server always has all roles, so the API server also fires jobs, but it serves only
    /// a pool without jobs.
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
    // Committed data must survive a crash of the database, so `Options::unit_test`, which does not
    // sync to disk, cannot be used.
    let options = Options { shared_buffers_mb: 128, ..Options::benchmark() };
    PrivatePostgres::start(options).context("the database can't be started")
}
