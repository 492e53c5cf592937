//! How a node runs programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use evenkeel_core::TenantNo;
use serde::{Deserialize, Serialize};

/// How programs are run.
#[derive(Clone, Debug)]
pub struct ShellSettings {
    /// What starts a supervisor.
    pub supervisor: SupervisorCommand,
    /// The file supervisors hold a shared lock on while their bodies run. Default: none. Its folder
    /// is also what a restarted node knows its former life's control groups by.
    pub bodies_lock: Option<PathBuf>,
    /// Between the SIGTERM that asks a body to end and the SIGKILL that ends it. Default: 1 s.
    pub kill_grace: Duration,
    /// So many programs run at once; more wait. A program costs far more than a call. Default: 256.
    pub bodies_max: usize,
    /// The variables of the node's own environment that bodies inherit, if they are set. Default:
    /// `PATH`, `LANG`, `LC_ALL`, `TZ`. Everything else of the node's environment, secrets above all,
    /// is kept from them.
    pub env_allow: Vec<String>,
    /// The user, by name or number, that bodies run as. Default: the node's own. It takes a node
    /// that runs as root.
    pub user: Option<String>,
    /// The same for jobs of single tenants.
    pub tenant_users: BTreeMap<TenantNo, String>,
    /// Other users that jobs may name as theirs. Default: none, so that no job can choose.
    pub users: Vec<String>,
    /// The tenants whose jobs may run programs. Default: all.
    pub tenants: Tenants,
    /// The only programs that may be run, by absolute path. Default: none, which is all.
    pub programs: Vec<PathBuf>,
    /// What bodies are kept from by namespaces of their own. Default: nothing. A body that runs as
    /// root is never behind a wall: it could climb over it.
    pub wall: Option<WallSettings>,
    /// Whether bodies get control groups of their own. Default: where that is possible.
    pub cgroup: CgroupUse,
}

impl ShellSettings {
    /// The defaults.
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
            wall: None,
            cgroup: CgroupUse::Auto,
        }
    }
}

/// Whose jobs may run programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tenants {
    /// Those of all tenants.
    All,
    /// Those of these.
    Only(BTreeSet<TenantNo>),
}

impl Tenants {
    /// Is this tenant one of them?
    pub fn contains(&self, tenant: TenantNo) -> bool {
        match self {
            Self::All => true,
            Self::Only(tenants) => tenants.contains(&tenant),
        }
    }
}

/// What bodies are kept from.
#[derive(Clone, Debug)]
pub struct WallSettings {
    /// Directories and files that bodies find empty: the node's data, its configuration, its keys.
    /// The first is a directory.
    pub hidden: Vec<PathBuf>,
}

/// A command line that ends up in [`supervisor::main`](crate::supervisor::main).
#[derive(Clone, Debug)]
pub struct SupervisorCommand {
    /// The program: `evenkeel` itself.
    pub program: PathBuf,
    /// Its arguments: `__supervise`.
    pub args: Vec<String>,
}

/// Whether bodies get control groups (cgroup v2) of their own.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupUse {
    /// Where the node may make them; see [`ShellExecutor::containment`](super::ShellExecutor::containment).
    #[default]
    Auto,
    /// Never.
    Off,
    /// Always: where they can't be made, the executor refuses to start.
    Required,
}
