//! `/api/v1/targets…`: sites or systems that jobs work on.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod update;

use evenkeel_core::{Timestamp, redact};
use evenkeel_store::{Role, Target};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::problem::{Problem, ProblemType};
use crate::view::view;

/// Fields of a new target. Fields that are missing in the request become null.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "AskReddit", "url": "https://example.com/r/AskReddit"}))]
pub struct TargetDocument {
    /// Number of the target. Default: the next free number of the tenant.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    pub number: Option<i64>,
    /// Id of the target in an external system, unique within the tenant.
    #[schema(max_length = 255)]
    pub source_id: Option<String>,
    /// Free text for humans.
    #[schema(max_length = 255)]
    pub name: Option<String>,
    /// URL of the target, http or https.
    #[schema(max_length = 2048)]
    pub url: Option<String>,
}

/// Changes of a target's fields. Fields that are missing in the request keep their values; null
/// removes a value.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({"url": "https://example.com/r/worldnews"}))]
pub struct TargetChange {
    /// Id of the target in an external system, unique within the tenant.
    #[schema(max_length = 255)]
    pub source_id: Option<String>,
    /// Free text for humans.
    #[schema(max_length = 255)]
    pub name: Option<String>,
    /// URL of the target, http or https.
    #[schema(max_length = 2048)]
    pub url: Option<String>,
}

view! {
    /// A target.
    TargetView::new(target: Target) {}

    /// Number of the target; jobs refer to it in their field `target`.
    number: i64 = target.number,
    /// Id of the target in an external system.
    source_id: Option<String> = target.fields.source_id,
    /// Free text for humans.
    name: Option<String> = target.fields.name,
    /// URL of the target. Jobs that have this target, but neither `url` nor `executor_type`, crawl
    /// this URL.
    url: Option<String> = target.fields.url,
    /// Time when a job with this target last finished a successful run, even if that job was
    /// deleted since.
    last_success_at: Option<Timestamp> = target.last_success_at,
    /// Number of jobs that refer to the target.
    jobs: u64 = target.jobs,
    /// Version of the target; increases with every change.
    generation: i32 = target.generation,
    /// Creation time.
    created_at: Timestamp = target.created_at,
    /// Time of the last change.
    updated_at: Timestamp = target.updated_at,
}

impl TargetView {
    /// Redacts data that `role` may not see: viewers do not see values in the query of the URL.
    fn for_role(mut self, role: Role) -> Self {
        if role < Role::Operator {
            self.url = self.url.as_deref().map(redact::url);
        }
        self
    }
}

fn read_number(id: &str) -> Result<i64, Problem> {
    let number = id.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        let detail = format!("there is no target {id:?}: targets have whole numbers");
        Problem::new(ProblemType::NotFound, detail)
    })
}
