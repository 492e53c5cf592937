//! The node's side of a running program: exchanges messages with the supervisor until all processes
//! of the program have ended.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bytes::BytesMut;
use evenkeel_core::{LogStream, Span};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::time::{Sleep, sleep, sleep_until};

use super::SupervisorCommand;
use super::ending::{BodyState, Stop};
use super::exit_codes::ExitCodes;
use crate::supervisor::{Group, SANDBOX, Sandbox, Spec, lease_line, monotonic_ms};
use crate::{Cancel, CancelReason, Lease, LiveReport, Report};

/// Maximum time for which the node waits for the last replies of a supervisor that has ended.
const LAST_REPLIES: Duration = Duration::from_secs(1);

/// Maximum time to wait for the end of a control group whose supervisor was killed.
const GROUP_END: Duration = Duration::from_secs(2);

const CHUNK_BYTES: usize = 8 * 1024;

/// Maximum number of bytes in a pipe, unless root has enlarged it.
const PIPE_BYTES_MAX: usize = 1024 * 1024;

/// The time limits of a running program, and the live report that gets its output.
pub(super) struct SessionOptions<'a> {
    /// The program is stopped after this time without output.
    pub(super) timeout: Span,
    /// The maximum time between the command `stop` and the end of the supervisor.
    pub(super) stop_timeout: Duration,
    pub(super) codes: &'a ExitCodes,
    pub(super) cancel: &'a Cancel,
    pub(super) lease: Lease,
    pub(super) live: LiveReport,
}

/// A supervisor, the pipes to the supervisor, and the state of its program. Dropping a `Session`
/// closes the control socket, after which the supervisor ends the program.
pub(super) struct Session<'a> {
    child: Child,
    replies: Lines<BufReader<OwnedReadHalf>>,
    commands: Commands,
    /// Standard output and standard error of the program, until they are closed.
    pipes: [Option<pipe::Receiver>; 2],
    options: SessionOptions<'a>,
    state: BodyState,
    /// Elapses if the program prints nothing for the job's timeout.
    silence: Pin<Box<Sleep>>,
    /// Elapses if the supervisor takes too long to stop.
    stopping: Pin<Box<Sleep>>,
    /// The bytes that were last read from the program's standard output and standard error.
    buffers: [Vec<u8>; 2],
    /// False once the supervisor has closed the control socket.
    is_listening: bool,
}

/// The writing half of the control socket. Commands are queued, so that the node can still kill a
/// supervisor that does not read its commands.
struct Commands {
    socket: OwnedWriteHalf,
    queue: BytesMut,
    is_broken: bool,
}

impl Commands {
    fn send(&mut self, line: &str) {
        if !self.is_broken {
            self.queue.extend_from_slice(line.as_bytes());
        }
    }

    /// Writes a part of the queued commands. After a write error no more commands are written,
    /// because the supervisor has ended.
    async fn write_some(&mut self) {
        if self.socket.write_buf(&mut self.queue).await.is_err() {
            self.is_broken = true;
            self.queue.clear();
        }
    }
}

/// Something that happened while a program runs.
enum Event {
    Stop(Stop),
    LeaseRenewed,
    /// The supervisor did not stop in time, or its last replies did not arrive in time.
    StopTimeout,
    /// A reply of the supervisor, or `None` after the last reply.
    Reply(Option<String>),
    Output(LogStream),
    SupervisorEnded(io::Result<ExitStatus>),
    Nothing,
}

