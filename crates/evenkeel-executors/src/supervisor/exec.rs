//! Turns a new process into the program of an attempt: sets control group, user, working directory
//! and limits, and then executes the program.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::prctl::set_thp_disable;
use nix::unistd::{Gid, Uid, User, getgrouplist, setgroups, setresgid, setresuid};
use rustix::fs::fchown;
use rustix::process::{Pid, Signal, chdir, getppid, set_parent_process_death_signal};
use rustix::stdio::{stderr, stdout};
use serde::{Deserialize, Serialize};

use super::group::Group;
use super::limits::Limits;
use super::protocol::GroupSpec;
use super::{EXIT_ABANDONED, EXIT_BROKEN};

/// Argument of a process that is about to become the program of an attempt.
pub(super) const EXEC: &str = "--exec";

/// Prefix of the program's environment variables until the program starts. Without the prefix, a
/// variable such as `LD_PRELOAD` would also affect the process that prepares the start and may
/// still run as root.
const VARIABLE: &str = "EVENKEEL_BODY_ENV:";

/// A value of `cwd` that stands for the home directory of the program's user, or `/` if that
/// directory does not exist.
pub(crate) const HOME: &str = "~";

/// The settings that a new process applies to itself before it becomes the program of an attempt.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Prelude {
    /// The process id of the supervisor, which must still be the parent of this process.
    pub(super) supervisor: i32,
    pub(super) group: Option<GroupSpec>,
    /// A user name or a user number.
    pub(super) user: Option<String>,
    /// The working directory: an absolute path or [`HOME`], or `None` for `/`.
    pub(super) cwd: Option<PathBuf>,
    /// Resource limits that the control group of the program does not enforce.
    pub(super) limits: Limits,
    /// Resource limits to apply if the process cannot join its control group.
    pub(super) limits_alone: Limits,
}

pub(super) fn prefixed(name: &str) -> String {
    format!("{VARIABLE}{name}")
}

fn unprefixed(name: &OsStr) -> Option<OsString> {
    let name = name.as_bytes().strip_prefix(VARIABLE.as_bytes())?;
    Some(OsString::from_vec(name.to_vec()))
}

/// Returns the arguments after `--exec`: the prelude, `--` and the program's argv.
pub(super) fn exec_arguments(args: &[OsString]) -> Option<&[OsString]> {
    let mark = args.iter().position(|arg| arg == EXEC)?;
    Some(&args[mark + 1..])
}

