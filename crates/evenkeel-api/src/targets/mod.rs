//! Targets: what jobs are about.

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

pub use delete::DeletedTargetView;
pub use list::TargetList;
pub use update::ChangedTargetView;

pub(crate) use create::*;
pub(crate) use delete::*;
pub(crate) use get::*;
pub(crate) use list::*;
pub(crate) use update::*;

/// A target to be made. What is left out is not known.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "AskReddit", "url": "https://example.com/r/AskReddit"}))]
pub struct TargetDocument {
    /// Its number; the tenant's next one if it is left out.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    pub number: Option<i64>,
    /// What others call it; no two targets have the same.
    #[schema(max_length = 255)]
    pub source_id: Option<String>,
    /// For people.
    #[schema(max_length = 255)]
    pub name: Option<String>,
    /// Its address, http or https.
    #[schema(max_length = 2048)]
    pub url: Option<String>,
}

/// What is to be changed of a target. What is left out stays, null takes away.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({"url": "https://example.com/r/worldnews"}))]
pub struct TargetChange {
    /// What others call it; no two targets have the same.
    #[schema(max_length = 255)]
    pub source_id: Option<String>,
    /// For people.
    #[schema(max_length = 255)]
    pub name: Option<String>,
    /// Its address, http or https.
    #[schema(max_length = 2048)]
    pub url: Option<String>,
}

/// A target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct TargetView {
    /// Its number: jobs name it as `target`.
    pub number: i64,
    /// What others call it.
    pub source_id: Option<String>,
    /// For people.
    pub name: Option<String>,
    /// Its address. Jobs that name it, and neither a url nor an executor, crawl it.
    pub url: Option<String>,
    /// When a job last ended well that named it then; jobs that are gone count as well.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_success_at: Option<Timestamp>,
    /// How many jobs name it.
    pub jobs: u64,
    /// Raised by every change.
    pub generation: i32,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl TargetView {
    /// As `role` may see it: viewers do not see values of its address's query.
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

/// The number in a path.
fn read_number(id: &str) -> Result<i64, Problem> {
    let number = id.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        let detail = format!("there is no target {id:?}: targets are known by whole numbers");
        Problem::new(ProblemType::NotFound, detail)
    })
}
