//! What a body may use.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// Between the signal that tells a process that it has used up its processor time, and the one
/// that ends it.
const CPU_GRACE_SECONDS: u64 = 1;

/// What a body may use; `None` is whatever the node itself may.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Limits {
    /// Processor time of each process.
    pub(crate) cpu_seconds: Option<u64>,
    /// Memory: of the whole tree in a group, else private memory of each process.
    pub(crate) memory_mb: Option<u64>,
    /// Open files of each process.
    pub(crate) open_files: Option<u64>,
    /// Processes and threads: of the tree in a group, else of its user.
    pub(crate) processes: Option<u64>,
    /// The largest file it may write.
    pub(crate) file_size_mb: Option<u64>,
}

impl Limits {
    /// No limits.
    #[cfg(test)]
    pub(crate) const NONE: Self = Self {
        cpu_seconds: None,
        memory_mb: None,
        open_files: None,
        processes: None,
        file_size_mb: None,
    };

    /// Binds the calling process, and what it starts. Call it last: with little memory, nothing
    /// else may be possible afterwards.
    pub(super) fn apply(&self) -> io::Result<()> {
        const MB: u64 = 1024 * 1024;
        set(Resource::Nofile, self.open_files, 0)?;
        set(Resource::Fsize, self.file_size_mb.map(|mb| mb.saturating_mul(MB)), 0)?;
        set(Resource::Nproc, self.processes, 0)?;
        set(Resource::Cpu, self.cpu_seconds, CPU_GRACE_SECONDS)?;
        // Not the address space, of which many runtimes reserve far more than they use.
        set(Resource::Data, self.memory_mb.map(|mb| mb.saturating_mul(MB)), 0)
    }
}

/// Nobody but root may raise what the node itself is bound to, and nobody should.
fn set(resource: Resource, limit: Option<u64>, grace: u64) -> io::Result<()> {
    let Some(limit) = limit else { return Ok(()) };
    let bound = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let current = limit.min(bound);
    let maximum = limit.saturating_add(grace).min(bound);
    setrlimit(resource, Rlimit { current: Some(current), maximum: Some(maximum) })?;
    Ok(())
}
