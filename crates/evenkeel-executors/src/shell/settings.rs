//! The server's settings for programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use evenkeel_core::TenantNo;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug)]
pub struct ShellSettings {
    pub supervisor: SupervisorCommand,
    /// Supervisors hold a shared lock on this file while their programs run. A restarted node also
    /// finds its old control groups by the directory of this file. Default: none.
    pub bodies_lock: Option<PathBuf>,
    /// The time between SIGTERM and SIGKILL. Default: 1 s.
    pub kill_grace: Duration,
    /// How many programs run at once; others wait. Default: 256.
    pub bodies_max: usize,
    /// The environment variables of the node that programs inherit. All others, which may hold
    /// secrets, are withheld. Default: `PATH`, `LANG`, `LC_ALL`, `TZ`.
    pub env_allow: Vec<String>,
    /// The user, by name or number, that programs run as; needs a node that runs as root. Default:
    /// the user of the node.
    pub user: Option<String>,
    /// The user of single tenants' jobs.
    pub tenant_users: BTreeMap<TenantNo, String>,
    /// Other users that jobs may name. Default: none.
    pub users: Vec<String>,
    /// The tenants whose jobs may run programs. Default: all.
    pub tenants: Tenants,
    /// The absolute paths of the programs that jobs may run. Default: empty, which allows all.
    pub programs: Vec<PathBuf>,
    /// Hides paths and processes from programs. Programs that run as root get no sandbox, because
    /// they could leave it. Default: none.
    pub sandbox: Option<SandboxSettings>,
    /// Whether programs get their own control groups. Default: if possible.
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
            tenants: Tenants::All,
            programs: Vec::new(),
            sandbox: None,
            cgroup: CgroupUse::Auto,
        }
    }
}

/// The tenants whose jobs may run programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tenants {
    All,
    Only(BTreeSet<TenantNo>),
}

impl Tenants {
    pub fn contains(&self, tenant: TenantNo) -> bool {
        match self {
            Self::All => true,
            Self::Only(tenants) => tenants.contains(&tenant),
        }
    }
}

#[derive(Clone, Debug)]
pub struct SandboxSettings {
    /// Directories and files that programs see empty: the node's data, configuration and keys. The
    /// first must be a directory.
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

/// Whether programs get their own control groups (cgroup v2).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupUse {
    /// If the node may make them; see
    /// [`ShellExecutor::containment`](super::ShellExecutor::containment).
    #[default]
    Auto,
    Off,
    /// The executor refuses to start without them.
    Required,
}
