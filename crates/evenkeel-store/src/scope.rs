//! The tenant and the role of a request.

use evenkeel_core::{TenantNo, named_enum};
use serde::{Deserialize, Serialize};

named_enum! {
    /// Roles of callers, ordered from least to most permissions.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Role {
        /// May read.
        Viewer => "viewer",
        /// May read and control jobs.
        Operator => "operator",
        Admin => "admin",
    }
}

/// The tenant whose data a request may access, and the role of the caller.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Scope {
    pub tenant: TenantNo,
    pub role: Role,
}
