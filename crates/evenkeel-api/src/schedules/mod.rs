//! `/api/v1/schedules…`, a file per endpoint.

mod preview;

pub use preview::{PreviewDocument, PreviewView, SlotLoadView};

pub(crate) use preview::*;
