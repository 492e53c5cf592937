//! `/api/admin…`: an admin API for clients of a crawl queue, with that queue's status names and
//! integer ids. The admin API works on the same jobs as `/api/v1` and stores no data of its own.

pub(crate) mod bulk;
pub(crate) mod jobs;
mod page;
pub(crate) mod priority;
pub(crate) mod scheduled;
pub(crate) mod scheduled_change;
pub(crate) mod status;
mod view;

use evenkeel_commands::JobRef;
use evenkeel_core::JobId;

use crate::call::Call;
use crate::problem::{Problem, ProblemType};

pub(crate) use view::{AdminJobView, ScheduledJobView};

/// Finds the job whose number or UUID is in the path of a request.
async fn find_job(call: &Call, text: &str) -> Result<JobId, Problem> {
    let missing = || Problem::new(ProblemType::NotFound, "there is no such job");
    let job = JobRef::from_text(text).ok_or_else(missing)?;
    Ok(call.jobs.id_of(call.scope(), job).await?)
}
