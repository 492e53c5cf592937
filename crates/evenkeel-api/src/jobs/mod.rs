//! `/api/v1/jobs…`, a file per endpoint.

mod bulk;
mod cancel;
mod commanded;
mod commands;
mod condition;
mod create;
mod delete;
mod document;
mod explain;
mod get;
#[expect(unused_qualifications, reason = "the OpenAPI macro writes them")]
mod list;
#[expect(unused_qualifications, reason = "the OpenAPI macro writes them")]
mod next;
mod pause;
mod redact;
mod resume;
mod retry;
mod schedule;
mod stats;
mod trigger;
mod update;
mod view;

pub use bulk::{BulkDocument, BulkResultView, BulkView};
pub use commanded::CommandedView;
pub use commands::{BulkCommandDocument, BulkOutcomeView, FilterDocument, RefusalView};
pub use condition::{ConditionView, HistoryView};
pub use delete::DeletedView;
pub use document::{JobDocument, OnFailureDocument};
pub use explain::{ExplainView, ReasonView};
pub use list::JobList;
pub use next::{NextTimeView, NextTimesView};
pub use schedule::{BlackoutView, HoursView, ScheduleForm, ScheduleView};
pub use stats::JobStats;
pub use trigger::{TriggerDocument, TriggeredView};
pub use view::{JobView, OnFailureView};

pub(crate) use bulk::*;
pub(crate) use cancel::*;
pub(crate) use commands::*;
pub(crate) use condition::*;
pub(crate) use create::*;
pub(crate) use delete::*;
pub(crate) use explain::*;
pub(crate) use get::*;
pub(crate) use list::*;
pub(crate) use next::*;
pub(crate) use pause::*;
pub(crate) use resume::*;
pub(crate) use retry::*;
pub(crate) use stats::*;
pub(crate) use trigger::*;
pub(crate) use update::*;
