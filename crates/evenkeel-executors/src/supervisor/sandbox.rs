//! The sandbox of a program: namespaces in which the program sees neither the server's files nor
//! other processes.
//!
//! Only a process that starts in a new PID namespace belongs to that namespace, so a sandbox needs
//! two processes. The first process, the *sandbox builder*, holds the lock file, creates the
//! namespaces and covers the hidden paths. The sandbox builder then starts the supervisor, which is
//! process 1 of the PID namespace, and waits for it. When process 1 of a PID namespace ends, the
//! kernel kills all other processes of the namespace, whatever their user.
//!
//! - A server that runs as root creates a mount namespace and a PID namespace. The sandboxed
//!   programs of a server that runs as root run as another user.
//! - A server that does not run as root also needs a user namespace. Its programs run as the
//!   server's user, so only the covered paths and the PID namespace separate the programs from the
//!   server.
//!
//! A program cannot remove the covers of hidden paths, because it has no capability in the
//! namespace that owns these mounts. The kernel also locks the covers in every namespace that the
//! program creates.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
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
use super::body::hold_lock;
use super::exec::print_error;
use super::protocol::Reply;

/// Argument of a sandbox builder. The [`Sandbox`] follows as JSON.
pub(crate) const SANDBOX: &str = "--sandbox";

/// Argument of a supervisor that a sandbox builder has started.
pub(super) const INSIDE: &str = "--inside";

/// Mount options that ignore set-user-ID bits and device files, and forbid executing files.
const HARMLESS: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);

/// The paths that a sandbox hides from a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sandbox {
    /// Directories and files to hide. The first of the hidden paths must be a directory, and other
    /// paths that are missing are skipped.
    pub(crate) hidden: Vec<PathBuf>,
    /// The lock file, which the supervisor inside the sandbox cannot see.
    pub(crate) bodies_lock: Option<PathBuf>,
}

/// Returns the arguments before `--sandbox`, and the argument after it: a [`Sandbox`] as JSON.
pub(super) fn sandbox_argument(args: &[OsString]) -> Option<(&[OsString], &OsString)> {
    let mark = args.iter().position(|arg| arg == SANDBOX)?;
    Some((&args[..mark], args.get(mark + 1)?))
}

/// Sets up the sandbox, runs the supervisor in it and returns the supervisor's exit code.
pub(super) fn build_and_wait(own_args: &[OsString], sandbox: &OsString) -> u8 {
    match start_inside(own_args, sandbox) {
        Ok((mut child, _lock)) => match child.wait().map(|status| status.code()) {
            Ok(Some(code)) => u8::try_from(code).unwrap_or(EXIT_BROKEN),
            // A signal ended the supervisor, so the sandbox builder ends itself by SIGKILL, so that
            // the node sees a similar status.
            Ok(None) => {
                let _ = kill_process(getpid(), Signal::KILL);
                EXIT_BROKEN
            }
            Err(error) => refuse(&format!("the supervisor was lost: {error}")),
        },
        Err(error) => refuse(&format!("the sandbox can't be set up: {error}")),
    }
}

/// Starts the supervisor inside the sandbox. Returns the supervisor's process and the lock files,
/// which the caller keeps open until the supervisor ends. The supervisor and the program inherit
/// one of the lock files.
fn start_inside(
    own_args: &[OsString],
    sandbox: &OsString,
) -> io::Result<(Child, Option<[File; 2]>)> {
    // The sandbox builder leaves the terminal, as a supervisor without a sandbox does.
    let _ = setsid();
    let sandbox: Sandbox = serde_json::from_slice(sandbox.as_encoded_bytes())?;
    // A process whose working directory is hidden would still see the files in this directory.
    chdir("/")?;
    let lock = sandbox.bodies_lock.as_deref().map(hold_lock).transpose();
    let lock = lock.map_err(at("the lock file of programs"))?;
    enter_namespaces()?;
    hide(&sandbox.hidden)?;
    let child = Command::new("/proc/self/exe").args(own_args).arg(INSIDE).env_clear().spawn()?;
    // The sandbox builder becomes undumpable only after it has set up the user namespace, because
    // the `/proc` files of an undumpable process belong to root.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok((child, lock))
}

