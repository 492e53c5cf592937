//! Checks whether programs can have control groups (cgroup v2), and removes control groups that
//! earlier processes of this node left behind.

use std::fmt;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{Access, access};
use rustix::process::getpid;

use super::settings::{CgroupUse, ShellSettings};
use crate::supervisor::{Group, GroupSpec, millis, monotonic_ms};

/// Prefix of the names of all control groups that nodes create.
const NAME: &str = "evenkeel-";

/// Name of the control group to which the node moves itself, because the kernel cannot limit child
/// groups of a group that has processes.
const NODE: &str = "evenkeel-node";

/// Maximum time to wait for killed programs that an earlier process of this node left running.
const PATIENCE: Duration = Duration::from_secs(2);

/// How the processes of a program are kept together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Containment {
    /// Each program has a separate control group below `parent`.
    Cgroup {
        /// The control group in which the node creates the groups of programs.
        parent: PathBuf,
        /// True if `limits.memory_mb` applies to all processes of a program together.
        memory: bool,
        /// True if `limits.processes` applies to all processes of a program together.
        processes: bool,
    },
    /// Each program has a supervisor process that tracks its descendants, and no control group.
    ProcessTree {
        /// Why control groups are not available.
        reason: String,
    },
}

impl fmt::Display for Containment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cgroup { parent, memory, processes } => {
                write!(f, "programs run in control groups of their own in {}", parent.display())?;
                match (memory, processes) {
                    (true, true) => Ok(()),
                    (false, true) => f.write_str(", which can't limit memory"),
                    (true, false) => f.write_str(", which can't limit processes"),
                    (false, false) => f.write_str(", which can't limit memory or processes"),
                }
            }
            Self::ProcessTree { reason } => {
                write!(f, "programs run without control groups of their own: {reason}")
            }
        }
    }
}

/// The error if control groups are [`CgroupUse::Required`] but not available.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("programs can't have control groups of their own, as is required: {reason}")]
pub struct NoCgroup {
    pub reason: String,
}

/// Names the control groups of programs, and knows whether programs have control groups.
#[derive(Debug)]
pub(super) struct Groups {
    containment: Containment,
    required: bool,
    prefix: String,
    made: AtomicU64,
}

impl Groups {
    /// Checks whether the node can create control groups, and ends programs that an earlier process
    /// of this node left in its control groups.
    pub(super) fn find(settings: &ShellSettings) -> Result<Self, NoCgroup> {
        let prefix = prefix(settings.bodies_lock.as_deref());
        let found = match settings.cgroup {
            CgroupUse::Off => Err("they are turned off".into()),
            CgroupUse::Auto | CgroupUse::Required => {
                own_group().and_then(|own| usable(own, &prefix))
            }
        };
        let required = settings.cgroup == CgroupUse::Required;
        let containment = match found {
            Err(reason) if required => return Err(NoCgroup { reason }),
            Err(reason) => Containment::ProcessTree { reason },
            Ok(containment) => containment,
        };
        if let (Containment::Cgroup { parent, .. }, Some(_)) = (&containment, &settings.bodies_lock)
        {
            // Supervisors that outlived the earlier process of this node are about to end their
            // programs, so the node waits for these supervisors.
            end_leftovers(parent, &prefix, settings.kill_grace + Duration::from_millis(500));
        }
        Ok(Self { containment, required, prefix, made: AtomicU64::new(0) })
    }

    pub(super) const fn containment(&self) -> &Containment {
        &self.containment
    }

    /// Returns the name of a new control group for a program.
    pub(super) fn next(&self, execution: &impl fmt::Display) -> Option<GroupSpec> {
        let Containment::Cgroup { parent, .. } = &self.containment else { return None };
        let n = self.made.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{}{n}-{execution}", self.prefix));
        Some(GroupSpec { path, required: self.required })
    }
}

/// Returns the prefix of this node's control groups, which is the same after every restart.
fn prefix(bodies_lock: Option<&Path>) -> String {
    static NAMELESS: AtomicU64 = AtomicU64::new(0);
    let folder = bodies_lock.and_then(Path::parent).and_then(|folder| {
        let inode = fs::metadata(folder).ok()?;
        Some((fs::canonicalize(folder).ok()?, inode.dev(), inode.ino()))
    });
    match folder {
        Some((path, dev, ino)) => {
            let path = path.as_os_str().as_bytes();
            let name = fnv([path, &dev.to_le_bytes(), &ino.to_le_bytes()].concat());
            format!("{NAME}{name:016x}-")
        }
        // Without a lock file, a restarted node cannot find and remove its old control groups.
        None => {
            let n = NAMELESS.fetch_add(1, Ordering::Relaxed);
            format!("{NAME}p{}.{n}-", getpid().as_raw_nonzero())
        }
    }
}

