//! Who did what.

#[expect(unused_qualifications, reason = "the OpenAPI macro writes them")]
mod list;

pub use list::{AuditEntryView, AuditList};

pub(crate) use list::*;
