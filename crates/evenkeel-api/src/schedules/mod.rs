//! `/api/v1/schedules…`

mod preview;

pub use preview::{PreviewDocument, PreviewView, SlotLoadView};

pub(crate) use preview::*;
