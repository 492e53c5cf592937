//! The supervisor is a small process between the node and a program.
//!
//! A node can be killed or frozen at any moment, and then cannot end the programs that it started.
//! Each program (the *body* of an attempt) has a supervisor process, which ends the program if the
//! node cannot.
//!
//! # Guarantees
//!
//! - The supervisor ends the program and all its descendants if the node sends `stop`, if the node
//!   has ended (even by `kill -9`), or if the node's lease runs out. Descendants that left the
//!   process group or session end as well, because orphans become children of the supervisor.
//! - If the node may create control groups (cgroup v2), each program has a separate control group.
//!   The kernel kills all processes in a control group at once, whatever their user.
//! - To end a program, the supervisor sends SIGTERM to the process group, waits for `kill_grace`,
//!   and then sends SIGKILL to the control group and to every descendant until none is left. A
//!   program may outlive the node's lease by `kill_grace`, so the node must treat its lease as
//!   shorter by `kill_grace`.
//! - Processes that remain when the main process of a program exits get SIGTERM, and SIGKILL after
//!   half a second (or `kill_grace`, if that is shorter).
//! - A program starts only while its node is alive and the node's lease is valid.
//! - A shared lock on the file `bodies_lock` is held from before the program starts until its last
//!   descendant has ended. A restarted node that gets the exclusive lock knows that all programs
//!   which it started before the restart have ended. The node must release the exclusive lock
//!   before it starts programs, because a supervisor that cannot get the shared lock does not start
//!   its program.
//! - If the supervisor is killed, the kernel kills the main process of the program, and the node
//!   kills the control group. Without a control group the node kills the process group; descendants
//!   that left the process group may survive, and keep the lock. If both the supervisor and the
//!   node are killed, the restarted node kills the control group.
//! - In a [sandbox](sandbox), the supervisor is process 1 of a PID namespace. The kernel ends all
//!   processes in a sandbox when the supervisor or its parent ends for any reason.
//!
//! The supervisor cannot end a process that is stuck in the kernel, nor a process that another
//! service started for the program, such as `at` or a container service. Without a control group
//! and a sandbox, the supervisor also cannot end a process that changed its user. A program that
//! runs as root or as the node's user can leave its control group, but not its supervisor.
//!
//! # Protocol
//!
//! The standard input of the supervisor is a socket to the node. The node sends the `Spec` as one
//! line of JSON, and sends the line `go` after the supervisor's reply `ready`. At each renewal of
//! its lease the node sends `lease <ms> <sent_ms>`: the remaining time of the lease, and the
//! monotonic clock when the remaining time was read. `stop` ends the program. Replies of the
//! supervisor are lines of JSON, see `Reply`. Standard output and error belong to the program.
//!
//! The exit code of the supervisor is the exit code of the program, or 128 + n if signal n ended
//! the program, or 126 or 127 if the program could not start. The exit code is [`EXIT_ABANDONED`]
//! if the node had ended or its lease ran out.
//!
//! To start the program, the supervisor executes itself with `… --exec <prelude> -- argv…`, and the
//! new process becomes the program. Only a process itself can give up its rights and ask the kernel
//! to kill it when its parent ends.

mod body;
mod descendants;
mod exec;
mod group;
mod limits;
mod protocol;
mod sandbox;
mod watch;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{getpid, set_child_subreaper, setsid};

use body::{Body, hold_lock};
pub(crate) use exec::HOME;
pub(crate) use group::Group;
pub(crate) use limits::Limits;
use protocol::Command;
pub(crate) use protocol::{
    Ended, EndedBy, GroupSpec, Reply, Spec, lease_line, millis, monotonic_ms,
};
pub(crate) use sandbox::{SANDBOX, Sandbox};
use watch::Watch;

/// The exit code of a supervisor that ended its program because the node had ended or the node's
/// lease ran out.
pub const EXIT_ABANDONED: u8 = 198;

/// The exit code of a supervisor that failed, for example because the lock was taken.
const EXIT_BROKEN: u8 = 125;

