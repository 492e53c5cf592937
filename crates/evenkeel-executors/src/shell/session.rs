//! One conversation with one supervisor.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use evenkeel_core::Span;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::{Sleep, sleep, sleep_until};

use super::SupervisorCommand;
use crate::supervisor::{Ended, EndedBy, Reply, Spec, lease_line, monotonic_ms};
use crate::tail::Tail;
use crate::{Cancel, CancelReason, Lease, Report};

/// After the supervisor's end all writers of its pipes are gone, unless it was killed.
const DRAIN: Duration = Duration::from_secs(1);

/// How long a session waits for what.
pub(super) struct Limits {
    /// Without a byte from the body.
    pub(super) silence: Span,
    /// From the order to stop to the supervisor's end.
    pub(super) stopping: Duration,
}

/// Why a body was told to stop.
#[derive(Copy, Clone)]
enum Stop {
    Cancelled(CancelReason),
    Silent,
}

/// A supervisor and the pipes to it. Dropping it closes the control socket, and that ends the body.
pub(super) struct Session {
    child: Child,
    replies: Lines<BufReader<OwnedReadHalf>>,
    orders: OwnedWriteHalf,
    first: Vec<u8>,
}

/// What became known of a body so far.
#[derive(Default)]
struct Known {
    stdout: Tail,
    stderr: Tail,
    stop: Option<Stop>,
    body: Option<Pid>,
    start_error: Option<String>,
    ended: Option<Ended>,
    supervisor: Option<io::Result<ExitStatus>>,
}

impl Session {
    /// Starts a supervisor, which waits for its spec.
    pub(super) fn open(
        supervisor: &SupervisorCommand,
        path: Option<&str>,
        spec: &Spec,
    ) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let theirs = theirs.into_std()?;
        theirs.set_nonblocking(false)?;
        let child = Command::new(&supervisor.program)
            .args(&supervisor.args)
            // The node's environment holds its secrets.
            .env_clear()
            .envs(path.map(|path| ("PATH", path)))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (replies, orders) = ours.into_split();
        let mut first = serde_json::to_vec(spec)?;
        first.push(b'\n');
        Ok(Self { child, replies: BufReader::new(replies).lines(), orders, first })
    }

    /// Talks to the supervisor until the body and everything below it is gone.
    pub(super) async fn run(self, limits: Limits, cancel: &Cancel, mut lease: Lease) -> Report {
        let Self { mut child, mut replies, mut orders, first } = self;
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        let mut known = Known::default();
        let (say, mut said) = mpsc::unbounded_channel::<String>();
        // Beside everything else: a supervisor that does not read must not stop us from ending it.
        let mut writing = pin!(async {
            let mut result = orders.write_all(&first).await;
            while let Some(line) = said.recv().await {
                if result.is_ok() {
                    result = orders.write_all(line.as_bytes()).await;
                }
            }
            std::future::pending::<()>().await;
        });
        let say = |line: String| drop(say.send(line));
        let mut cancelled = pin!(cancel.cancelled());
        let mut silence = pin!(sleep(limits.silence.into()));
        let mut patience: std::pin::Pin<&mut Sleep> = pin!(sleep(Duration::ZERO));
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut listening = true;

        while known.supervisor.is_none() || listening || stdout.is_some() || stderr.is_some() {
            let until = lease.until();
            let running = known.stop.is_none() && known.supervisor.is_none();
            let stop = tokio::select! {
                reason = &mut cancelled, if running => Stop::Cancelled(reason),
                () = lease.renewed(), if running => {
                    let sent_ms = monotonic_ms();
                    say(lease_line(sent_ms, lease.remaining().unwrap_or(Duration::MAX)));
                    continue;
                }
                () = sleep_until(until), if running => {
                    if lease.until() > until {
                        continue;
                    }
                    Stop::Cancelled(CancelReason::LeaseLost)
                }
                () = &mut silence, if running => Stop::Silent,
                () = patience.as_mut(), if !running => {
                    if known.supervisor.is_some() {
                        break;
                    }
                    known.kill(&mut child);
                    patience.set(sleep(limits.stopping));
                    continue;
                }
                () = &mut writing => continue,
                reply = replies.next_line(), if listening => {
                    listening = matches!(&reply, Ok(Some(_)));
                    if let Ok(Some(line)) = reply && known.learn(&line) {
                        say("go\n".into());
                    }
                    continue;
                }
                heard = hear(&mut stdout, &mut out, &mut known.stdout), if stdout.is_some() => {
                    if heard { silence.set(sleep(limits.silence.into())) }
                    continue;
                }
                heard = hear(&mut stderr, &mut err, &mut known.stderr), if stderr.is_some() => {
                    if heard { silence.set(sleep(limits.silence.into())) }
                    continue;
                }
                status = child.wait(), if known.supervisor.is_none() => {
                    if status.as_ref().is_ok_and(|status| status.signal().is_some()) {
                        // Killed: the kernel has ended the body's main process, and only that.
                        known.kill_body();
                    }
                    known.supervisor = Some(status);
                    patience.set(sleep(DRAIN));
                    continue;
                }
            };
            known.stop = Some(stop);
            patience.set(sleep(limits.stopping));
            say("stop\n".into());
        }
        known.report(limits.silence)
    }
}

