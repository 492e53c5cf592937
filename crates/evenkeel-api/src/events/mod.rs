//! `/api/v1/events`

mod query;
mod stream;
mod view;

pub(crate) use view::EventView;

pub(crate) use stream::*;
