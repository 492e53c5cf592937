//! The job form as JSON.

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::job_fields::Values;
use crate::backend::FieldError;

/// Fields of a job that the text begins with. Other forms of the schedule are left out, because a
/// schedule in two forms is refused if only one of them is edited.
const EDITABLE: [&str; 48] = [
    "name", "configuration", "description", "schedule", "timezone", "dst_gap", "dst_overlap",
    "exact", "start_at", "end_at", "max_runs", "blackout_periods", "avoid_blackout",
    "prefer_window", "executor_type", "executor_config", "payload", "url", "target", "source_id",
    "source_name", "retry_policy", "max_retries", "retry_backoff", "retry_backoff_seconds",
    "retry_backoff_cap_seconds", "retry_stages", "retry_jitter", "retry_jitter_percent",
    "timeout_sec", "max_expected_duration", "max_allowed_duration", "average_duration_override",
    "cost", "priority", "lane", "pool", "concurrency_key", "concurrency_limit",
    "dont_run_on_nodes", "misfire", "misfire_after", "overlap", "on_lost_worker", "max_crashes",
    "on_exhausted", "on_failure", "metadata",
];

/// Returns the text with which the page begins: the job, or an example of a new one.
pub(super) fn text_of(job: Option<&Value>) -> String {
    let document = match job {
        Some(job) => {
            let fields = EDITABLE.iter().filter(|name| !job[**name].is_null());
            fields
                .map(|name| ((*name).to_owned(), job[*name].clone()))
                .collect::<Map<_, _>>()
                .into()
        }
        None => json!({
            "name": "hello", "schedule": {"kind": "interval", "every": "1h"},
            "timezone": "UTC", "executor_type": "noop", "payload": null,
        }),
    };
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

/// Returns the fields in the text: for an edit only those that differ from the job, so that fields
/// which the user did not touch keep the values that others have given them.
pub(super) fn document(values: &Values, job: Option<&Value>) -> Result<Value, Vec<FieldError>> {
    let refuse = |message: String| vec![FieldError { field: "json".into(), message }];
    let text = values.get("json").map_or("", String::as_str);
    let document: Value = serde_json::from_str(text)
        .map_err(|error| refuse(format!("The text is not JSON: {error}.")))?;
    let Value::Object(mut fields) = document else {
        return Err(refuse("The text must be a JSON object: {\"name\": …}.".into()));
    };
    if let Some(job) = job {
        fields.retain(|name, value| job[name.as_str()] != *value);
    }
    Ok(Value::Object(fields))
}

pub(super) fn render(values: &Values, errors: &[FieldError], is_new: bool) -> Markup {
    let text = values.get("json").map_or("", String::as_str);
    html! {
        label for="json" { "Job as JSON" }
        @for error in errors {
            p.problem {
                @if error.field != "json" { code { (error.field) } ": " }
                (error.message)
            }
        }
        textarea id="json" name="json" rows="30" cols="80" spellcheck="false"
            aria-describedby="json-help" aria-invalid=[(!errors.is_empty()).then_some("true")] {
            "\n" (text)
        }
        small id="json-help" {
            @if is_new { "All fields are in the " a href="/docs/api" { "documentation of the API" } "." }
            @else { "A field that you leave out keeps its value; null removes a value." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_keeps_only_fields_that_differ() {
        let job =
            json!({"id": "1", "name": "a", "priority": 3, "status": "scheduled", "cost": null});
        let text = text_of(Some(&job));
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({"name": "a", "priority": 3})
        );
        let values = |json: &str| Values::from([("json".to_owned(), json.to_owned())]);
        let edited = document(&values(r#"{"name": "a", "priority": 4}"#), Some(&job));
        assert_eq!(edited, Ok(json!({"priority": 4})));
        assert!(document(&values("[]"), None).is_err());
        assert!(document(&values("{"), None).is_err());
    }
}
