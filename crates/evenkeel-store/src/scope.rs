//! Whose eyes and hands a request has.

use evenkeel_core::TenantNo;
use serde::{Deserialize, Serialize};

/// What a user may do.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look.
    Viewer,
    /// Look, and control jobs.
    Operator,
    /// Everything.
    Admin,
}

impl Role {
    /// All roles, least to most.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// The word users see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// The tenant a request is confined to, and what it may do there.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Scope {
    /// The only tenant it can see.
    pub tenant: TenantNo,
    /// What it may do.
    pub role: Role,
}
