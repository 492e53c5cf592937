//! The tenant and the role of a request.

use evenkeel_core::TenantNo;
use serde::{Deserialize, Serialize};

#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May read.
    Viewer,
    /// May read and control jobs.
    Operator,
    Admin,
}

impl Role {
    /// From least to most permissions.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// The public name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// The tenant whose data a request may access, and the role of the caller.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Scope {
    pub tenant: TenantNo,
    pub role: Role,
}