fn enter_namespaces() -> io::Result<()> {
    let (uid, gid) = (geteuid(), getegid());
    let mut spaces = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
    if !uid.is_root() {
        spaces |= CloneFlags::CLONE_NEWUSER;
    }
    unshare(spaces).map_err(at("namespaces"))?;
    if !uid.is_root() {
        // The user and the group keep their numbers, and the user namespace has no other users.
        let one = |id: u32| format!("{id} {id} 1");
        for (file, text) in [
            ("/proc/self/setgroups", "deny".to_owned()),
            ("/proc/self/uid_map", one(uid.as_raw())),
            ("/proc/self/gid_map", one(gid.as_raw())),
        ] {
            fs::write(file, text).map_err(at(file))?;
        }
        keep_for_the_supervisor(CapabilitySet::SYS_ADMIN).map_err(at("its capability"))?;
    }
    // Later mounts of the host appear inside the mount namespace, but mounts inside the namespace
    // never appear on the host.
    let downstream = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", downstream).map_err(at("the mounts"))
}

/// Keeps a capability over the next `exec`, which otherwise drops all capabilities of users other
/// than root. The supervisor needs the capability to mount `/proc`, and then gives it up.
fn keep_for_the_supervisor(capability: CapabilitySet) -> io::Result<()> {
    let own = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: capability, ..own })?;
    Ok(configure_capability_in_ambient_set(capability, true)?)
}

/// Hides all paths by covering them with one read-only file system without content.
fn hide(paths: &[PathBuf]) -> io::Result<()> {
    let Some((first, others)) = paths.split_first() else { return Ok(()) };
    mount("none", first, "tmpfs", HARMLESS, Some(c"size=4k,nr_inodes=4,mode=0555"))
        .map_err(at(first.display()))?;
    let nothing = first.join("hidden");
    File::options().write(true).create_new(true).mode(0o000).open(&nothing)?;
    for path in others {
        let cover = match fs::metadata(path) {
            Ok(found) if found.is_dir() => first,
            Ok(_) => &nothing,
            // Skips a path that is missing, inside a hidden directory, or not accessible.
            Err(_) => continue,
        };
        mount_bind(cover, path).map_err(at(path.display()))?;
    }
    mount_remount(first, HARMLESS | MountFlags::RDONLY, "").map_err(at(first.display()))
}

/// Mounts `/proc` for the supervisor inside the sandbox and gives up capabilities. After this call,
/// only a supervisor that runs as root has capabilities, and only root can inspect the supervisor.
pub(super) fn prepare_inside() -> io::Result<()> {
    mount("proc", "/proc", "proc", HARMLESS, None).map_err(at("/proc"))?;
    if !geteuid().is_root() {
        clear_ambient_capability_set()?;
        let [effective, permitted, inheritable] = [CapabilitySet::empty(); 3];
        set_capabilities(None, CapabilitySets { effective, permitted, inheritable })?;
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // If the sandbox builder has already ended, the node closes the control socket.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// Adds to an error the name of the step that failed.
fn at<E: Into<io::Error>>(what: impl fmt::Display) -> impl FnOnce(E) -> io::Error {
    move |error| {
        let error = error.into();
        io::Error::new(error.kind(), format!("{what}: {error}"))
    }
}

/// Reports an error to the node, or to standard error if there is no node.
pub(super) fn refuse(error: &str) -> u8 {
    let node = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map(File::from);
    let reply = Reply::Failed { error: error.to_owned() };
    if !node.is_ok_and(|mut node| reply.send(&mut node).is_ok()) {
        print_error(error);
    }
    EXIT_BROKEN
}
