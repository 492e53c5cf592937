//! The process that stands between a node and a shell body.
//!
//! A node can be killed or frozen at any moment, and then can't end what it started. So every body
//! runs under a small process of its own, which ends it when the node no longer can.
//!
//! # Guarantees
//!
//! - The body and all its descendants end when the node says so, when the node is gone (even by
//!   `kill -9`), and when the node's lease runs out unrenewed (the node is frozen, or cut off from
//!   the store). Descendants that left the process group or the session end too, because the
//!   supervisor is their subreaper: whatever loses its parent becomes its child.
//! - Where the node may make control groups (cgroup v2), every body has one of its own, and its end
//!   is the kernel's: all that is in the group is killed at once, whoever it became meanwhile.
//! - The order is SIGTERM to the body's process group, `kill_grace`, then SIGKILL to the control
//!   group and every descendant, repeated until there is none. So a body may outlive its lease by
//!   `kill_grace`: the node must claim that much less than it has.
//! - What a body leaves behind when its main process exits gets SIGTERM, half a second (or
//!   `kill_grace`, if that is less), and SIGKILL.
//! - A body starts only while its node lives and the lease lasts.
//! - From before the body starts until its last descendant is gone, a shared lock is held on
//!   `bodies_lock`. A restarted node that gets the exclusive lock knows that its former life's
//!   bodies are gone and that none will start: it must let go before it starts bodies of its own,
//!   and a supervisor that finds it taken refuses to start.
//! - If the supervisor itself is killed, the kernel kills the body's main process, and a living node
//!   kills its control group. Without one it kills the process group: descendants that left that
//!   may survive, and keep the lock. If the node was killed too, its next life kills the control
//!   group when it starts.
//!
//! - Behind a [wall](wall), the supervisor is process 1 of a PID namespace of its own. The kernel
//!   ends all of the body when the supervisor or the process above it ends, however that comes about.
//!
//! What it can't do: end a process stuck in the kernel; without a control group and a wall, one that
//! became another user; and anything that the body asked another service to start, like `at` or a
//! container service. A body that runs as root or as the node's user can leave its control group, but
//! not its supervisor.
//!
//! # Protocol
//!
//! Standard input is a socket to the node. The node sends one line of JSON, the `Spec`, and
//! after the answer `ready` the line `go`; then `lease <ms>` with what remains at each renewal
//! (and, to be exact, the reading of the monotonic clock in milliseconds at which it was true), or
//! `stop`. Answers are lines of JSON, see `Reply`. Standard output and error are the body's.
//!
//! The exit code is the body's, 128 + n if signal n ended it, [`EXIT_ABANDONED`] if the node or
//! its lease was gone, 126 or 127 if it could not start.
//!
//! The body's program is started by way of this program (`… --exec <prelude> -- argv…`), because
//! some things have to be done by the process itself: asking the kernel to end it with its parent,
//! joining a group, giving up rights.

mod body;
mod descendants;
mod exec;
mod group;
mod limits;
mod protocol;
mod wall;
mod watch;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::ExitCode;

use rustix::process::{getpid, set_child_subreaper, setsid};

use body::{BodiesLock, Body};
pub(crate) use exec::HOME;
pub(crate) use group::Group;
pub(crate) use limits::Limits;
use protocol::Command;
pub(crate) use protocol::{
    Ended, EndedBy, GroupSpec, Reply, Spec, lease_line, millis, monotonic_ms,
};
pub(crate) use wall::{WALL, Wall};
use watch::Watch;

/// The supervisor's exit code when it ended a body because the node or its lease was gone.
pub const EXIT_ABANDONED: u8 = 198;

/// The exit code when the supervisor itself could not do its work.
const EXIT_BROKEN: u8 = 125;

/// Runs the supervisor; the program's `__supervise` command is this and nothing else.
///
/// Call it before anything else when the first argument says so, whatever follows it: the arguments
/// are the supervisor's own. It starts no runtime and reads no configuration.
pub fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(exec) = exec::exec_arguments(&args) {
        return ExitCode::from(exec::become_body(exec));
    }
    if args.last().is_none_or(|arg| arg != wall::INSIDE) {
        close_inherited();
    }
    if let Some((own_args, wall)) = wall::wall_argument(&args) {
        return ExitCode::from(wall::build_and_wait(own_args, wall));
    }
    match supervise(args) {
        Ok(code) => ExitCode::from(code),
        // The node is gone or talks nonsense, so there is nobody to tell but the log.
        Err(error) => {
            exec::complain(&format!("the supervisor failed: {error}"));
            ExitCode::from(EXIT_BROKEN)
        }
    }
}

/// Closes all but the standard streams: what the node was started with and never knew of must not
/// reach bodies. Call it before anything is opened.
fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let open: Vec<i32> = numbers.filter(|number| *number > 2).collect();
    for number in open {
        // It fails for the one that the list was read from.
        let _ = nix::unistd::close(number);
    }
}

fn supervise(mut own_args: Vec<std::ffi::OsString>) -> std::io::Result<u8> {
    if own_args.last().is_some_and(|arg| arg == wall::INSIDE) {
        own_args.pop();
        if let Err(error) = wall::settle_inside() {
            return Ok(wall::refuse(&format!("the wall around it can't be built: {error}")));
        }
    }
    // Out of the terminal's reach: its signals are for the node, which decides what they mean for
    // bodies. It fails only for a leader of a group, and then there is no terminal above it.
    let _ = setsid();
    set_child_subreaper(Some(getpid()))?;
    let control = File::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
    let mut replies = control.try_clone()?;
    let mut commands = BufReader::new(control);

    let Some(spec) = read_spec(&mut commands)? else { return Ok(EXIT_ABANDONED) };
    let lock = match spec.bodies_lock.as_deref().map(BodiesLock::hold).transpose() {
        Ok(lock) => lock,
        Err(error) => {
            Reply::Failed { error: format!("the lock of bodies: {error}") }.send(&mut replies);
            return Ok(EXIT_BROKEN);
        }
    };
    // The node answers after the lock is held. Were it gone before that, a restarted one could
    // already have found the lock free.
    Reply::Ready.send(&mut replies);
    let Some(lease) = await_go(&mut commands, spec.lease())? else { return Ok(EXIT_ABANDONED) };

    let body = match Body::start(&spec, own_args) {
        Ok(body) => body,
        Err(error) => {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            Reply::Failed { error: format!("it can't be started: {error}") }.send(&mut replies);
            return Ok(if missing { 127 } else { 126 });
        }
    };
    // Behind a wall the number means nothing to the node, or another process.
    let pid = (!getpid().is_init()).then(|| body.pid.as_raw_nonzero().get());
    Reply::Started { pid }.send(&mut replies);
    let ended = Watch::new(body, lease, spec.kill_grace(), commands).until_all_is_over();
    drop(lock);
    let code = match ended.by {
        EndedBy::Lease | EndedBy::NodeGone => EXIT_ABANDONED,
        EndedBy::Itself | EndedBy::Stop => ended.exit_code(),
    };
    Reply::Ended(ended).send(&mut replies);
    Ok(code)
}

fn read_spec(commands: &mut impl BufRead) -> std::io::Result<Option<Spec>> {
    let mut line = String::new();
    if commands.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}

/// Waits for the word to start, and says until when the lease then lasts. `None` if there is no
/// node, no lease or no wish any more.
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
