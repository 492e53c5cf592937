//! `evenkeel job conditions` and `evenkeel job explain`

use clap::Args;
use evenkeel_core::Timestamp;
use serde_json::Value;

use super::find_id;
use crate::Result;
use crate::cli::Session;
use crate::cli::list::{CursorArgs, next_page};
use crate::cli::run::{moment, when};
use crate::output::{Table, Tone, ago, clean};

#[derive(Args, Clone)]
#[command(mut_arg("limit", |limit| limit.help("The largest number of jobs").default_value("50")))]
pub struct ConditionsArgs {
    /// Only jobs in this condition: warning or error
    #[arg(long, value_name = "LEVEL")]
    #[arg(value_parser = ["warning", "error"], ignore_case = true)]
    level: Option<String>,
    #[command(flatten)]
    page: CursorArgs,
}

pub(super) async fn list(session: &Session, args: ConditionsArgs) -> Result {
    let mut query = args.page.query();
    query.extend(args.level.as_ref().map(|level| ("condition", level.to_uppercase())));
    let answer = session.client.get_with(&["conditions"], &query).await?;
    let counts = &answer.value["counts"];
    let mut text =
        format!("{} OK, {} WARNING, {} ERROR\n", counts["ok"], counts["warning"], counts["error"]);
    let headings = ["JOB", "CONDITION", "WHY", "TURNS TO ERROR", "SINCE"];
    let rows = answer.list_of("jobs").iter().map(|job| row(job, session.now()));
    let table = Table::of(session.output, headings, rows);
    let level = args.level.map_or_else(String::new, |it| format!(" --level {}", it.to_lowercase()));
    let next = next_page(&answer, table.len(), &format!("job conditions{level}"));
    if !table.is_empty() {
        text.push_str(&format!("\n{}", table.render()));
    }
    session.answer(&answer, &(text + &next))
}

fn row(job: &Value, now: Timestamp) -> [(String, Tone); 5] {
    let text = |field: &str| job[field].as_str().map(String::from);
    let condition = text("condition").unwrap_or_default();
    let tone = tone_of_condition(&condition);
    [
        (text("name").or(text("id")).unwrap_or_default(), Tone::Plain),
        (condition, tone),
        (text("reason").unwrap_or_default(), Tone::Plain),
        (when(&job["error_at"], now, "-"), Tone::Plain),
        (when(&job["since"], now, "-"), Tone::Plain),
    ]
}

pub(super) fn tone_of_condition(condition: &str) -> Tone {
    match condition {
        "OK" => Tone::Good,
        "WARNING" => Tone::Busy,
        "ERROR" => Tone::Bad,
        _ => Tone::Plain,
    }
}

pub(super) async fn explain(session: &Session, job: &str, at: Option<String>) -> Result {
    let id = find_id(&session.client, job).await?;
    let query = Vec::from_iter(at.map(|at| ("at", at)));
    let answer = session.client.get_with(&["jobs", &id, "explain"], &query).await?;
    let text = match &answer.value["past"] {
        Value::Null => explained(&answer.value, session.now()),
        past => past_explained(past),
    };
    session.answer(&answer, &text)
}

/// Describes what became of a past time.
fn past_explained(past: &Value) -> String {
    let string = |field: &str| clean(past[field].as_str().unwrap_or_default());
    let mut text = format!("{}: {}\n", string("verdict"), string("message"));
    if past["run_id"].is_string() {
        text.push_str(&format!("Details with: evenkeel run show {}\n", string("run_id")));
    }
    text
}

fn explained(answer: &Value, now: Timestamp) -> String {
    let string = |field: &str| answer[field].as_str();
    let name = string("name").or(string("job_id")).unwrap_or_default();
    let mut text = format!("{} is {}.\n", clean(name), clean(string("status").unwrap_or_default()));
    for reason in answer["reasons"].as_array().into_iter().flatten() {
        let message = reason["message"].as_str().unwrap_or_default();
        text.push_str(&format!("  - {}\n", clean(message)));
    }
    if let Some(start) = moment(&answer["next_possible_start"]) {
        text.push_str(&format!("It may start {} ({start}).\n", ago(start, now)));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn past_time_is_explained_with_its_run() {
        let past = json!({"verdict": "failed", "message": "Its run failed.", "run_id": "0-1"});
        assert_eq!(
            past_explained(&past),
            "failed: Its run failed.\nDetails with: evenkeel run show 0-1\n"
        );
        let paused = json!({"verdict": "paused", "message": "It was paused.", "run_id": null});
        assert_eq!(past_explained(&paused), "paused: It was paused.\n");
    }

    #[test]
    fn explanation_lists_reasons() {
        let now: Timestamp = "2026-12-01T09:00:00Z".parse().unwrap();
        let answer = json!({
            "name": "news", "status": "scheduled",
            "reasons": [{"code": "not_due", "message": "Its next time is soon."}],
            "next_possible_start": "2026-12-01T09:03:00Z",
        });
        assert_eq!(
            explained(&answer, now),
            "news is scheduled.\n  - Its next time is soon.\n\
             It may start in 3m (2026-12-01T09:03:00.000000Z).\n"
        );
    }
}
