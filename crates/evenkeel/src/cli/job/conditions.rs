//! `evenkeel job conditions` and `evenkeel job explain`

use clap::Args;
use evenkeel_core::Timestamp;
use serde_json::Value;

use super::super::Context;
use super::super::run::moment;
use super::find_id;
use crate::Failure;
use crate::client::Client;
use crate::output::{Table, Tone, ago, clean};

#[derive(Args, Clone)]
pub(super) struct ConditionsArgs {
    /// Only jobs in this condition: warning or error
    #[arg(long, value_name = "LEVEL")]
    #[arg(value_parser = ["warning", "error"], ignore_case = true)]
    level: Option<String>,
    /// The largest number of jobs
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Continue after another list
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub(super) async fn list(
    context: &Context,
    client: &Client,
    args: ConditionsArgs,
) -> Result<(), Failure> {
    let limit = args.limit.to_string();
    let level = args.level.map(|level| level.to_uppercase());
    let mut query = vec![("limit", limit.as_str())];
    query.extend(level.as_deref().map(|level| ("condition", level)));
    query.extend(args.cursor.as_deref().map(|cursor| ("cursor", cursor)));
    let answer = client.get(&["conditions"], &query).await?;
    if context.output.is_json() {
        return context.output.line(&answer.text);
    }
    let counts = &answer.value["counts"];
    let mut text =
        format!("{} OK, {} WARNING, {} ERROR\n", counts["ok"], counts["warning"], counts["error"]);
    let jobs = answer.list_of("jobs");
    if !jobs.is_empty() {
        let headings = ["JOB", "CONDITION", "WHY", "TURNS TO ERROR", "SINCE"];
        let mut table = Table::new(context.output, &headings);
        for job in jobs {
            table.row(row(job, context.now()));
        }
        text.push('\n');
        text.push_str(&table.render());
    }
    if let Some(cursor) = answer.value["next_cursor"].as_str() {
        let level =
            level.map_or_else(String::new, |level| format!(" --level {}", level.to_lowercase()));
        text.push_str(&format!(
            "\n{} of {}; more with: evenkeel job conditions{level} --cursor {}",
            jobs.len(),
            answer.value["total"],
            clean(cursor)
        ));
    }
    context.output.line(&text)
}

fn row(job: &Value, now: Timestamp) -> [(String, Tone); 5] {
    let text = |field: &str| job[field].as_str().map(String::from);
    let when = |field: &str| moment(&job[field]).map_or_else(|| "-".into(), |at| ago(at, now));
    let condition = text("condition").unwrap_or_default();
    let tone = tone_of_condition(&condition);
    [
        (text("name").or(text("id")).unwrap_or_default(), Tone::Plain),
        (condition, tone),
        (text("reason").unwrap_or_default(), Tone::Plain),
        (when("error_at"), Tone::Plain),
        (when("since"), Tone::Plain),
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

pub(super) async fn explain(context: &Context, client: &Client, job: &str) -> Result<(), Failure> {
    let id = find_id(client, job).await?;
    let answer = client.get(&["jobs", &id, "explain"], &[]).await?;
    if context.output.is_json() {
        return context.output.line(&answer.text);
    }
    context.output.line(&explained(&answer.value, context.now()))
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
