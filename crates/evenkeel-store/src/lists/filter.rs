//! Filters of job lists.
//!
//! A new filter needs an entry in `job_filters!`, a condition in the SQL section `list_jobs_passes`
//! of both stores, and conformance cases. A filter whose jobs an index can find also needs a
//! [`ListIndex`](crate::ListIndex).

use evenkeel_core::condition::Level;
use evenkeel_core::order::Lane;
use evenkeel_core::status::JobStatus;
use evenkeel_core::{About, JobSearch, JobText, TenantNo, Timestamp};
use serde_json::Value;

use super::JobSort;
use crate::Job;

/// Maximum number of metadata values per job that filters can find.
pub const LABELS_MAX: usize = 64;

/// Maximum length in bytes of the metadata keys and values that filters can find.
pub const LABEL_BYTES_MAX: usize = 255;

/// Returns the labels of a job, which are the texts, numbers and booleans at the top level of its
/// metadata. Labels contain numbers and booleans as written in JSON.
pub fn labels_of(about: &About) -> Vec<(String, String)> {
    let Value::Object(metadata) = &about.metadata else { return Vec::new() };
    let label = |(key, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        let fits = |text: &str| text.len() <= LABEL_BYTES_MAX && !text.contains('\0');
        (fits(key) && fits(&value)).then(|| (key.clone(), value))
    };
    metadata.iter().filter_map(label).take(LABELS_MAX).collect()
}

/// Whether a job has running or only waiting attempts. Even a paused or cancelled job can have
/// active attempts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Activity {
    /// An attempt waits for a worker or for its due time, and no attempt is running.
    Waits,
    /// An attempt is running.
    Runs,
}

/// A job with the data that filters check.
#[derive(Copy, Clone, Debug)]
pub struct ListedJob<'a> {
    pub job: &'a Job,
    /// Name of the job's target.
    pub target_name: Option<&'a str>,
    pub condition: Level,
    pub now: Timestamp,
}

impl ListedJob<'_> {
    fn name(&self) -> Option<&str> {
        self.job.about.name.as_deref()
    }

    fn source_id(&self) -> Option<&str> {
        self.job.about.source_id.as_deref()
    }
}

/// A parameter of the SQL statement for a job list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListValue {
    Int(Option<i64>),
    Text(Option<String>),
    Texts(Vec<String>),
    /// The [grams](JobSearch::grams) of a search.
    Grams(Vec<i32>),
}

impl From<Option<i64>> for ListValue {
    fn from(value: Option<i64>) -> Self {
        Self::Int(value)
    }
}

impl From<Option<String>> for ListValue {
    fn from(value: Option<String>) -> Self {
        Self::Text(value)
    }
}