/// FNV-1a. This hash must not change between versions, because a restarted node finds its old
/// control groups by this hash.
fn fnv(bytes: Vec<u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the directory of the control group that this process is in.
fn own_group() -> Result<PathBuf, String> {
    let read = |file: &str| fs::read_to_string(file).map_err(|error| format!("{file}: {error}"));
    let own = read("/proc/self/cgroup")?;
    let own = own
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .ok_or("this system has no cgroup v2")?;
    let mounts = read("/proc/self/mountinfo")?;
    let folder =
        folder_of(own, &mounts).ok_or("cgroup v2 is not mounted where this node sees it")?;
    // The node is already in the control group `evenkeel-node` if it created an executor before.
    let is_moved = folder.file_name().is_some_and(|name| name == NODE);
    Ok(if is_moved { folder.parent().map(Path::to_owned).unwrap_or(folder) } else { folder })
}

/// Returns the directory of a control group in the file system.
fn folder_of(group: &str, mounts: &str) -> Option<PathBuf> {
    if group.split('/').any(|step| step == "..") {
        return None;
    }
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut words = mount.split(' ').skip(3);
        let (root, point) = (words.next()?, words.next()?);
        let inside = Path::new(group).strip_prefix(root).ok()?;
        // The path is joined by components, so that the path of the root control group has no
        // trailing slash.
        kind.starts_with("cgroup2 ")
            .then(|| Path::new(point).components().chain(inside.components()).collect())
    })
}

/// Checks whether control groups can be created below `parent`, and enables their limits.
fn usable(parent: PathBuf, prefix: &str) -> Result<Containment, String> {
    let may_write = |path: &Path| {
        access(path, Access::WRITE_OK).map_err(|error| format!("{}: {error}", path.display()))
    };
    // Moving a process needs write access to the common parent of its old and new control group.
    may_write(&parent.join("cgroup.procs"))?;
    take_controllers(&parent);
    let path = parent.join(format!("{prefix}probe"));
    let probe = Group::at(path.clone());
    probe.remove();
    Group::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let checked = may_write(&path.join("cgroup.procs"))
        .and_then(|()| may_write(&path.join("cgroup.kill")))
        .map(|()| (path.join("memory.max").exists(), path.join("pids.max").exists()));
    probe.remove();
    checked.map(|(memory, processes)| Containment::Cgroup { parent, memory, processes })
}

/// Enables limits for control groups below `parent`, unless this would affect other processes.
fn take_controllers(parent: &Path) {
    // The root control group belongs to the system, so it is not changed; only the root group has
    // no file `cgroup.type`.
    if !parent.join("cgroup.type").exists() {
        return;
    }
    let write = |path: PathBuf, text: &str| {
        fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
    };
    let read = |name: &str| fs::read_to_string(parent.join(name)).unwrap_or_default();
    let has = |list: &str, name: &str| list.split_ascii_whitespace().any(|word| word == name);
    let (there, taken) = (read("cgroup.controllers"), read("cgroup.subtree_control"));
    for name in ["memory", "pids"] {
        if !has(&there, name) || has(&taken, name) {
            continue;
        }
        let take = || write(parent.join("cgroup.subtree_control"), &format!("+{name}"));
        // Enabling limits fails while the control group has processes. If the node is the only
        // process in its control group, it moves to a child group.
        let own = getpid().as_raw_nonzero().to_string();
        if take().is_err() && read("cgroup.procs").trim() == own {
            let node = parent.join(NODE);
            let _ = fs::create_dir(&node);
            // If the node cannot move to a child group, control groups have no limits, and
            // `Containment` reports that.
            let _ = write(node.join("cgroup.procs"), "0").and_then(|()| take());
        }
    }
}

/// Ends programs that earlier processes of this node left behind, and removes their control groups.
fn end_leftovers(parent: &Path, prefix: &str, grace: Duration) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let deadline = monotonic_ms().saturating_add(millis(grace));
    let leftovers: Vec<Group> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix)))
        .map(|entry| Group::at(entry.path()))
        .collect();
    for group in &leftovers {
        let left = deadline.saturating_sub(monotonic_ms());
        if !group.wait_until_empty(Duration::from_millis(left)) {
            // Killing fails if the control group was just removed.
            let _ = group.kill();
        }
    }
    let deadline = monotonic_ms().saturating_add(millis(PATIENCE));
    for group in leftovers {
        // A process that cannot be killed keeps the lock on the lock file, and the node later waits
        // for that lock.
        group.end(Duration::from_millis(deadline.saturating_sub(monotonic_ms())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        24 1 0:22 / /sys rw,nosuid - sysfs sysfs rw\n\
        31 24 0:27 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";

    #[test]
    fn own_group_is_found_below_its_mount() {
        let folder = |group, mounts: &str| folder_of(group, mounts);
        let unified = Path::new("/sys/fs/cgroup/unified");
        assert_eq!(folder("/", MOUNTS), Some(unified.to_owned()));
        assert_eq!(folder("/a.slice/b.service", MOUNTS), Some(unified.join("a.slice/b.service")));
        let container = MOUNTS.replace("0:27 /", "0:27 /a.slice");
        assert_eq!(folder("/a.slice/b.service", &container), Some(unified.join("b.service")));
        assert_eq!(folder("/b.slice", &container), None);
        assert_eq!(folder("/../b.slice", MOUNTS), None);
        assert_eq!(folder("/", "24 1 0:22 / /sys rw,nosuid - sysfs sysfs rw\n"), None);
    }

    #[test]
    fn group_names_of_a_node_survive_restarts() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let name = |folder: &tempfile::TempDir| prefix(Some(&folder.path().join("bodies.lock")));
        assert_eq!(name(&one), name(&one));
        assert_ne!(name(&one), name(&two));
        assert_ne!(prefix(None), prefix(None));
    }
}
