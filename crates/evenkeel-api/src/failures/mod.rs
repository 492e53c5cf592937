//! `/api/v1/failures`

#[expect(unused_qualifications, reason = "the OpenAPI macro writes them")]
mod list;

pub use list::{FailureList, FailureView};

pub(crate) use list::*;
