//! `/api/v1/conditions`

#[expect(unused_qualifications, reason = "the OpenAPI macro writes them")]
mod list;

pub use list::{AtRiskView, ConditionCountsView, ConditionList};

pub(crate) use list::*;
