//! `/api/v1/targets…`: sites or systems that jobs work on.

mod create;
mod delete;
mod get;
mod list;
mod update;

use evenkeel_core::{Timestamp, redact};
use evenkeel_store::{Role, Target};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::{Problem, ProblemType};

pub(crate) use create::*;
pub(crate) use delete::*;
pub(crate) use get::*;
pub(crate) use list::*;
pub(crate) use update::*;

/// A new target. Omitted fields are null.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "AskReddit", "url": "https://example.com/r/AskReddit"}))]
pub struct TargetDocument {
    /// Number of the target. Default: the next number of the tenant.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    pub number: Option<i64>,
    /// Id in an external system, unique within the tenant.
    #[schema(max_length = 255)]
    pub source_id: Option<String>,
    /// Free text for humans.
    #[schema(max_length = 255)]
    pub name: Option<String>,
    /// URL, http or https.
    #[schema(max_length = 2048)]
    pub url: Option<String>,
}

/// Changes of a target. Omitted fields stay, null removes a value.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({"url": "https://example.com/r/worldnews"}))]
pub struct TargetChange {
    /// Id in an external system, unique within the tenant.
    #[schema(max_length = 255)]
    pub source_id: Option<String>,
    /// Free text for humans.
    #[schema(max_length = 255)]
    pub name: Option<String>,
    /// URL, http or https.
    #[schema(max_length = 2048)]
    pub url: Option<String>,
}

/// A target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct TargetView {
    /// Number, which jobs refer to as `target`.
    pub number: i64,
    /// Id in an external system.
    pub source_id: Option<String>,
    /// Free text for humans.
    pub name: Option<String>,
    /// URL. Jobs with this target and neither `url` nor `executor_type` crawl it.
    pub url: Option<String>,
    /// End of the last successful run of a job that had this target at the time, including deleted
    /// jobs.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_success_at: Option<Timestamp>,
    /// Number of jobs that refer to it.
    pub jobs: u64,
    /// Version, increases with every change.
    pub generation: i32,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Time of the last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl TargetView {
    /// Redacts what `role` may not see: viewers do not see values in the query of the URL.
    fn for_role(mut self, role: Role) -> Self {
        if role < Role::Operator {
            self.url = self.url.as_deref().map(redact::url);
        }
        self
    }
}

impl From<Target> for TargetView {
    fn from(target: Target) -> Self {
        Self {
            number: target.number,
            source_id: target.fields.source_id,
            name: target.fields.name,
            url: target.fields.url,
            last_success_at: target.last_success_at,
            jobs: target.jobs,
            generation: target.generation,
            created_at: target.created_at,
            updated_at: target.updated_at,
        }
    }
}

fn read_number(id: &str) -> Result<i64, Problem> {
    let number = id.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        let detail = format!("there is no target {id:?}: targets have whole numbers");
        Problem::new(ProblemType::NotFound, detail)
    })
}
