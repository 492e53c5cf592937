//! The control group (cgroup v2) of a program. A control group holds all processes of the program,
//! even processes that leave the process tree.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::limits::Limits;
use super::protocol::{millis, monotonic_ms};

/// Milliseconds between two checks whether a control group is empty, in case the kernel sends no
/// notification.
const LOOK_AGAIN_MS: u64 = 20;

/// Maximum depth of nested control groups that a program created inside its group.
const DEPTH_MAX: usize = 16;

/// A control group, which may no longer exist.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    path: PathBuf,
}

/// CPU time and memory that the processes of a control group have used, if the kernel counts them.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct GroupUsage {
    pub(super) cpu_us: Option<u64>,
    pub(super) memory_kb: Option<i64>,
    pub(super) out_of_memory: bool,
}

impl Group {
    pub(crate) const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        fs::create_dir(path)?;
        Ok(Self::at(path.to_owned()))
    }

    /// Sets the limits that the kernel can apply to the control group as a whole, and returns the
    /// limits that it cannot apply.
    pub(super) fn limit(&self, mut limits: Limits) -> Limits {
        if let Some(mb) = limits.memory_mb
            && self.write("memory.max", &mb.saturating_mul(1024 * 1024).to_string()).is_ok()
        {
            limits.memory_mb = None;
            // The control group gets no swap. At the memory limit, the kernel kills all processes
            // of the group, because a part of a program is useless. Write errors are ignored,
            // because old kernels do not have all of these settings.
            let _ = self.write("memory.swap.max", "0");
            let _ = self.write("memory.oom.group", "1");
        }
        if let Some(processes) = limits.processes
            && self.write("pids.max", &processes.to_string()).is_ok()
        {
            limits.processes = None;
        }
        limits
    }

    pub(super) fn join(&self) -> io::Result<()> {
        self.write("cgroup.procs", "0")
    }

    /// Sends SIGKILL to all processes in the control group at once, so that no process can escape
    /// by forking.
    pub(crate) fn kill(&self) -> io::Result<()> {
        self.write("cgroup.kill", "1")
    }

    /// True if the control group has no process, or does not exist.
    pub(crate) fn is_empty(&self) -> bool {
        self.wait_until_empty(Duration::ZERO)
    }

    /// Waits until the control group is empty. Returns false after `timeout`.
    pub(crate) fn wait_until_empty(&self, timeout: Duration) -> bool {
        let deadline = monotonic_ms().saturating_add(millis(timeout));
        let Ok(mut events) = File::open(self.path.join("cgroup.events")) else { return true };
        loop {
            if !is_populated(&mut events) {
                return true;
            }
            let left = deadline.saturating_sub(monotonic_ms());
            if left == 0 {
                return false;
            }
            let millis = i64::try_from(left.min(LOOK_AGAIN_MS)).unwrap_or(1);
            let wait = Timespec { tv_sec: 0, tv_nsec: millis * 1_000_000 };
            // The result of `poll` does not matter, because the loop then checks again whether the
            // control group is empty.
            let _ = poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&wait));
        }
    }

    /// Kills all processes of the control group, waits up to `timeout` and removes the group.
    /// Returns true if the control group no longer exists.
    pub(crate) fn end(&self, timeout: Duration) -> bool {
        if !self.is_empty() {
            // Killing fails if the control group was just removed.
            let _ = self.kill();
            self.wait_until_empty(timeout);
        }
        self.remove();
        !self.path.exists()
    }

    /// Removes the control group and the groups that the program created in it. A control group
    /// that still has processes is not removed.
    pub(crate) fn remove(&self) {
        remove(&self.path, DEPTH_MAX);
    }

    /// Returns the CPU time and memory of all processes of the control group, including ended
    /// processes.
    pub(super) fn usage(&self) -> GroupUsage {
        let number = |text: String| text.trim().parse::<u64>().ok();
        let memory = self.read("memory.peak").and_then(number);
        GroupUsage {
            cpu_us: self.read("cpu.stat").and_then(|stat| entry(&stat, "usage_usec")),
            memory_kb: memory.and_then(|bytes| i64::try_from(bytes / 1024).ok()),
            out_of_memory: self
                .read("memory.events")
                .and_then(|events| entry(&events, "oom_kill"))
                .is_some_and(|kills| kills > 0),
        }
    }

    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.path.join(file)).ok()
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.path.join(file))?.write_all(value.as_bytes())
    }
}

fn remove(path: &Path, depth: usize) {
    if fs::remove_dir(path).is_ok() || depth == 0 {
        return;
    }
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path(), depth - 1);
        }
    }
    // A restarted node removes old control groups that this function could not remove.
    let _ = fs::remove_dir(path);
}

fn is_populated(events: &mut File) -> bool {
    let mut text = String::new();
    // Reading fails once the control group is removed, and a removed group is empty.
    events.rewind().is_ok()
        && events.read_to_string(&mut text).is_ok()
        && entry(&text, "populated") == Some(1)
}

/// Returns the number after a name in a statistics file of the kernel.
fn entry(list: &str, name: &str) -> Option<u64> {
    list.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a directory with the files of a control group, which the test writes in place of the
    /// kernel.
    fn group(files: &[(&str, &str)]) -> (tempfile::TempDir, Group) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let group = Group::at(folder.path().to_owned());
        (folder, group)
    }

    #[test]
    fn group_takes_over_the_limits_it_can_enforce() {
        let other = Limits { cpu_seconds: Some(5), ..Limits::default() };
        let limits = Limits { memory_mb: Some(64), processes: Some(10), ..other };
        let (folder, all) =
            group(&[("memory.max", ""), ("memory.oom.group", ""), ("pids.max", "")]);
        assert_eq!(all.limit(limits), other);
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("memory.max"), "67108864");
        assert_eq!(read("memory.oom.group"), "1");
        assert_eq!(read("pids.max"), "10");
        let (_folder, none) = group(&[]);
        assert_eq!(none.limit(limits), limits);
    }

    #[test]
    fn group_usage_is_read_from_the_kernel_files() {
        let (_folder, counted) = group(&[
            ("cpu.stat", "usage_usec 1234\nuser_usec 1000\nsystem_usec 234\n"),
            ("memory.peak", "2097152\n"),
            ("memory.events", "low 0\nmax 7\noom 1\noom_kill 1\n"),
        ]);
        let (cpu_us, memory_kb) = (Some(1234), Some(2048));
        assert_eq!(counted.usage(), GroupUsage { cpu_us, memory_kb, out_of_memory: true });
        let (_folder, bare) = group(&[]);
        assert_eq!(bare.usage(), GroupUsage::default());
    }

    #[test]
    fn missing_group_counts_as_empty() {
        let (folder, full) = group(&[("cgroup.events", "populated 1\nfrozen 0\n")]);
        assert!(!full.wait_until_empty(Duration::from_millis(50)));
        fs::write(folder.path().join("cgroup.events"), "populated 0\nfrozen 0\n").unwrap();
        assert!(full.is_empty());
        assert!(Group::at(folder.path().join("none")).is_empty());
    }
}
