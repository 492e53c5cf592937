//! `/api/v1/pages…`: pages stored by crawl jobs.

pub(crate) mod get;
pub(crate) mod list;
mod snippet;
