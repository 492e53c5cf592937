//! `/api/admin…`: an admin API for clients of a crawl queue, with that queue's status names and
//! integer ids. The admin API works on the same jobs as `/api/v1` and stores no data of its own.

mod bulk;
mod jobs;
mod page;
mod priority;
mod scheduled;
mod scheduled_change;
mod status;
mod view;

use evenkeel_commands::JobRef;
use evenkeel_core::JobId;

use crate::auth::Caller;
use crate::problem::{Problem, ProblemType};
use crate::state::App;

pub(crate) use view::{AdminJobView, ScheduledJobView};

pub(crate) use bulk::*;
pub(crate) use jobs::*;
pub(crate) use priority::*;
pub(crate) use scheduled::*;
pub(crate) use scheduled_change::*;
pub(crate) use status::*;

/// Finds the job whose number or UUID is in the path of a request.
async fn find_job(app: &App, caller: &Caller, text: &str) -> Result<JobId, Problem> {
    let missing = || Problem::new(ProblemType::NotFound, "there is no such job");
    let job = JobRef::from_text(text).ok_or_else(missing)?;
    Ok(app.jobs.id_of(&caller.scope, job).await?)
}
