//! Starts the program that an attempt runs. The code calls the program of an attempt the body.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, MemfdFlags, flock, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, getpid};

use super::exec::{EXEC, Prelude, prefixed, print_error};
use super::group::Group;
use super::protocol::Spec;

pub(super) struct Body {
    /// The process id of the program's main process, which leads a process group.
    pub(super) pid: Pid,
    /// The control group of all processes of the program.
    pub(super) group: Option<Group>,
}

impl Body {
    /// Starts the program of an attempt. The calling thread must live as long as the program,
    /// because the kernel ends the program with the *thread* that started it.
    pub(super) fn start(spec: &Spec, own_args: Vec<OsString>) -> io::Result<Self> {
        let group = match &spec.group {
            None => None,
            Some(wanted) => match Group::create(&wanted.path) {
                Ok(group) => Some(group),
                Err(error) if wanted.required => {
                    let message = format!("the control group can't be made: {error}");
                    return Err(io::Error::new(error.kind(), message));
                }
                Err(error) => {
                    print_error(&format!(
                        "running without a control group, which can't be made: {error}"
                    ));
                    None
                }
            },
        };
        let prelude = Prelude {
            supervisor: getpid().as_raw_nonzero().get(),
            group: group.as_ref().and(spec.group.clone()),
            user: spec.user.clone(),
            cwd: spec.cwd.clone(),
            limits: group.as_ref().map_or(spec.limits, |group| group.limit(spec.limits)),
            limits_alone: spec.limits,
        };
        match spawn(spec, own_args, &prelude) {
            Ok(pid) => Ok(Self { pid, group }),
            Err(error) => {
                if let Some(group) = group {
                    group.remove();
                }
                Err(error)
            }
        }
    }
}

fn spawn(spec: &Spec, own_args: Vec<OsString>, prelude: &Prelude) -> io::Result<Pid> {
    // Starts the supervisor's executable by the path `/proc/self/exe`, because an update may have
    // replaced the file at its real path.
    let mut command = Command::new("/proc/self/exe");
    command
        .args(own_args)
        .args([EXEC, &serde_json::to_string(prelude)?, "--"])
        .args(&spec.argv)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (prefixed(name), value)))
        .stdin(payload(spec.payload.as_deref())?)
        .process_group(0);
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::other("the process has no id"))
}

/// Returns the standard input of the program as a file in memory. Unlike a pipe, a file needs no
/// process that writes to it while the program reads.
fn payload(payload: Option<&str>) -> io::Result<Stdio> {
    let Some(payload) = payload else { return Ok(Stdio::null()) };
    let mut file = File::from(memfd_create("payload", MemfdFlags::CLOEXEC)?);
    file.write_all(payload.as_bytes())?;
    file.rewind()?;
    Ok(Stdio::from(file))
}

/// Takes the shared lock that a supervisor holds while its program runs, or fails immediately if
/// another process holds the lock exclusively. The lock is held until both returned files are
/// closed. Programs inherit the second file, so the lock stays held if the supervisor is killed
/// while processes of its program still run.
pub(super) fn hold_lock(path: &Path) -> io::Result<[File; 2]> {
    let own = File::options().create(true).read(true).append(true).open(path)?;
    // Programs, which may run as other users, inherit this lock file, so it is opened read-only.
    let inherited = File::open(path)?;
    for file in [&own, &inherited] {
        flock(file, FlockOperation::NonBlockingLockShared)?;
    }
    fcntl_setfd(&inherited, FdFlags::empty())?;
    Ok([own, inherited])
}
