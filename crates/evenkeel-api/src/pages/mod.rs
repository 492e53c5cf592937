//! `/api/v1/pages…`, what crawls have kept.

mod get;
#[expect(unused_qualifications, reason = "the OpenAPI macro writes them")]
mod list;
mod snippet;

pub use get::PageView;
pub use list::{PageHitView, PageList};

pub(crate) use get::*;
pub(crate) use list::*;
