//! `evenkeel job stats`

use evenkeel_core::Timestamp;
use serde_json::Value;

use super::find_id;
use crate::Result;
use crate::cli::Session;
use crate::cli::run::when;
use crate::output::duration_ms;

pub(super) async fn stats(session: &Session, job: &str) -> Result {
    let id = find_id(&session.client, job).await?;
    let answer = session.client.get(&["jobs", &id, "stats"]).await?;
    session.answer(&answer, &words(&answer.value, session.now()))
}

fn words(stats: &Value, now: Timestamp) -> String {
    let when = |field: &str| when(&stats[field], now, "never");
    let rate = stats["success_rate"].as_f64();
    let rate = rate.map_or_else(String::new, |rate| format!(" ({:.1} % succeeded)", rate * 100.0));
    let mut text = format!(
        "{} executions: {} succeeded, {} failed{rate}\n",
        stats["total_executions"], stats["successful_runs"], stats["failed_runs"]
    );
    if let Some(average) = stats["average_duration_ms"].as_u64() {
        text.push_str(&format!("  takes      about {}\n", duration_ms(average)));
    }
    text.push_str(&format!("  last run   {}\n", when("last_execution_at")));
    text.push_str(&format!("  last good  {}\n", when("last_success_at")));
    text.push_str(&format!("  next run   {}", when("next_scheduled_at")));
    if let Some(failures @ 1..) = stats["consecutive_failures"].as_u64() {
        text.push_str(&format!("\n  failed {failures} times in a row"));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stats_are_described() {
        let now: Timestamp = "2026-12-01T09:00:00Z".parse().unwrap();
        let stats = json!({
            "total_executions": 101, "successful_runs": 95, "failed_runs": 5,
            "average_duration_ms": 145_000, "last_execution_at": "2026-12-01T08:57:00Z",
            "last_success_at": null, "next_scheduled_at": "2026-12-01T09:27:00Z",
            "success_rate": 0.95, "consecutive_failures": 2,
        });
        let text = words(&stats, now);
        let first = "101 executions: 95 succeeded, 5 failed (95.0 % succeeded)\n";
        assert!(text.starts_with(first), "{text}");
        for line in ["last run   3m ago", "last good  never", "failed 2 times in a row"] {
            assert!(text.contains(line), "{text}");
        }
    }
}
