//! `/api/v1/events`

mod query;
pub(crate) mod stream;
pub(crate) mod view;
