//! The server's settings for jobs that run programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use evenkeel_core::TenantNo;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug)]
pub struct ShellSettings {
    pub supervisor: SupervisorCommand,
    /// A file on which supervisors hold a shared lock while their programs run. A restarted node
    /// also finds its old control groups by the directory of this lock file. By default there is no
    /// lock file.
    pub bodies_lock: Option<PathBuf>,
    /// The time between SIGTERM and SIGKILL when a program is ended, by default 1 s.
    pub kill_grace: Duration,
    /// Maximum number of programs that run at the same time, by default 256; further attempts wait.
    pub bodies_max: usize,
    /// The environment variables of the node that programs inherit. Programs do not inherit other
    /// variables, which may hold secrets. The default is `PATH`, `LANG`, `LC_ALL`, `TZ`.
    pub env_allow: Vec<String>,
    /// The name or number of the user that programs run as, by default the user of the node. Only a
    /// node that runs as root can switch users.
    pub user: Option<String>,
    /// For some tenants, the user that programs of the tenant run as.
    pub tenant_users: BTreeMap<TenantNo, String>,
    /// Further users that jobs may name to run their programs, by default none.
    pub users: Vec<String>,
    /// The tenants whose jobs may run programs; `None`, the default, allows all tenants.
    pub tenants: Option<BTreeSet<TenantNo>>,
    /// The absolute paths of the programs that jobs may run. An empty list, the default, allows all
    /// programs.
    pub programs: Vec<PathBuf>,
    /// The sandbox, which hides paths and processes of the machine from programs. Programs that run
    /// as root get no sandbox, because they could leave it. By default programs get no sandbox.
    pub sandbox: Option<SandboxSettings>,
    /// Whether each program gets a separate control group; by default it does if possible.
    pub cgroup: CgroupUse,
}

impl ShellSettings {
    pub fn new(supervisor: SupervisorCommand) -> Self {
        Self {
            supervisor,
            bodies_lock: None,
            kill_grace: Duration::from_secs(1),
            bodies_max: 256,
            env_allow: ["PATH", "LANG", "LC_ALL", "TZ"].map(String::from).to_vec(),
            user: None,
            tenant_users: BTreeMap::new(),
            users: Vec::new(),
            tenants: None,
            programs: Vec::new(),
            sandbox: None,
            cgroup: CgroupUse::Auto,
        }
    }
}

#[derive(Clone, Debug)]
pub struct SandboxSettings {
    /// Directories and files that programs see as empty, such as the node's data, configuration and
    /// keys. The first of the hidden paths must be a directory.
    pub hidden: Vec<PathBuf>,
}

/// A command line that runs [`supervisor::main`](crate::supervisor::main).
#[derive(Clone, Debug)]
pub struct SupervisorCommand {
    /// `evenkeel` itself.
    pub program: PathBuf,
    /// `__supervise`.
    pub args: Vec<String>,
}

/// Whether programs get separate control groups (cgroup v2).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupUse {
    /// Programs get control groups if the node may create them; see
    /// [`ShellExecutor::containment`](super::ShellExecutor::containment).
    #[default]
    Auto,
    Off,
    /// Creating the shell executor fails if control groups are not available.
    Required,
}
