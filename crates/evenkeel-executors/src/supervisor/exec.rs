//! The last steps before a process is the body: all that only the process itself can do.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{Gid, Uid, User, getgrouplist, setgroups, setresgid, setresuid};
use rustix::fs::fchown;
use rustix::process::{Pid, Signal, chdir, getppid, set_parent_process_death_signal};
use rustix::stdio::{stderr, stdout};
use serde::{Deserialize, Serialize};

use super::group::Group;
use super::limits::Limits;
use super::protocol::GroupSpec;
use super::{EXIT_ABANDONED, EXIT_BROKEN};

/// Marks the command line of a process that is about to become a body.
pub(super) const EXEC: &str = "--exec";

/// The body's variables carry this before their names until the body is there: some of them would
/// change what this program does, and it may still be root.
const VARIABLE: &str = "EVENKEEL_BODY_ENV:";

/// A `cwd` that is the home of the user the body runs as, or `/` if there is no such folder.
pub(crate) const HOME: &str = "~";

/// What to do before the body's program takes over.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Prelude {
    /// The process to end with.
    pub(super) supervisor: i32,
    /// The group to join.
    pub(super) group: Option<GroupSpec>,
    /// Whom to become: a name or a number.
    pub(super) user: Option<String>,
    /// Where it starts: an absolute path or [`HOME`]; `/` if `None`.
    pub(super) cwd: Option<PathBuf>,
    /// What it may use, besides what its group is bound to.
    pub(super) limits: Limits,
    /// What it may use if it has no group after all.
    pub(super) limits_alone: Limits,
}

/// A variable of the body, for the environment of the process that becomes it.
pub(super) fn veiled(name: &str) -> String {
    format!("{VARIABLE}{name}")
}

fn unveiled(name: &OsStr) -> Option<OsString> {
    let name = name.as_bytes().strip_prefix(VARIABLE.as_bytes())?;
    Some(OsString::from_vec(name.to_vec()))
}

/// What follows the mark on a command line, if it is there: the prelude, `--`, the argv.
pub(super) fn exec_arguments(args: &[OsString]) -> Option<&[OsString]> {
    let mark = args.iter().position(|arg| arg == EXEC)?;
    Some(&args[mark + 1..])
}

/// Becomes the body's program; returns an exit code only if that fails.
pub(super) fn become_body(args: &[OsString]) -> u8 {
    let [prelude, _dashes, program, args @ ..] = args else {
        complain("the command line of a body is incomplete");
        return EXIT_BROKEN;
    };
    let prelude: Prelude = match serde_json::from_slice(prelude.as_bytes()) {
        Ok(prelude) => prelude,
        Err(error) => {
            complain(&format!("the command line of a body can't be read: {error}"));
            return EXIT_BROKEN;
        }
    };
    let mut command = Command::new(program);
    command.args(args).env_clear();
    command.envs(std::env::vars_os().filter_map(|(name, value)| Some((unveiled(&name)?, value))));
    match prelude.act(&mut command) {
        Ok(true) => {}
        Ok(false) => return EXIT_ABANDONED,
        Err(message) => {
            complain(&message);
            return EXIT_BROKEN;
        }
    }
    let error = command.exec();
    complain(&format!("{} can't be started: {error}", program.to_string_lossy()));
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

impl Prelude {
    /// Does it; `false` if the supervisor is gone.
    fn act(&self, command: &mut Command) -> Result<bool, String> {
        if !self.end_with_supervisor()? {
            return Ok(false);
        }
        let mut limits = self.limits;
        if let Some(group) = &self.group
            && let Err(error) = Group::at(group.path.clone()).join()
        {
            if group.required {
                return Err(format!("its control group can't be joined: {error}"));
            }
            complain(&format!("it runs without a control group, its own can't be joined: {error}"));
            limits = self.limits_alone;
        }
        let user = match &self.user {
            Some(user) => {
                let known = become_user(user).map_err(|error| format!("user {user}: {error}"))?;
                // The kernel forgets that wish when a process changes its user.
                if !self.end_with_supervisor()? {
                    return Ok(false);
                }
                known
            }
            None => User::from_uid(Uid::effective()).ok().flatten(),
        };
        // As the user it runs as, who may not be let in everywhere.
        let cwd = self.folder(user.as_ref());
        chdir(cwd).map_err(|error| format!("cwd {} can't be entered: {error}", cwd.display()))?;
        if let Some(user) = user {
            introduce(user, command);
        }
        limits.apply().map_err(|error| format!("its limits can't be set: {error}"))?;
        Ok(true)
    }

    /// Where the body starts: never where the server was started, which may be anywhere.
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

    /// Asks the kernel to end this process with its supervisor; `false` if that is gone already.
    fn end_with_supervisor(&self) -> Result<bool, String> {
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| format!("the kernel does not tie it to its supervisor: {error}"))?;
        Ok(getppid() == Pid::from_raw(self.supervisor))
    }
}

/// Gives up everything that is not this user's: groups first, for it takes root to do so.
/// Returns what is known of the user.
fn become_user(name: &str) -> io::Result<Option<User>> {
    // The largest number means "nobody else" to the kernel, and would leave this process root.
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
        // A number that nobody has a name for, as in many containers.
        (None, Some(uid)) => (uid, Gid::from_raw(uid.as_raw()), Vec::new()),
        (None, None) => {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such user"));
        }
    };
    // So that the body can open /dev/stdout and /dev/stderr. They may be something that can't be
    // given away, and then it can't.
    for pipe in [stdout(), stderr()] {
        let _ = fchown(pipe, Some(rustix::process::Uid::from_raw(uid.as_raw())), None);
    }
    setgroups(&groups)?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    Ok(known)
}

/// Sets the variables that say whose process it is, unless the job has set them.
fn introduce(user: User, command: &mut Command) {
    let home = user.dir.into_os_string();
    let login = OsString::from(user.name);
    for (name, value) in [("HOME", home), ("USER", login.clone()), ("LOGNAME", login)] {
        if command.get_envs().all(|(set, _)| set != name) {
            command.env(name, value);
        }
    }
}

/// Says what is wrong where the body's own complaints go.
pub(super) fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "evenkeel: {message}");
}
