//! Starting a body.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, MemfdFlags, flock, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

use super::protocol::Spec;

/// Marks the command line of a process that is about to become a body.
const EXEC: &str = "--exec";

/// A running body.
pub(super) struct Body {
    /// Its main process, which leads a group of its own.
    pub(super) pid: Pid,
}

impl Body {
    /// Starts it. Must be called on a thread that lives as long as the body may: the kernel ends
    /// the body with the *thread* that started it.
    pub(super) fn start(spec: &Spec, own_args: Vec<OsString>) -> io::Result<Self> {
        // Not the path of this program, which an update may have replaced.
        let mut command = Command::new("/proc/self/exe");
        command
            .args(own_args)
            .args([EXEC, &getpid().as_raw_nonzero().to_string(), "--"])
            .args(&spec.argv)
            .env_clear()
            .envs(&spec.env)
            .stdin(payload(spec.payload.as_deref())?)
            .process_group(0);
        if let Some(cwd) = &spec.cwd {
            command.current_dir(cwd);
        }
        let child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        pid.map(|pid| Self { pid }).ok_or_else(|| io::Error::other("it has no process id"))
    }
}

/// A file in memory needs nobody to feed it, as a pipe would.
fn payload(payload: Option<&str>) -> io::Result<Stdio> {
    let Some(payload) = payload else { return Ok(Stdio::null()) };
    let mut file = File::from(memfd_create("payload", MemfdFlags::CLOEXEC)?);
    file.write_all(payload.as_bytes())?;
    file.rewind()?;
    Ok(Stdio::from(file))
}

/// The shared lock that says that bodies run.
pub(super) struct BodiesLock {
    _own: File,
    _inherited: File,
}

impl BodiesLock {
    /// Takes it, at once or not at all. Bodies inherit a second hold on it, so that it outlasts a
    /// supervisor that was killed before its body's descendants were.
    pub(super) fn hold(path: &Path) -> io::Result<Self> {
        let open = || -> io::Result<File> {
            let file = File::options().create(true).append(true).open(path)?;
            flock(&file, FlockOperation::NonBlockingLockShared)?;
            Ok(file)
        };
        let (own, inherited) = (open()?, open()?);
        fcntl_setfd(&inherited, FdFlags::empty())?;
        Ok(Self { _own: own, _inherited: inherited })
    }
}

/// What follows the mark on a command line, if it is there: the supervisor's id, `--`, the argv.
pub(super) fn exec_arguments(args: &[OsString]) -> Option<&[OsString]> {
    let mark = args.iter().position(|arg| arg == EXEC)?;
    Some(&args[mark + 1..])
}

/// Becomes the body's program; returns an exit code only if that fails.
pub(super) fn become_body(args: &[OsString]) -> u8 {
    let [supervisor, _dashes, program, args @ ..] = args else {
        complain("the command line of a body is incomplete");
        return super::EXIT_BROKEN;
    };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        complain(&format!("the kernel does not tie it to its supervisor: {error}"));
        return super::EXIT_BROKEN;
    }
    // The supervisor may have died before the kernel was asked.
    let parent = getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if parent.as_deref() != supervisor.to_str() {
        return super::EXIT_ABANDONED;
    }
    let error = Command::new(program).args(args).exec();
    complain(&format!("{} can't be started: {error}", program.to_string_lossy()));
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

/// Says what is wrong where the body's own complaints go.
pub(super) fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "evenkeel: {message}");
}