/// Defines [`JobFilter`]. Each entry of the macro has a name, a type, the value of the SQL
/// parameter with that name, and a function that checks a job.
macro_rules! job_filters {
    ($($(#[$about:meta])* $name:ident: $of:ty, $value:expr, $passes:expr;)*) => {
        /// Filters of a job list; a job must pass all filters that are set.
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub struct JobFilter {
            $($(#[$about])* pub $name: Option<$of>,)*
            /// The job has all [labels](labels_of) in this list.
            pub metadata: Vec<(String, String)>,
        }

        impl JobFilter {
            /// Returns true if the job passes all filters. The in-memory model and tests use this
            /// function; the databases check filters in SQL.
            pub fn passes(&self, listed: &ListedJob<'_>) -> bool {
                let labels = labels_of(&listed.job.about);
                $(self.$name.as_ref().is_none_or(|wanted| {
                    let passes: fn(&$of, &ListedJob<'_>) -> bool = $passes;
                    passes(wanted, listed)
                }) &&)*
                self.metadata.iter().all(|label| labels.contains(label))
            }

            fn value(&self, name: &str) -> Option<ListValue> {
                match name {
                    $(stringify!($name) => Some(self.$name.as_ref().map($value).into()),)*
                    _ => None,
                }
            }
        }
    };
}

job_filters! {
    /// The job name starts with this prefix.
    name_prefix: String, String::clone,
        |prefix, listed| listed.name().is_some_and(|name| name.starts_with(prefix));
    /// The job has this source id.
    source_id: String, String::clone,
        |id, listed| listed.source_id() == Some(id);
    /// The source id of the job starts with this prefix.
    source_prefix: String, String::clone,
        |prefix, listed| listed.source_id().is_some_and(|id| id.starts_with(prefix));
    /// The job has this status by the store's clock. For running and waiting jobs, the filter
    /// checks the status at the time when the list was read.
    status: JobStatus, |status| *status as i64,
        |status, listed| listed.job.status(listed.now) == *status;
    /// The job had this condition (OK, WARNING or ERROR) at its last evaluation.
    condition: Level, |level| *level as i64,
        |level, listed| listed.condition == *level;
    executor: String, String::clone,
        |kind, listed| listed.job.definition.executor.kind == *kind;
    lane: Lane, |lane| *lane as i64,
        |lane, listed| listed.job.definition.lane == *lane;
    /// The next scheduled time of the job is at or after this time.
    next_from: Timestamp, |at| at.as_micros(),
        |from, listed| listed.job.next_at.is_some_and(|at| at >= *from);
    /// The next scheduled time of the job is before this time.
    next_before: Timestamp, |at| at.as_micros(),
        |before, listed| listed.job.next_at.is_some_and(|at| at < *before);
    /// Number of the target that the job refers to.
    target: i64, |number| *number,
        |number, listed| listed.job.about.target == Some(*number);
    /// The job has active attempts, whatever its own status is. Like the filter `status`, this
    /// filter checks the state of the job at the time when the list was read.
    active_attempts: Activity, |activity| *activity as i64,
        |activity, listed| {
            let runs = listed.job.facts().running > 0;
            match activity {
                Activity::Waits => listed.job.live > 0 && !runs,
                Activity::Runs => runs,
            }
        };
    /// The text of the job matches this search. SQL only finds candidates, and
    /// [`ListRow`](super::ListRow) holds what the program needs to check them.
    search: JobSearch, |_| 1_i64,
        |search, listed| search.matches(&JobText::of(&listed.job.about, listed.target_name));
}

/// Identifies the list of jobs to read. Each parameter `:name` in an SQL statement for lists is a
/// value of this query.
#[derive(Copy, Clone, Debug)]
pub struct ListQuery<'a> {
    pub tenant: TenantNo,
    pub filter: &'a JobFilter,
    pub sort: JobSort,
    /// The current time, for stores that pass it to their SQL statements.
    pub now: Timestamp,
}

impl ListQuery<'_> {
    /// Returns the value of an SQL parameter: a value of the filter, a value of `step`, or a value
    /// that all list statements use.
    ///
    /// # Panics
    ///
    /// Panics if the parameter is unknown. The conformance cases run all list statements, so they
    /// detect unknown parameters.
    pub fn value(&self, name: &str, step: &[(&str, ListValue)]) -> ListValue {
        let labels = &self.filter.metadata;
        match name {
            "tenant" => ListValue::Int(Some(self.tenant.0.into())),
            "now" => ListValue::Int(Some(self.now.as_micros())),
            "sort_by" => ListValue::Int(Some(self.sort.by as i64)),
            "labels" => {
                ListValue::Text((!labels.is_empty()).then(|| serde_json::json!(labels).to_string()))
            }
            "label_keys" => ListValue::Texts(labels.iter().map(|(key, _)| key.clone()).collect()),
            "label_values" => {
                ListValue::Texts(labels.iter().map(|(_, value)| value.clone()).collect())
            }
            "search_grams" => {
                let search = self.filter.search.as_ref();
                ListValue::Grams(search.map_or_else(Vec::new, |search| search.grams(self.tenant)))
            }
            _ => {
                let of_step = step.iter().find(|(known, _)| *known == name);
                let value = of_step.map(|(_, value)| value.clone());
                value
                    .or_else(|| self.filter.value(name))
                    .unwrap_or_else(|| panic!("list statements have no parameter :{name}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_the_scalars_at_the_top_level_of_metadata() {
        let metadata = serde_json::json!({
            "text": "a b", "number": 1.5, "yes": true, "none": null, "list": [1], "map": {"x": 1},
            "long": "x".repeat(LABEL_BYTES_MAX + 1), "nul": "\u{0}",
        });
        let mut labels = labels_of(&About { metadata, ..About::default() });
        labels.sort();
        let expected = [("number", "1.5"), ("text", "a b"), ("yes", "true")];
        assert_eq!(labels, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn parameters_have_the_names_of_filters() {
        let filter = JobFilter {
            lane: Some(Lane::Batch),
            executor: Some("http".into()),
            metadata: vec![("a".into(), "b".into())],
            search: Some(JobSearch::parse("abc").unwrap()),
            ..JobFilter::default()
        };
        let grams = JobSearch::parse("abc").unwrap().grams(TenantNo(7));
        let (tenant, sort) = (TenantNo(7), JobSort::default());
        let query = ListQuery { tenant, filter: &filter, sort, now: Timestamp::from_micros(9) };
        let step = [("limit", ListValue::Int(Some(3)))];
        for (name, value) in [
            ("tenant", ListValue::Int(Some(7))),
            ("now", ListValue::Int(Some(9))),
            ("lane", ListValue::Int(Some(Lane::Batch as i64))),
            ("executor", ListValue::Text(Some("http".into()))),
            ("status", ListValue::Int(None)),
            ("labels", ListValue::Text(Some(r#"[["a","b"]]"#.into()))),
            ("label_values", ListValue::Texts(vec!["b".into()])),
            ("limit", ListValue::Int(Some(3))),
            ("search", ListValue::Int(Some(1))),
            ("search_grams", ListValue::Grams(grams)),
        ] {
            assert_eq!(query.value(name, &step), value, "{name}");
        }
    }
}
