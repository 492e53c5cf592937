//! The wall around a body: namespaces in which it sees neither the server's files nor any process
//! but its own.
//!
//! Only a process that starts in a new PID namespace belongs to it, so there are two processes. The
//! *builder* holds the lock of bodies, makes the namespaces and covers the hidden paths; then it
//! starts the supervisor, which is process 1 of the new PID namespace, and waits for it. When
//! process 1 ends, the kernel kills all other processes of the namespace, whoever their user is.
//!
//! - A server that runs as root makes a mount and a PID namespace. Its bodies run as another user.
//! - Any other server needs a user namespace to be allowed that. Its bodies keep the server's user,
//!   so the covers and the PID namespace are what separates them from the server.
//!
//! A body can't undo the covers: it has no capability in the namespace that owns them, and the kernel
//! locks them in every namespace that the body makes for itself.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use nix::sched::{CloneFlags, unshare};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_change, mount_remount,
};
use rustix::process::{
    DumpableBehavior, Signal, chdir, getegid, geteuid, getpid, kill_process, set_dumpable_behavior,
    set_parent_process_death_signal, setsid,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, set_capabilities,
};
use serde::{Deserialize, Serialize};

use super::EXIT_BROKEN;
use super::body::BodiesLock;
use super::exec::complain;
use super::protocol::Reply;

/// Marks the command line of a builder; the [`Wall`] as JSON follows.
pub(crate) const WALL: &str = "--wall";

/// Marks the command line of a supervisor that a builder has started.
pub(super) const INSIDE: &str = "--inside";

/// What a body is kept from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Wall {
    /// Directories and files that are covered. The first is a directory; those that do not exist
    /// are passed over.
    pub(crate) hidden: Vec<PathBuf>,
    /// The file to hold a shared lock on. The supervisor inside can't see it.
    pub(crate) bodies_lock: Option<PathBuf>,
}

/// Splits a command line into what comes before the mark and the wall, if the mark is there.
pub(super) fn wall_argument(args: &[OsString]) -> Option<(&[OsString], &OsString)> {
    let mark = args.iter().position(|arg| arg == WALL)?;
    Some((&args[..mark], args.get(mark + 1)?))
}

/// Builds the wall, starts the supervisor behind it and returns its exit code.
pub(super) fn build_and_wait(own_args: &[OsString], wall: &OsString) -> u8 {
    match start_inside(own_args, wall) {
        Ok((mut child, _lock)) => match child.wait().map(|status| status.code()) {
            Ok(Some(code)) => u8::try_from(code).unwrap_or(EXIT_BROKEN),
            // The node has to see a supervisor that was killed as one.
            Ok(None) => {
                let _ = kill_process(getpid(), Signal::KILL);
                EXIT_BROKEN
            }
            Err(error) => refuse(&format!("its supervisor was lost: {error}")),
        },
        Err(error) => refuse(&format!("the wall around it can't be built: {error}")),
    }
}

/// The supervisor, and the lock to hold until it has ended. The supervisor and the body inherit a
/// second hold on the lock.
fn start_inside(own_args: &[OsString], wall: &OsString) -> io::Result<(Child, Option<BodiesLock>)> {
    // As in a supervisor: out of the terminal's reach.
    let _ = setsid();
    let wall: Wall = serde_json::from_slice(wall.as_encoded_bytes())?;
    // A process that stays in a directory sees what a cover hides there.
    chdir("/")?;
    let lock = wall.bodies_lock.as_deref().map(BodiesLock::hold).transpose();
    let lock = lock.map_err(|error| told("the lock of bodies", &error))?;
    enter_namespaces()?;
    hide(&wall.hidden)?;
    let child = Command::new("/proc/self/exe").args(own_args).arg(INSIDE).env_clear().spawn()?;
    // Not before: the files by which a user namespace is described belong to root then.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok((child, lock))
}

fn enter_namespaces() -> io::Result<()> {
    let (uid, gid) = (geteuid(), getegid());
    let mut spaces = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
    if !uid.is_root() {
        spaces |= CloneFlags::CLONE_NEWUSER;
    }
    unshare(spaces).map_err(|error| told("namespaces", &error.into()))?;
    if !uid.is_root() {
        // Everybody keeps the number they have outside; nobody else exists inside.
        let one = |id: u32| format!("{id} {id} 1");
        for (file, text) in [
            ("/proc/self/setgroups", "deny".to_owned()),
            ("/proc/self/uid_map", one(uid.as_raw())),
            ("/proc/self/gid_map", one(gid.as_raw())),
        ] {
            fs::write(file, text).map_err(|error| told(file, &error))?;
        }
        keep_for_the_supervisor(CapabilitySet::SYS_ADMIN)
            .map_err(|error| told("its capability", &error))?;
    }
    // What is mounted outside later appears inside; nothing that is mounted inside appears outside.
    let downstream = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", downstream).map_err(|error| told("the mounts", &error.into()))
}

/// Without this, a user other than root has no capability after the next `exec`. The supervisor
/// needs one to mount `/proc`, and gives it up then.
fn keep_for_the_supervisor(capability: CapabilitySet) -> io::Result<()> {
    let own = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: capability, ..own })?;
    Ok(configure_capability_in_ambient_set(capability, true)?)
}

/// Covers each path with the same empty, read-only file system.
fn hide(paths: &[PathBuf]) -> io::Result<()> {
    let Some((first, others)) = paths.split_first() else { return Ok(()) };
    let failed = |path: &Path, error: io::Error| told(&path.display().to_string(), &error);
    let harmless = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("none", first, "tmpfs", harmless, Some(c"size=4k,nr_inodes=4,mode=0555"))
        .map_err(|error| failed(first, error.into()))?;
    let nothing = first.join("hidden");
    File::options().write(true).create_new(true).mode(0o000).open(&nothing)?;
    for path in others {
        let cover = match fs::metadata(path) {
            Ok(found) if found.is_dir() => first,
            Ok(_) => &nothing,
            // It is not there, or inside a directory that is covered, or nothing to this user.
            Err(_) => continue,
        };
        mount_bind(cover, path).map_err(|error| failed(path, error.into()))?;
    }
    mount_remount(first, harmless | MountFlags::RDONLY, "")
        .map_err(|error| failed(first, error.into()))
}

/// What the supervisor does first behind the wall. Afterwards it has no capability, unless it is
/// root, and nobody but root can look into it.
pub(super) fn settle_inside() -> io::Result<()> {
    let harmless = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", harmless, None).map_err(|error| told("/proc", &error.into()))?;
    if !geteuid().is_root() {
        clear_ambient_capability_set()?;
        let none = CapabilitySet::empty();
        set_capabilities(
            None,
            CapabilitySets { effective: none, permitted: none, inheritable: none },
        )?;
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // If the builder is gone already, the node is told of that, and closes the control socket.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

fn told(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Tells the node, or standard error if there is no node to talk to.
pub(super) fn refuse(error: &str) -> u8 {
    let node = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map(File::from);
    let line = serde_json::to_vec(&Reply::Failed { error: error.to_owned() });
    let sent = node.ok().zip(line.ok()).is_some_and(|(mut node, mut line)| {
        line.push(b'\n');
        node.write_all(&line).is_ok()
    });
    if !sent {
        complain(error);
    }
    EXIT_BROKEN
}