impl<'a> Session<'a> {
    /// Starts a supervisor, inside a sandbox if `sandbox` is given, and queues `spec` as the first
    /// message to the supervisor.
    pub(super) fn open(
        supervisor: &SupervisorCommand,
        spec: &Spec,
        sandbox: Option<&Sandbox>,
        options: SessionOptions<'a>,
    ) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let theirs = theirs.into_std()?;
        theirs.set_nonblocking(false)?;
        let (to_stdout, stdout) = pipe::pipe()?;
        let (to_stderr, stderr) = pipe::pipe()?;
        // With an absolute path and no hook before `exec`, the standard library starts a process
        // without copying the memory tables of the node, which may be large.
        let mut command = Command::new(&supervisor.program);
        command.args(&supervisor.args);
        if let Some(sandbox) = sandbox {
            command.arg(SANDBOX).arg(serde_json::to_string(sandbox)?);
        }
        let child = command
            // The node's environment holds secrets, so the supervisor does not inherit it.
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(to_stdout.into_blocking_fd()?))
            .stderr(Stdio::from(to_stderr.into_blocking_fd()?))
            .spawn()?;
        let (replies, socket) = ours.into_split();
        let mut queue = BytesMut::from(&serde_json::to_vec(spec)?[..]);
        queue.extend_from_slice(b"\n");
        let group = spec.group.as_ref().map(|group| Group::at(group.path.clone()));
        Ok(Self {
            child,
            replies: BufReader::new(replies).lines(),
            commands: Commands { socket, queue, is_broken: false },
            pipes: [Some(stdout), Some(stderr)],
            state: BodyState::new(options.live.clone(), group),
            silence: Box::pin(sleep(options.timeout.into())),
            stopping: Box::pin(sleep(Duration::ZERO)),
            buffers: [Vec::new(), Vec::new()],
            is_listening: true,
            options,
        })
    }

    /// Runs the program until the program and all its descendants have ended.
    pub(super) async fn run(mut self) -> Report {
        while self.state.supervisor.is_none() || self.is_listening {
            match self.next_event().await {
                Event::Stop(stop) => self.stop(stop),
                Event::LeaseRenewed => {
                    let sent_ms = monotonic_ms();
                    let remaining = self.options.lease.remaining().unwrap_or(Duration::MAX);
                    self.commands.send(&lease_line(sent_ms, remaining));
                }
                Event::StopTimeout if self.state.supervisor.is_some() => break,
                Event::StopTimeout => {
                    self.state.kill(&mut self.child);
                    self.stopping.set(sleep(self.options.stop_timeout));
                }
                Event::Reply(Some(line)) => {
                    if self.state.take_reply(&line) {
                        self.commands.send("go\n");
                    }
                }
                Event::Reply(None) => self.is_listening = false,
                Event::Output(stream) => {
                    self.state.output.push(stream, &self.buffers[stream as usize]);
                    self.silence.set(sleep(self.options.timeout.into()));
                }
                Event::SupervisorEnded(status) => {
                    if status.as_ref().is_ok_and(|status| status.signal().is_some()) {
                        // When a supervisor is killed, the kernel ends only the main process of its
                        // program.
                        self.state.kill_body();
                    }
                    self.state.supervisor = Some(status);
                    self.stopping.set(sleep(LAST_REPLIES));
                }
                Event::Nothing => {}
            }
        }
        self.finish().await
    }

    fn stop(&mut self, stop: Stop) {
        self.state.stop = Some(stop);
        self.stopping.set(sleep(self.options.stop_timeout));
        self.commands.send("stop\n");
    }

    async fn next_event(&mut self) -> Event {
        let Self { child, replies, commands, pipes: [stdout, stderr], buffers: [out, err], .. } =
            self;
        let SessionOptions { cancel, lease, .. } = &mut self.options;
        let has_supervisor = self.state.supervisor.is_none();
        let is_running = self.state.stop.is_none() && has_supervisor;
        let until = lease.until();
        tokio::select! {
            reason = cancel.cancelled(), if is_running => Event::Stop(Stop::Cancelled(reason)),
            () = lease.renewed(), if is_running => Event::LeaseRenewed,
            () = sleep_until(until), if is_running => match lease.until() > until {
                true => Event::Nothing,
                false => Event::Stop(Stop::Cancelled(CancelReason::LeaseLost)),
            },
            () = &mut self.silence, if is_running => Event::Stop(Stop::Silent),
            () = &mut self.stopping, if !is_running => Event::StopTimeout,
            () = commands.write_some(), if !commands.queue.is_empty() => Event::Nothing,
            reply = replies.next_line(), if self.is_listening => {
                Event::Reply(reply.ok().flatten())
            }
            true = read(stdout, out), if stdout.is_some() => Event::Output(LogStream::Stdout),
            true = read(stderr, err), if stderr.is_some() => Event::Output(LogStream::Stderr),
            status = child.wait(), if has_supervisor => Event::SupervisorEnded(status),
        }
    }

    async fn finish(self) -> Report {
        let Self { mut state, pipes, options, .. } = self;
        if !state.is_over()
            && let Some(group) = state.group.clone()
        {
            // If the node ends before all processes of the control group have ended, the restarted
            // node ends them.
            let _ = tokio::task::spawn_blocking(move || group.end(GROUP_END)).await;
        }
        for (stream, pipe) in LogStream::ALL.into_iter().zip(pipes) {
            drain(pipe, |bytes| state.output.push(stream, bytes));
        }
        state.report(options.timeout, options.codes)
    }
}

/// Reads into `buffer`. At the end of the pipe, the function closes the pipe and returns false.
async fn read(pipe: &mut Option<pipe::Receiver>, buffer: &mut Vec<u8>) -> bool {
    let Some(reader) = pipe else { return false };
    buffer.clear();
    buffer.reserve(CHUNK_BYTES);
    let is_open = matches!(reader.read_buf(buffer).await, Ok(n) if n > 0);
    if !is_open {
        *pipe = None;
    }
    is_open
}

/// Reads the bytes that are in a pipe now, without waiting for the end of the pipe. The program has
/// ended, but an unrelated process may still hold the pipe open.
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
