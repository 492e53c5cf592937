//! Determines the result of an attempt from how its program ended.

use std::io;
use std::process::ExitStatus;

use evenkeel_core::attempt::Outcome;
use evenkeel_core::{LogStream, RunLog, Span};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

use super::exit_codes::ExitCodes;
use super::output::Output;
use crate::supervisor::{Ended, EndedBy, Group, Reply};
use crate::{CancelReason, LiveReport, Report};

/// Maximum number of bytes of standard error in the error message; the log may keep more of
/// standard error.
const STDERR_BYTES_MAX: usize = 4 * 1024;

/// Why the node stops a program.
#[derive(Copy, Clone)]
pub(super) enum Stop {
    Cancelled(CancelReason),
    Silent,
}

/// What the node knows about a program that runs or has ended.
pub(super) struct BodyState {
    pub(super) output: Output,
    pub(super) stop: Option<Stop>,
    pub(super) supervisor: Option<io::Result<ExitStatus>>,
    pub(super) group: Option<Group>,
    body: Option<Pid>,
    start_error: Option<String>,
    ended: Option<Ended>,
}

impl BodyState {
    pub(super) fn new(live: LiveReport, group: Option<Group>) -> Self {
        let output = Output::new(live);
        let (stop, supervisor, body, start_error, ended) = (None, None, None, None, None);
        Self { output, stop, supervisor, group, body, start_error, ended }
    }

    /// Processes a reply of the supervisor. Returns true if the supervisor waits for the command
    /// `go`.
    pub(super) fn take_reply(&mut self, line: &str) -> bool {
        match serde_json::from_str(line) {
            Ok(Reply::Ready) => return self.stop.is_none(),
            Ok(Reply::Started { pid }) => self.body = pid.and_then(Pid::from_raw),
            Ok(Reply::Failed { error }) => self.start_error = Some(error),
            Ok(Reply::Ended(ended)) => self.ended = Some(ended),
            Err(_) => {}
        }
        false
    }

    /// True if the supervisor has reported that no process of the program is left.
    pub(super) const fn is_over(&self) -> bool {
        self.ended.is_some() || self.start_error.is_some()
    }

    /// Kills a supervisor that does not stop in time, and its program.
    pub(super) fn kill(&self, child: &mut Child) {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(leader) = leader {
            let _ = kill_process_group(leader, Signal::KILL);
        }
        // The supervisor may not lead a process group yet, so it is killed directly as well.
        let _ = child.start_kill();
        self.kill_body();
    }

    /// Kills the processes of the program that can be found without the supervisor.
    pub(super) fn kill_body(&self) {
        if let Some(group) = &self.group {
            let _ = group.kill();
        }
        if let Some(body) = self.body {
            let _ = kill_process_group(body, Signal::KILL);
        }
    }

    pub(super) fn report(self, silence: Span, codes: &ExitCodes) -> Report {
        let by = self.ended.map(|ended| ended.by);
        let mut report = match (self.stop, by) {
            // The program may exit on its own while the node is stopping it.
            (_, Some(EndedBy::Itself)) | (None, Some(EndedBy::Stop)) => self.own_end(codes),
            (Some(Stop::Cancelled(reason)), _) => Report::cancelled(reason),
            (Some(Stop::Silent), _) => Report::timed_out(format!("no output for {silence}")),
            (None, Some(EndedBy::Lease | EndedBy::NodeGone)) => {
                Report::cancelled(CancelReason::LeaseLost)
            }
            (None, None) => self.no_end(),
        };
        let (log, items) = self.output.finish();
        if let (Some(error), Some(log)) = (&mut report.error, &log) {
            add_cause(error, log);
        }
        let stdout = log.map(|log| log.text(Some(LogStream::Stdout)));
        Report {
            output: stdout.filter(|text| !text.is_empty()),
            items_processed: items.items_processed,
            items_saved: items.items_saved,
            cpu_time: self.ended.map(|ended| Span::from_micros(ended.cpu_us)),
            memory_peak_kb: self.ended.map(|ended| ended.memory_kb),
            ..report
        }
    }

    fn own_end(&self, codes: &ExitCodes) -> Report {
        let (code, signal) = self.ended.map_or((None, None), |ended| (ended.code, ended.signal));
        let mut report = match (code, signal) {
            (Some(code), _) => {
                let (outcome, retry) = codes.meaning(code);
                let error = match outcome {
                    Outcome::Completed => return Report::completed(),
                    Outcome::PartlyFailed => format!("exit code {code}: partly failed"),
                    _ => format!("exit code {code}"),
                };
                Report { outcome, retry, ..Report::failed(error) }
            }
            (None, Some(signal)) => Report::failed(signal_text(signal)),
            (None, None) => Report::failed("the program ended in an unknown way"),
        };
        if self.ended.is_some_and(|ended| ended.out_of_memory)
            && let Some(error) = &mut report.error
        {
            error.push_str("; it used more memory than limits.memory_mb");
        }
        report
    }

    fn no_end(&self) -> Report {
        if let Some(error) = &self.start_error {
            return Report::failed(error.clone());
        }
        match &self.supervisor {
            Some(Ok(status)) => Report::failed(format!("the supervisor ended: {status}")),
            Some(Err(error)) => Report::failed(format!("the supervisor was lost: {error}")),
            None => Report::failed("the supervisor was lost"),
        }
    }
}

/// Adds standard error to the error message. The last line of standard error is added to the first
/// line of the message, because it distinguishes failures best. If standard error has several
/// lines, its last lines are appended to the error message.
fn add_cause(error: &mut String, log: &RunLog) {
    let Some(cause) = log.last_line(LogStream::Stderr) else { return };
    error.push_str(": ");
    error.push_str(&cause);
    let lines = log.lines(0, Some(LogStream::Stderr));
    if lines.lines.iter().filter(|line| !line.text.trim().is_empty()).nth(1).is_none() {
        return;
    }
    let text = lines.text();
    let from = text.len().saturating_sub(STDERR_BYTES_MAX);
    let shown = match text.as_bytes().get(from.wrapping_sub(1)) {
        None | Some(b'\n') => &text[from..],
        // Skips the rest of the first line, which was cut, unless no other line follows.
        Some(_) => {
            let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(from);
            text[from..].split_once('\n').map_or(&text[from..], |(_, rest)| rest)
        }
    };
    error.push('\n');
    error.push_str(shown);
}

/// Describes a signal. The kernel sends SIGXCPU and SIGXFSZ because the program exceeded a limit.
fn signal_text(signal: i32) -> String {
    let why = match signal {
        _ if signal == Signal::XCPU.as_raw() => ": it used more CPU time than limits.cpu_seconds",
        _ if signal == Signal::XFSZ.as_raw() => ": it wrote a larger file than limits.file_size_mb",
        _ => "",
    };
    format!("ended by signal {signal}{why}")
}
