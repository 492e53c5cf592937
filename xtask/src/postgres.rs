//! `cargo xtask postgres`: runs a private PostgreSQL server.

use crate::{provision, test};
use anyhow::Result;
use evenkeel_private_postgres::{Options, PrivatePostgres};
use std::io::{IsTerminal, stdin};

pub fn run() -> Result<()> {
    provision::postgres()?;
    let server = PrivatePostgres::start(Options::unit_test())?;
    println!("export {}='{}'", test::POSTGRES_VARIABLE, server.url());
    println!("{}", server.tcp_url());
    println!("Enter or Ctrl-C stops the server and deletes its data.");
    let mut line = String::new();
    let ended = stdin().read_line(&mut line)? == 0;
    // In a background process, standard input is closed, so `cargo xtask postgres` runs until it is
    // killed. A guard process then stops the PostgreSQL server.
    while ended && !stdin().is_terminal() {
        std::thread::park();
    }
    Ok(())
}
