//! One conversation with one supervisor.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::pin::{Pin, pin};
use std::process::Stdio;
use std::time::Duration;

use evenkeel_core::Span;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::{Sleep, sleep, sleep_until};

use super::SupervisorCommand;
use super::ending::{Known, Stop};
use super::exit_codes::ExitCodes;
use crate::supervisor::{Group, Spec, WALL, Wall, lease_line, monotonic_ms};
use crate::{Cancel, CancelReason, Lease, Report, Wire};

/// A supervisor that has ended has said everything, and it only has to arrive.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long the kernel may take to end what a killed supervisor has left behind.
const GROUP_END: Duration = Duration::from_secs(2);

/// So many bytes are read at once.
const CHUNK_BYTES: usize = 8 * 1024;

/// No pipe holds more than this, unless root made it larger.
const PIPE_BYTES_MAX: usize = 1024 * 1024;

/// What a session goes by.
pub(super) struct Terms<'a> {
    /// The longest time without a byte from the body.
    pub(super) silence: Span,
    /// From the order to stop to the supervisor's end.
    pub(super) stopping: Duration,
    /// What the body's exit code means.
    pub(super) codes: &'a ExitCodes,
    /// Says when to stop.
    pub(super) cancel: &'a Cancel,
    /// Says until when this node may run it.
    pub(super) lease: Lease,
    /// Takes what the body says while it runs.
    pub(super) wire: Wire,
}

/// A supervisor and the pipes to it. Dropping it closes the control socket, and that ends the body.
pub(super) struct Session {
    child: Child,
    replies: Lines<BufReader<OwnedReadHalf>>,
    orders: OwnedWriteHalf,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    first: Vec<u8>,
    group: Option<Group>,
}

impl Session {
    /// Starts a supervisor, behind a wall if there is to be one. It waits for its spec.
    pub(super) fn open(
        supervisor: &SupervisorCommand,
        spec: &Spec,
        wall: Option<&Wall>,
    ) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let theirs = theirs.into_std()?;
        theirs.set_nonblocking(false)?;
        let (to_stdout, stdout) = pipe::pipe()?;
        let (to_stderr, stderr) = pipe::pipe()?;
        // By absolute path and without a step of ours in between, so that it takes no copy of this
        // process, which may be large.
        let mut command = Command::new(&supervisor.program);
        command.args(&supervisor.args);
        if let Some(wall) = wall {
            command.arg(WALL).arg(serde_json::to_string(wall)?);
        }
        let child = command
            // The node's environment holds its secrets.
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(to_stdout.into_blocking_fd()?))
            .stderr(Stdio::from(to_stderr.into_blocking_fd()?))
            .spawn()?;
        let (replies, orders) = ours.into_split();
        let replies = BufReader::new(replies).lines();
        let mut first = serde_json::to_vec(spec)?;
        first.push(b'\n');
        let group = spec.group.as_ref().map(|group| Group::at(group.path.clone()));
        Ok(Self { child, replies, orders, stdout, stderr, first, group })
    }

    /// Talks to the supervisor until the body and everything below it is gone.
    pub(super) async fn run(self, terms: Terms<'_>) -> Report {
        let Self { mut child, mut replies, mut orders, stdout, stderr, first, group } = self;
        let Terms { silence: longest_silence, stopping, codes, cancel, mut lease, wire } = terms;
        let (mut stdout, mut stderr) = (Some(stdout), Some(stderr));
        let mut known = Known::new(wire, group);
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
        let mut silence = pin!(sleep(longest_silence.into()));
        let mut patience: Pin<&mut Sleep> = pin!(sleep(Duration::ZERO));
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut listening = true;

        while known.supervisor.is_none() || listening {
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
                    patience.set(sleep(stopping));
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
                heard = hear(&mut stdout, &mut out), if stdout.is_some() => {
                    if heard {
                        known.output.out(&out);
                        silence.set(sleep(longest_silence.into()));
                    }
                    continue;
                }
                heard = hear(&mut stderr, &mut err), if stderr.is_some() => {
                    if heard {
                        known.output.err(&err);
                        silence.set(sleep(longest_silence.into()));
                    }
                    continue;
                }
                status = child.wait(), if known.supervisor.is_none() => {
                    if status.as_ref().is_ok_and(|status| status.signal().is_some()) {
                        // Killed: the kernel has ended the body's main process, and only that.
                        known.kill_body();
                    }
                    known.supervisor = Some(status);
                    patience.set(sleep(LAST_WORDS));
                    continue;
                }
            };
            known.stop = Some(stop);
            patience.set(sleep(stopping));
            say("stop\n".into());
        }
        if !known.is_over()
            && let Some(group) = known.group.clone()
        {
            // If this node ends before that is done, its next life will do it.
            let _ = tokio::task::spawn_blocking(move || group.end(GROUP_END)).await;
        }
        drain(stdout, |bytes| known.output.out(bytes));
        drain(stderr, |bytes| known.output.err(bytes));
        known.report(longest_silence, codes)
    }
}

/// Waits for what comes next; `false` at the end, after which there is nothing to listen to.
async fn hear(pipe: &mut Option<pipe::Receiver>, buffer: &mut Vec<u8>) -> bool {
    let Some(reader) = pipe else { return false };
    buffer.clear();
    buffer.reserve(CHUNK_BYTES);
    let heard = matches!(reader.read_buf(buffer).await, Ok(n) if n > 0);
    if !heard {
        *pipe = None;
    }
    heard
}

/// Takes what is in a pipe now. The body has written all it will ever write; but somebody it gave
/// the pipe to may hold it open for ever, and is not waited for.
fn drain(pipe: Option<pipe::Receiver>, mut take: impl FnMut(&[u8])) {
    let Some(pipe) = pipe.and_then(|pipe| pipe.into_nonblocking_fd().ok()) else { return };
    let mut buffer = [0; CHUNK_BYTES];
    let mut taken = 0;
    while taken < PIPE_BYTES_MAX {
        match rustix::io::read(&pipe, &mut buffer) {
            Ok(n) if n > 0 => {
                take(&buffer[..n]);
                taken += n;
            }
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}
