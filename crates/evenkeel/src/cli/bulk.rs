//! Sends the definitions of many jobs with one request.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;

use crate::client::Client;
use crate::failure::Because as _;
use crate::{Exit, Result};

/// Delays before each repetition of a failed request, in milliseconds. The sum of the delays is
/// slightly longer than the time for which an idempotency key stays locked after a server crash.
const PAUSES: [u64; 9] = [250, 500, 1000, 2000, 4000, 8000, 15_000, 30_000, 60_000];

/// Sends JSON documents of jobs, one per line, until every line has a final result or all delays
/// have passed. The idempotency key keeps the server from processing a line twice.
pub(super) async fn send(client: &Client, lines: &[u8], key: &str) -> Result<Vec<Value>> {
    let post = || client.post_lines(&["jobs", "bulk"], lines.to_vec(), key);
    let mut pauses = PAUSES.iter();
    loop {
        let answered = match post().await {
            Err(failure) if failure.exit == Exit::Unreachable => post().await,
            answered => answered,
        };
        let answers = match answered {
            Ok(text) => Ok(read(&text)?),
            Err(failure) if failure.problem.as_ref().is_some_and(is_temporary) => Err(failure),
            Err(failure) => return Err(failure),
        };
        let is_whole = answers.as_ref().is_ok_and(|answers| first_open(lines, answers).is_none());
        match pauses.next() {
            Some(pause) if !is_whole => tokio::time::sleep(Duration::from_millis(*pause)).await,
            _ => return answers,
        }
    }
}

fn read(answers: &str) -> Result<Vec<Value>> {
    let answers = answers.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    answers.because("the server's answer can't be parsed")
}

/// Returns the number of the first line without a final result. If its database fails, the server
/// sends no result for the lines after the failure.
pub(super) fn first_open(bytes: &[u8], answers: &[Value]) -> Option<u64> {
    let settled: HashSet<u64> = answers
        .iter()
        .filter(|answer| is_final(answer))
        .filter_map(|answer| answer["line"].as_u64())
        .collect();
    let mut lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    let open = lines.find(|(n, line)| !line.trim_ascii().is_empty() && !settled.contains(n));
    open.map(|(n, _)| n)
}

/// True if the server would give the same result for the line if the client sent it again.
pub(super) fn is_final(answer: &Value) -> bool {
    !is_temporary(answer) && !is_temporary(&answer["error"])
}

/// True if the server refused a request with a temporary error and may accept it later.
fn is_temporary(refusal: &Value) -> bool {
    refusal["status"] == 503 || refusal["type"] == "/problems/request-under-way"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_open_until_they_have_a_final_answer() {
        let part = b"{}\n \r\n{}\n{}";
        let good = |line: u64| json!({"line": line, "status": 201, "id": "x"});
        assert_eq!(first_open(part, &[good(1), good(3), good(4)]), None);
        assert_eq!(first_open(part, &[good(1), good(3)]), Some(4));
        assert_eq!(first_open(part, &[]), Some(1));
        let with = |answer: Value| first_open(part, &[good(1), answer, good(4)]);
        assert_eq!(with(json!({"line": 3, "status": 503, "error": {}})), Some(3));
        let under_way = json!({"type": "/problems/request-under-way", "status": 409});
        assert_eq!(with(json!({"line": 3, "status": 409, "error": under_way})), Some(3));
        let taken = json!({"type": "/problems/name-taken", "status": 409});
        assert_eq!(with(json!({"line": 3, "status": 409, "error": taken})), None);
    }
}
