//! What a node and a supervisor say to each other.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::limits::Limits;

/// What to run, and how long.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    /// Its whole environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Where it starts: an absolute path, or [`HOME`](super::HOME); `/` if `None`.
    pub(crate) cwd: Option<PathBuf>,
    /// What it reads from its standard input, if anything.
    pub(crate) payload: Option<String>,
    /// The file to hold a shared lock on.
    pub(crate) bodies_lock: Option<PathBuf>,
    /// Between SIGTERM and SIGKILL.
    pub(crate) kill_grace_ms: u64,
    /// How long the lease lasts, `None` forever.
    pub(crate) lease_ms: Option<u64>,
    /// The monotonic clock when it did.
    pub(crate) sent_ms: u64,
    /// The control group to make for it, if it gets one.
    #[serde(default)]
    pub(crate) group: Option<GroupSpec>,
    /// Whom it runs as: a name or a number. `None` is the node's own user.
    #[serde(default)]
    pub(crate) user: Option<String>,
    /// What it may use.
    #[serde(default)]
    pub(crate) limits: Limits,
}

/// A control group to be made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GroupSpec {
    /// Where; it must not exist yet.
    pub(crate) path: PathBuf,
    /// Does the body not start without it?
    pub(crate) required: bool,
}

impl Spec {
    pub(super) fn lease(&self) -> Option<u64> {
        self.lease_ms.map(|lease_ms| self.sent_ms.saturating_add(lease_ms))
    }

    pub(super) const fn kill_grace(&self) -> Duration {
        Duration::from_millis(self.kill_grace_ms)
    }
}

/// What a node says after the spec.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Command {
    /// Start the body.
    Go,
    /// The lease now lasts until then, on the monotonic clock.
    Lease { until_ms: u64 },
    /// End the body.
    Stop,
}

impl Command {
    /// Reads a line; `None` if it means nothing, so that a newer node can say more.
    pub(super) fn parse(line: &str, now_ms: u64) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        match words.next()? {
            "go" => Some(Self::Go),
            "stop" => Some(Self::Stop),
            "lease" => {
                let lasts_ms: u64 = words.next()?.parse().ok()?;
                // A message that was long on its way must not lengthen the lease.
                let sent_ms = words.next().map_or(Some(now_ms), |word| word.parse().ok())?;
                Some(Self::Lease { until_ms: sent_ms.min(now_ms).saturating_add(lasts_ms) })
            }
            _ => None,
        }
    }
}

/// The line that tells a supervisor how long the lease lasted, counted from `sent_ms`. Read the clock
/// first and the lease second: a node frozen in between then says too little, never too much.
pub(crate) fn lease_line(sent_ms: u64, remaining: Duration) -> String {
    format!("lease {} {sent_ms}\n", millis(remaining))
}

/// What a supervisor answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// The lock is held; the body starts on `go`.
    Ready,
    /// The body runs.
    Started {
        /// Its process, which leads a group; `None` if the node can't see it.
        pid: Option<i32>,
    },
    /// The body can't be started.
    Failed {
        /// Why.
        error: String,
    },
    /// The body and all its descendants are gone.
    Ended(Ended),
}

/// How a body ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// What ended it.
    pub(crate) by: EndedBy,
    /// Its exit code, if it exited.
    pub(crate) code: Option<i32>,
    /// The signal that ended it, if one did.
    pub(crate) signal: Option<i32>,
    /// Processor time of all its processes.
    pub(crate) cpu_us: u64,
    /// Peak memory of its group, or resident memory of the largest process.
    pub(crate) memory_kb: i64,
    /// Did the kernel kill some of it for its memory limit?
    #[serde(default)]
    pub(crate) out_of_memory: bool,
}

/// What ended a body.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndedBy {
    /// Nobody else.
    Itself,
    /// The node's word.
    Stop,
    /// The lease's end.
    Lease,
    /// The node's end.
    NodeGone,
}

impl Ended {
    /// The code a shell would show for it.
    pub(super) fn exit_code(&self) -> u8 {
        let code = self.code.or(self.signal.map(|signal| 128 + signal));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
    }
}

impl Reply {
    /// Tells the node, if there still is one: that it is gone is learned by reading.
    pub(super) fn send(&self, node: &mut impl Write) {
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            let _ = node.write_all(&line);
        }
    }
}

/// The clock a node and its supervisors share. It never steps.
pub(crate) fn monotonic_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let secs = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    secs.saturating_mul(1_000).saturating_add(nanos / 1_000_000)
}

/// Whole milliseconds, rounded down.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_message_does_not_lengthen_the_lease() {
        let lease = |line| Command::parse(line, 10_000);
        assert_eq!(lease("lease 500\n"), Some(Command::Lease { until_ms: 10_500 }));
        assert_eq!(lease("lease 500 9000\n"), Some(Command::Lease { until_ms: 9_500 }));
        assert_eq!(lease("lease 500 99000\n"), Some(Command::Lease { until_ms: 10_500 }));
        assert_eq!(lease("lease soon\n"), None);
    }

    #[test]
    fn strange_lines_mean_nothing() {
        assert_eq!(Command::parse("stop\n", 0), Some(Command::Stop));
        assert_eq!(Command::parse("go\n", 0), Some(Command::Go));
        for line in ["", "\n", "stopp", "lease", "lease -1"] {
            assert_eq!(Command::parse(line, 0), None, "{line:?}");
        }
    }
}
