//! Running other programs, never for ever.

use crate::{ambient, workspace};
use anyhow::{Context, Result, anyhow, bail};
use evenkeel_private_postgres::bounded;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// After being asked to end, before being ended.
const GRACE: Duration = Duration::from_secs(20);
/// For a program that only has to look something up.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// `cargo` at the root of the workspace.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(ambient::cargo());
    command.args(arguments).current_dir(workspace::root()).stdin(Stdio::null());
    command
}

/// Runs a program to its end, however it ends. One that takes longer than `limit` is an error.
pub fn finish(command: &mut Command, limit: Duration) -> Result<ExitStatus> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().with_context(|| format!("cannot run {name}"))?;
    if let Some(status) = bounded::wait(&mut child, limit)? {
        return Ok(status);
    }
    // Politely first: nextest then ends the tests it started.
    kill_process(Pid::from_child(&child), Signal::TERM)?;
    if bounded::wait(&mut child, GRACE)?.is_none() {
        child.kill()?;
        child.wait()?;
    }
    bail!("{name} was still running after {} minutes", limit.as_secs() / 60)
}

/// What a short-lived program prints; an error if it fails.
pub fn answer(command: &mut Command) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let mut pipe = child.stdout.take().context("the output was not piped")?;
    // Read while waiting: a full pipe would stop the program.
    let reader = std::thread::spawn(move || {
        let mut output = Vec::new();
        pipe.read_to_end(&mut output).map(|_| output)
    });
    let Some(status) = bounded::wait(&mut child, ANSWER_LIMIT)? else {
        child.kill()?;
        child.wait()?;
        bail!("{name} did not answer within {ANSWER_LIMIT:?}");
    };
    if !status.success() {
        bail!("{name} ended with {status}");
    }
    let output = reader.join().map_err(|_| anyhow!("the reader of {name} panicked"))?;
    Ok(output?)
}

/// Runs a program that must succeed.
pub fn succeed(command: &mut Command, limit: Duration) -> Result<()> {
    let status = finish(command, limit)?;
    if !status.success() {
        bail!("ended with {status}");
    }
    Ok(())
}

/// Whether a program exists and succeeds, quietly.
pub fn works(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    finish(command, ANSWER_LIMIT).is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_an_error_with_its_status() {
        let error = succeed(Command::new("sh").args(["-c", "exit 3"]), GRACE).unwrap_err();
        assert!(error.to_string().contains('3'), "{error}");
    }

    #[test]
    fn a_program_that_dawdles_is_ended() {
        let error = finish(Command::new("sleep").arg("60"), Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("still running"), "{error}");
    }

    #[test]
    fn an_answer_longer_than_a_pipe_holds_arrives_whole() {
        let output = answer(Command::new("head").args(["-c", "300000", "/dev/zero"])).unwrap();
        assert_eq!(output.len(), 300_000);
        assert!(answer(&mut Command::new("false")).is_err());
    }

    #[test]
    fn a_program_that_does_not_exist_does_not_work() {
        assert!(!works(&mut Command::new("evenkeel-no-such-program")));
    }
}
