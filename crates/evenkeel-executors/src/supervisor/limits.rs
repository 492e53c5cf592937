//! Resource limits of a body.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// The time between the signal for used-up CPU time and the kill.
const CPU_GRACE_SECONDS: u64 = 1;

/// Limits of a body; `None` inherits the limit of the node.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Limits {
    /// CPU time of each process.
    pub(crate) cpu_seconds: Option<u64>,
    /// Of all processes in a control group; otherwise private memory of each process.
    pub(crate) memory_mb: Option<u64>,
    /// Of each process.
    pub(crate) open_files: Option<u64>,
    /// Processes and threads: of the control group, otherwise of the user.
    pub(crate) processes: Option<u64>,
    /// The largest file that the body may write.
    pub(crate) file_size_mb: Option<u64>,
}

impl Limits {
    #[cfg(test)]
    pub(crate) const NONE: Self = Self {
        cpu_seconds: None,
        memory_mb: None,
        open_files: None,
        processes: None,
        file_size_mb: None,
    };

    /// Limits this process and its descendants. Call it last: with little memory, other steps may
    /// fail.
    pub(super) fn apply(&self) -> io::Result<()> {
        const MB: u64 = 1024 * 1024;
        set(Resource::Nofile, self.open_files, 0)?;
        set(Resource::Fsize, self.file_size_mb.map(|mb| mb.saturating_mul(MB)), 0)?;
        set(Resource::Nproc, self.processes, 0)?;
        set(Resource::Cpu, self.cpu_seconds, CPU_GRACE_SECONDS)?;
        // Not the address space: many runtimes reserve far more than they use.
        set(Resource::Data, self.memory_mb.map(|mb| mb.saturating_mul(MB)), 0)
    }
}

/// Sets a limit, but no higher than that of the node.
fn set(resource: Resource, limit: Option<u64>, grace: u64) -> io::Result<()> {
    let Some(limit) = limit else { return Ok(()) };
    let bound = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let current = limit.min(bound);
    let maximum = limit.saturating_add(grace).min(bound);
    setrlimit(resource, Rlimit { current: Some(current), maximum: Some(maximum) })?;
    Ok(())
}
