//! Asks for confirmation before commands that affect many jobs.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use super::Context;
use crate::{Failure, Result};

/// Returns an error if the command can't ask for confirmation: with `--json` or without a terminal.
pub(super) fn check(context: &Context, whether: &str, way_out: &str) -> Result {
    if context.output.is_json() || !std::io::stdin().is_terminal() {
        return Err(
            Failure::usage(format!("can't ask {whether} without a terminal")).or_else(way_out)
        );
    }
    Ok(())
}

/// Asks the user for confirmation.
pub(super) fn agrees(question: &str) -> Result<bool> {
    let mut stderr = std::io::stderr().lock();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