/// Takes in what comes next; `false` at the end, after which there is nothing to listen to.
async fn hear<R: AsyncRead + Unpin>(
    pipe: &mut Option<R>,
    buffer: &mut Vec<u8>,
    tail: &mut Tail,
) -> bool {
    let Some(reader) = pipe else { return false };
    buffer.clear();
    buffer.reserve(8 * 1024);
    match reader.read_buf(buffer).await {
        Ok(n) if n > 0 => {
            tail.push(buffer);
            true
        }
        Ok(_) | Err(_) => {
            *pipe = None;
            false
        }
    }
}

impl Known {
    /// Takes in an answer; says whether the supervisor waits for the word to start.
    fn learn(&mut self, line: &str) -> bool {
        match serde_json::from_str(line) {
            Ok(Reply::Ready) => return self.stop.is_none(),
            Ok(Reply::Started { pid }) => self.body = Pid::from_raw(pid),
            Ok(Reply::Failed { error }) => self.start_error = Some(error),
            Ok(Reply::Ended(ended)) => self.ended = Some(ended),
            Err(_) => {}
        }
        false
    }

    /// Ends a supervisor that does not end by itself.
    fn kill(&self, child: &mut Child) {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(leader) = leader {
            let _ = kill_process_group(leader, Signal::KILL);
        }
        // It may not lead a group yet.
        let _ = child.start_kill();
        self.kill_body();
    }

    fn kill_body(&self) {
        if let Some(body) = self.body {
            let _ = kill_process_group(body, Signal::KILL);
        }
    }

    fn report(self, silence: Span) -> Report {
        let by = self.ended.map(|ended| ended.by);
        let mut report = match (self.stop, by) {
            // It came to its own end while it was being told to stop.
            (_, Some(EndedBy::Itself)) | (None, Some(EndedBy::Stop)) => self.own_end(),
            (Some(Stop::Cancelled(reason)), _) => Report::cancelled(reason),
            (Some(Stop::Silent), _) => Report::timed_out(format!("no output for {silence}")),
            (None, Some(EndedBy::Lease | EndedBy::NodeGone)) => {
                Report::cancelled(CancelReason::LeaseLost)
            }
            (None, None) => self.no_end(),
        };
        if let (Some(error), Some(stderr)) = (&mut report.error, self.stderr.into_text()) {
            error.push('\n');
            error.push_str(&stderr);
        }
        Report {
            output: self.stdout.into_text(),
            cpu_time: self.ended.map(|ended| Span::from_micros(ended.cpu_us)),
            memory_peak_kb: self.ended.map(|ended| ended.memory_kb),
            ..report
        }
    }

    fn own_end(&self) -> Report {
        let (code, signal) = self.ended.map_or((None, None), |ended| (ended.code, ended.signal));
        match (code, signal) {
            (Some(0), _) => Report::completed(),
            (Some(code), _) => Report::failed(format!("exit code {code}")),
            (None, Some(signal)) => Report::failed(format!("ended by signal {signal}")),
            (None, None) => Report::failed("it ended in an unknown way"),
        }
    }

    fn no_end(&self) -> Report {
        if let Some(error) = &self.start_error {
            return Report::failed(error.clone());
        }
        match &self.supervisor {
            Some(Ok(status)) => Report::failed(format!("its supervisor was ended: {status}")),
            Some(Err(error)) => Report::failed(format!("its supervisor was lost: {error}")),
            None => Report::failed("its supervisor was lost"),
        }
    }
}