/// Replaces this process by the program of the attempt. Returns only if the program cannot start,
/// with the exit code for this process.
pub(super) fn become_body(args: &[OsString]) -> u8 {
    let broken = |message: &str| {
        print_error(message);
        EXIT_BROKEN
    };
    let [prelude, _dashes, program, args @ ..] = args else {
        return broken("the command line of a body is incomplete");
    };
    let prelude: Prelude = match serde_json::from_slice(prelude.as_bytes()) {
        Ok(prelude) => prelude,
        Err(error) => {
            return broken(&format!("the command line of a body can't be read: {error}"));
        }
    };
    let mut command = Command::new(program);
    command.args(args).env_clear();
    command.envs(std::env::vars_os().filter_map(|(name, value)| Some((unprefixed(&name)?, value))));
    match prelude.apply(&mut command) {
        Ok(true) => {}
        Ok(false) => return EXIT_ABANDONED,
        Err(message) => return broken(&message),
    }
    let error = command.exec();
    print_error(&format!("{} can't be started: {error}", program.to_string_lossy()));
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

impl Prelude {
    /// Applies the settings to this process. Returns false if the supervisor has ended.
    fn apply(&self, command: &mut Command) -> Result<bool, String> {
        if !self.end_with_supervisor()? {
            return Ok(false);
        }
        // The allocator of Evenkeel switches huge pages off for its process and all descendants. The
        // call fails on kernels without this setting, where there is nothing to switch on again.
        let _ = set_thp_disable(false);
        let mut limits = self.limits;
        if let Some(group) = &self.group
            && let Err(error) = Group::at(group.path.clone()).join()
        {
            if group.required {
                return Err(format!("the control group can't be joined: {error}"));
            }
            print_error(&format!(
                "running without a control group, which can't be joined: {error}"
            ));
            limits = self.limits_alone;
        }
        let user = match &self.user {
            Some(user) => {
                let known = become_user(user).map_err(|error| format!("user {user}: {error}"))?;
                // The kernel clears the parent death signal when a process changes its user.
                if !self.end_with_supervisor()? {
                    return Ok(false);
                }
                known
            }
            None => User::from_uid(Uid::effective()).ok().flatten(),
        };
        // Enters the directory as the program's user, so that the kernel checks this user's access.
        let cwd = self.folder(user.as_ref());
        chdir(cwd).map_err(|error| format!("cwd {} can't be entered: {error}", cwd.display()))?;
        if let Some(user) = user {
            set_login_variables(user, command);
        }
        limits.apply().map_err(|error| format!("the limits can't be set: {error}"))?;
        Ok(true)
    }

    /// Returns the working directory of the program. Programs never inherit the server's working
    /// directory, because it could be any directory.
    fn folder<'a>(&'a self, user: Option<&'a User>) -> &'a Path {
        const ROOT: &str = "/";
        match self.cwd.as_deref() {
            None => Path::new(ROOT),
            Some(cwd) if cwd == Path::new(HOME) => match user {
                Some(user) if user.dir.is_dir() => &user.dir,
                _ => Path::new(ROOT),
            },
            Some(cwd) => cwd,
        }
    }

    /// Asks the kernel to kill this process when its supervisor ends. Returns false if the
    /// supervisor has already ended.
    fn end_with_supervisor(&self) -> Result<bool, String> {
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| format!("the process can't be tied to its supervisor: {error}"))?;
        Ok(getppid() == Pid::from_raw(self.supervisor))
    }
}

/// Switches this process to a user and gives up all rights that the user does not have. The groups
/// are set before the user, because only root can change groups. Returns the user's entry in the
/// user database, or `None` if there is no entry.
fn become_user(name: &str) -> io::Result<Option<User>> {
    // The kernel takes the highest user number as "no change", so this process would stay root.
    let number = name.parse().ok().filter(|uid| *uid != u32::MAX).map(Uid::from_raw);
    let known = match number {
        Some(uid) => User::from_uid(uid)?,
        None => User::from_name(name)?,
    };
    let (uid, gid, groups) = match (&known, number) {
        (Some(user), _) => {
            let login = CString::new(user.name.as_str())?;
            (user.uid, user.gid, getgrouplist(&login, user.gid)?)
        }
        // In many containers a user number has no entry in the user database.
        (None, Some(uid)) => (uid, Gid::from_raw(uid.as_raw()), Vec::new()),
        (None, None) => {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such user"));
        }
    };
    // The program can open /dev/stdout and /dev/stderr only if its user owns them. Errors are
    // ignored, because some files refuse a new owner.
    for pipe in [stdout(), stderr()] {
        let _ = fchown(pipe, Some(rustix::process::Uid::from_raw(uid.as_raw())), None);
    }
    setgroups(&groups)?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    Ok(known)
}

/// Sets `HOME`, `USER` and `LOGNAME`, unless the job has set them.
fn set_login_variables(user: User, command: &mut Command) {
    let home = user.dir.into_os_string();
    let login = OsString::from(user.name);
    for (name, value) in [("HOME", home), ("USER", login.clone()), ("LOGNAME", login)] {
        if command.get_envs().all(|(set, _)| set != name) {
            command.env(name, value);
        }
    }
}

/// Prints a message of Evenkeel to the standard error of the program.
pub(super) fn print_error(message: &str) {
    let _ = writeln!(io::stderr(), "evenkeel: {message}");
}
