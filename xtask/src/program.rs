//! Runs other programs with a time limit.

use crate::{ambient, workspace};
use anyhow::{Context, Result, anyhow, bail, ensure};
use evenkeel_private_postgres::bounded;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(20);
/// Time limit for a program that only prints information.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Returns a `cargo` command that runs in the root of the workspace.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(ambient::cargo());
    command.args(arguments).current_dir(workspace::root()).stdin(Stdio::null());
    command
}

/// Runs a program and returns its status. Returns an error if the program takes longer than
/// `limit`.
pub fn finish(command: &mut Command, limit: Duration) -> Result<ExitStatus> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().with_context(|| format!("cannot run {name}"))?;
    if let Some(status) = bounded::wait(&mut child, limit)? {
        return Ok(status);
    }
    // A program that exceeds its time limit gets SIGTERM first, so that nextest ends the tests that
    // it started.
    kill_process(Pid::from_child(&child), Signal::TERM)?;
    if bounded::wait(&mut child, GRACE)?.is_none() {
        child.kill()?;
        child.wait()?;
    }
    bail!("{name} was still running after {} minutes", limit.as_secs() / 60)
}

/// Like [`finish`], but also returns the output of the program. Prints the output while the program
/// runs.
pub fn finish_with_output(command: &mut Command, limit: Duration) -> Result<(ExitStatus, String)> {
    let (reader, writer) = std::io::pipe().context("cannot open a pipe")?;
    command.stdout(writer);
    let output = Arc::new(Mutex::new(String::new()));
    let (done, is_done) = mpsc::channel();
    let reader_output = Arc::clone(&output);
    std::thread::spawn(move || {
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            let mut output = reader_output.lock().unwrap_or_else(PoisonError::into_inner);
            output.push_str(&line);
            output.push('\n');
        }
        // The message that the output has ended is not needed if the caller has stopped waiting.
        let _ = done.send(());
    });
    let status = finish(command, limit);
    // Close the write end of the pipe in `command`, so that the reader thread can end.
    command.stdout(Stdio::null());
    // A child process that outlives the program may keep the pipe open, so the wait for the end of
    // the output is limited.
    let _ = is_done.recv_timeout(GRACE);
    let output = output.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok((status?, output))
}

/// Returns the output of a short-lived program. Fails if the program fails.
pub fn answer(command: &mut Command) -> Result<Vec<u8>> {
    answer_within(command, ANSWER_LIMIT)
}

/// Returns the output of a program. Fails if the program fails or takes longer than `limit`.
pub fn answer_within(command: &mut Command, limit: Duration) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let mut pipe = child.stdout.take().context("the output was not piped")?;
    // The output is read while waiting for the program, because a full pipe would block the
    // program.
    let reader = std::thread::spawn(move || {
        let mut output = Vec::new();
        pipe.read_to_end(&mut output).map(|_| output)
    });
    let Some(status) = bounded::wait(&mut child, limit)? else {
        child.kill()?;
        child.wait()?;
        bail!("{name} did not end within {limit:?}");
    };
    ensure!(status.success(), "{name} ended with {status}");
    let output = reader.join().map_err(|_| anyhow!("the reader of {name} panicked"))?;
    Ok(output?)
}

pub fn succeed(command: &mut Command, limit: Duration) -> Result<()> {
    check(finish(command, limit)?)
}

/// Returns an error unless the exit status means success.
pub fn check(status: ExitStatus) -> Result<()> {
    ensure!(status.success(), "ended with {status}");
    Ok(())
}

/// True if the program of `command` exists and succeeds. Its output is discarded.
pub fn works(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    finish(command, ANSWER_LIMIT).is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_program_is_an_error_with_its_status() {
        let error = succeed(Command::new("sh").args(["-c", "exit 3"]), GRACE).unwrap_err();
        assert!(error.to_string().contains('3'), "{error}");
    }

    #[test]
    fn finish_with_output_returns_all_lines() {
        let mut program = Command::new("sh");
        program.args(["-c", "for n in $(seq 20000); do echo line $n; done; exit 3"]);
        let (status, output) = finish_with_output(&mut program, GRACE).unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(output.starts_with("line 1\n") && output.ends_with("line 20000\n"));
    }

    #[test]
    fn slow_program_is_ended() {
        let error = finish(Command::new("sleep").arg("60"), Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("still running"), "{error}");
    }

    #[test]
    fn answer_may_be_longer_than_a_pipe_buffer() {
        let output = answer(Command::new("head").args(["-c", "300000", "/dev/zero"])).unwrap();
        assert_eq!(output.len(), 300_000);
        assert!(answer(&mut Command::new("false")).is_err());
    }

    #[test]
    fn missing_program_does_not_work() {
        assert!(!works(&mut Command::new("evenkeel-no-such-program")));
    }
}
