//! The messages between a node and a supervisor.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::limits::Limits;

/// The first message to a supervisor: the program to run, its environment, and its limits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) argv: Vec<String>,
    /// All environment variables of the program.
    pub(crate) env: BTreeMap<String, String>,
    /// The working directory: an absolute path or [`HOME`](super::HOME), or `None` for `/`.
    pub(crate) cwd: Option<PathBuf>,
    /// The standard input.
    pub(crate) payload: Option<String>,
    /// The file on which the supervisor holds a shared lock while the program runs.
    pub(crate) bodies_lock: Option<PathBuf>,
    /// The time between SIGTERM and SIGKILL when the program is ended, in milliseconds.
    pub(crate) kill_grace_ms: u64,
    /// The remaining time of the lease at `sent_ms`, or `None` if the lease never ends.
    pub(crate) lease_ms: Option<u64>,
    /// The monotonic clock in milliseconds when the remaining time of the lease was read.
    pub(crate) sent_ms: u64,
    #[serde(default)]
    pub(crate) group: Option<GroupSpec>,
    /// The name or number of the user that the program runs as, or `None` for the user of the node.
    #[serde(default)]
    pub(crate) user: Option<String>,
    #[serde(default)]
    pub(crate) limits: Limits,
}

/// A control group to create.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GroupSpec {
    /// The directory of the control group, which must not exist yet.
    pub(crate) path: PathBuf,
    /// True if the program must not start without the control group.
    pub(crate) required: bool,
}

/// A command that the node sends to a supervisor after the [`Spec`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Command {
    Go,
    /// The node's lease is valid until this time of the monotonic clock.
    Lease {
        until_ms: u64,
    },
    Stop,
}

impl Command {
    /// Parses a command line. Unknown commands are ignored, so that a newer node can send further
    /// commands.
    pub(super) fn parse(line: &str, now_ms: u64) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        match words.next()? {
            "go" => Some(Self::Go),
            "stop" => Some(Self::Stop),
            "lease" => {
                let lasts_ms: u64 = words.next()?.parse().ok()?;
                // A lease message that arrives late must not extend the lease beyond its real end.
                let sent_ms = words.next().map_or(Some(now_ms), |word| word.parse().ok())?;
                Some(Self::Lease { until_ms: sent_ms.min(now_ms).saturating_add(lasts_ms) })
            }
            _ => None,
        }
    }
}

/// Returns the line that tells a supervisor about the renewed lease. The caller must read the clock
/// before the remaining time of the lease. If the node freezes between reading the clock and the
/// lease, it then reports too little remaining time, never too much.
pub(crate) fn lease_line(sent_ms: u64, remaining: Duration) -> String {
    format!("lease {} {sent_ms}\n", millis(remaining))
}

/// A reply of a supervisor to its node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// The supervisor holds the lock and starts the program after the command `go`.
    Ready,
    Started {
        /// The process id of the program's main process, or `None` if the node cannot see the
        /// process.
        pid: Option<i32>,
    },
    Failed {
        error: String,
    },
    /// The program and all its descendants have ended.
    Ended(Ended),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) by: EndedBy,
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// CPU time of all processes of the program, in microseconds.
    pub(crate) cpu_us: u64,
    /// Peak memory of the control group, or resident memory of the largest process.
    pub(crate) memory_kb: i64,
    /// True if the kernel killed a process because of the memory limit.
    #[serde(default)]
    pub(crate) out_of_memory: bool,
}

/// Why a program ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndedBy {
    Itself,
    /// The node sent the command `stop`.
    Stop,
    /// The lease ran out.
    Lease,
    NodeGone,
}

impl Ended {
    /// Returns the exit code that a shell would show for the ended program.
    pub(super) fn exit_code(&self) -> u8 {
        let code = self.code.or(self.signal.map(|signal| 128 + signal));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
    }
}

impl Reply {
    /// Sends the reply. Most callers ignore write errors, because the next read from the socket
    /// shows that the node has ended.
    pub(super) fn send(&self, node: &mut impl Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        node.write_all(&line)
    }
}

/// Returns the monotonic clock in milliseconds; a node and its supervisors read the same clock.
pub(crate) fn monotonic_ms() -> u64 {
    // The monotonic clock is never negative, so the conversion cannot fail.
    millis(Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default())
}

/// Returns whole milliseconds, rounded down.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_message_does_not_extend_the_lease() {
        let lease = |line| Command::parse(line, 10_000);
        assert_eq!(lease("lease 500\n"), Some(Command::Lease { until_ms: 10_500 }));
        assert_eq!(lease("lease 500 9000\n"), Some(Command::Lease { until_ms: 9_500 }));
        assert_eq!(lease("lease 500 99000\n"), Some(Command::Lease { until_ms: 10_500 }));
        assert_eq!(lease("lease soon\n"), None);
    }

    #[test]
    fn unknown_commands_are_ignored() {
        assert_eq!(Command::parse("stop\n", 0), Some(Command::Stop));
        assert_eq!(Command::parse("go\n", 0), Some(Command::Go));
        for line in ["", "\n", "stopp", "lease", "lease -1"] {
            assert_eq!(Command::parse(line, 0), None, "{line:?}");
        }
    }
}