/// Runs the supervisor, which is all that the command `__supervise` does. Call this function first
/// in the process, before a runtime or a configuration is loaded.
pub fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(exec) = exec::exec_arguments(&args) {
        return ExitCode::from(exec::become_body(exec));
    }
    if args.last().is_none_or(|arg| arg != sandbox::INSIDE) {
        close_inherited();
    }
    if let Some((own_args, sandbox)) = sandbox::sandbox_argument(&args) {
        return ExitCode::from(sandbox::build_and_wait(own_args, sandbox));
    }
    match supervise(args) {
        Ok(code) => ExitCode::from(code),
        // The node has ended or has sent an invalid message, so the supervisor prints the error to
        // standard error.
        Err(error) => {
            exec::print_error(&format!("the supervisor failed: {error}"));
            ExitCode::from(EXIT_BROKEN)
        }
    }
}

/// Closes all files except the standard streams, so that programs do not inherit files that the
/// node was started with. Call this function before any file is opened.
fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let open: Vec<i32> = numbers.filter(|number| *number > 2).collect();
    for number in open {
        // Closing fails for the descriptor of `/proc/self/fd`, which is already closed.
        let _ = nix::unistd::close(number);
    }
}

fn supervise(mut own_args: Vec<std::ffi::OsString>) -> std::io::Result<u8> {
    if own_args.last().is_some_and(|arg| arg == sandbox::INSIDE) {
        own_args.pop();
        if let Err(error) = sandbox::prepare_inside() {
            return Ok(sandbox::refuse(&format!("the sandbox can't be set up: {error}")));
        }
    }
    // The supervisor leaves the terminal, because the node decides whether Ctrl-C ends programs.
    // `setsid` fails only if the supervisor leads a process group, which Ctrl-C does not reach.
    let _ = setsid();
    set_child_subreaper(Some(getpid()))?;
    let control = File::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
    let mut replies = control.try_clone()?;
    let mut commands = BufReader::new(control);

    let mut line = String::new();
    if commands.read_line(&mut line)? == 0 {
        return Ok(EXIT_ABANDONED);
    }
    let spec: Spec = serde_json::from_str(&line)?;
    let lock = match spec.bodies_lock.as_deref().map(hold_lock).transpose() {
        Ok(lock) => lock,
        Err(error) => {
            let error = format!("the lock file of programs: {error}");
            let _ = Reply::Failed { error }.send(&mut replies);
            return Ok(EXIT_BROKEN);
        }
    };
    // The supervisor sends `ready` only while it holds the lock, so that no old program starts
    // after a restarted node has found the lock free.
    let _ = Reply::Ready.send(&mut replies);
    let lease = spec.lease_ms.map(|lease_ms| spec.sent_ms.saturating_add(lease_ms));
    let Some(lease) = await_go(&mut commands, lease)? else { return Ok(EXIT_ABANDONED) };

    let body = match Body::start(&spec, own_args) {
        Ok(body) => body,
        Err(error) => {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let error = format!("the program can't be started: {error}");
            let _ = Reply::Failed { error }.send(&mut replies);
            return Ok(if missing { 127 } else { 126 });
        }
    };
    // In a sandbox the process id of the program is not reported, because outside the sandbox this
    // id may belong to another process.
    let pid = (!getpid().is_init()).then(|| body.pid.as_raw_nonzero().get());
    let _ = Reply::Started { pid }.send(&mut replies);
    let kill_grace = Duration::from_millis(spec.kill_grace_ms);
    let ended = Watch::new(body, lease, kill_grace, commands).wait_until_all_ended();
    drop(lock);
    let code = match ended.by {
        EndedBy::Lease | EndedBy::NodeGone => EXIT_ABANDONED,
        EndedBy::Itself | EndedBy::Stop => ended.exit_code(),
    };
    let _ = Reply::Ended(ended).send(&mut replies);
    Ok(code)
}

/// Waits for the command `go`. Returns the end of the lease, or `None` if the node has ended, the
/// lease has run out or the node sends `stop`.
fn await_go(
    commands: &mut impl BufRead,
    mut lease_until_ms: Option<u64>,
) -> std::io::Result<Option<Option<u64>>> {
    let mut line = String::new();
    loop {
        line.clear();
        if commands.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match Command::parse(&line, monotonic_ms()) {
            Some(Command::Lease { until_ms }) => lease_until_ms = Some(until_ms),
            Some(Command::Stop) => return Ok(None),
            Some(Command::Go) => {
                let lasts = lease_until_ms.is_none_or(|until| monotonic_ms() < until);
                return Ok(lasts.then_some(lease_until_ms));
            }
            None => {}
        }
    }
}
