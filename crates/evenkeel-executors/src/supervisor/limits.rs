//! Resource limits of a program.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// Seconds between SIGXCPU, which the kernel sends when the CPU time is used up, and SIGKILL.
const CPU_GRACE_SECONDS: u64 = 1;

/// Resource limits of a program; with `None`, the program inherits the limit of the node.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Limits {
    /// CPU time of each process.
    pub(crate) cpu_seconds: Option<u64>,
    /// Maximum memory of all processes of the program together, or of each process if the program
    /// has no control group.
    pub(crate) memory_mb: Option<u64>,
    /// Of each process.
    pub(crate) open_files: Option<u64>,
    /// Maximum number of processes and threads of the program, or of its user if the program has no
    /// control group.
    pub(crate) processes: Option<u64>,
    /// The maximum size of a file that the program writes.
    pub(crate) file_size_mb: Option<u64>,
}

impl Limits {
    /// Applies the limits to this process and its descendants. The limits must be applied last,
    /// because other preparations may fail with little memory.
    pub(super) fn apply(&self) -> io::Result<()> {
        const MB: u64 = 1024 * 1024;
        set(Resource::Nofile, self.open_files, 0)?;
        set(Resource::Fsize, self.file_size_mb.map(|mb| mb.saturating_mul(MB)), 0)?;
        set(Resource::Nproc, self.processes, 0)?;
        set(Resource::Cpu, self.cpu_seconds, CPU_GRACE_SECONDS)?;
        // The address space is not limited, because many runtimes reserve far more than they use.
        set(Resource::Data, self.memory_mb.map(|mb| mb.saturating_mul(MB)), 0)
    }
}

/// Sets a resource limit, but never above the limit of the node.
fn set(resource: Resource, limit: Option<u64>, grace: u64) -> io::Result<()> {
    let Some(limit) = limit else { return Ok(()) };
    let bound = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let [current, maximum] = [limit, limit.saturating_add(grace)].map(|it| Some(it.min(bound)));
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}
