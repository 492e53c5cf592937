//! `/api/v1/schedules…`

mod preview;

pub use preview::*;
