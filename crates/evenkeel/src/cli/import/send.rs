//! Creates the jobs over HTTP.

use evenkeel_commands::import::Planned;
use evenkeel_core::chance::Chance as _;
use evenkeel_engine::RandomChance;
use serde::Serialize;
use serde_json::Value;

use super::source::BATCH;
use crate::cli::bulk;
use crate::client::Client;
use crate::{Exit, Result};

/// Number of jobs per request if the jobs are paused right after their creation. Small requests
/// keep a job from becoming due before it is paused.
const PAUSED_BATCH: usize = 50;

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub(super) enum Sent {
    Created {
        id: String,
    },
    /// A job with this name already existed and was not changed.
    AlreadyThere,
    Refused {
        error: String,
    },
    /// The job was created but could not be paused.
    NotPaused {
        id: String,
        error: String,
    },
}

pub(super) struct Sender {
    client: Client,
    chance: RandomChance,
}

impl Sender {
    pub(super) fn new(client: Client) -> Self {
        Self { client, chance: RandomChance::from_system() }
    }

    /// Creates the jobs of planned import entries. Returns one result per entry, in the same order;
    /// `None` for an entry without a job.
    pub(super) async fn send(&self, planned: &[Planned]) -> Result<Vec<Option<Sent>>> {
        let mut sent = vec![None; planned.len()];
        for paused in [false, true] {
            let size = if paused { PAUSED_BATCH } else { BATCH };
            let belongs =
                |at: &usize| planned[*at].document.is_some() && planned[*at].paused == paused;
            let indexes: Vec<usize> = (0..planned.len()).filter(belongs).collect();
            for batch in indexes.chunks(size) {
                for (at, answer) in batch.iter().zip(self.create(planned, batch).await?) {
                    sent[*at] = Some(if paused { self.pause(answer).await } else { answer });
                }
            }
        }
        Ok(sent)
    }

    async fn create(&self, planned: &[Planned], indexes: &[usize]) -> Result<Vec<Sent>> {
        let mut lines = String::new();
        for document in indexes.iter().filter_map(|at| planned[*at].document.as_ref()) {
            lines.push_str(&document.to_string());
            lines.push('\n');
        }
        let key = format!("import-{:016x}{:016x}", self.chance.bits(), self.chance.bits());
        let answers = bulk::send(&self.client, lines.as_bytes(), &key).await?;
        let answer_of = |n: usize| {
            let number = n as u64 + 1;
            answers.iter().find(|answer| answer["line"] == number).map_or_else(
                || Sent::Refused { error: "the server sent no answer for this line".into() },
                read,
            )
        };
        Ok((0..indexes.len()).map(answer_of).collect())
    }

    async fn pause(&self, sent: Sent) -> Sent {
        let Sent::Created { id } = sent else { return sent };
        match self.client.post(&["jobs", &id, "pause"], None).await {
            Ok(_) => Sent::Created { id },
            // The server answers with a conflict if another client has already paused the job.
            Err(failure) if failure.exit == Exit::Conflict => Sent::Created { id },
            Err(failure) => Sent::NotPaused { id, error: failure.what },
        }
    }
}

/// Reads the server's result for one job of an import request.
fn read(answer: &Value) -> Sent {
    match answer["status"].as_u64() {
        Some(200..=299) => Sent::Created { id: answer["id"].as_str().unwrap_or_default().into() },
        // Status 409 with the type `request-under-way` does not mean that the job exists.
        Some(409) if answer["error"]["type"] == "/problems/name-taken" => Sent::AlreadyThere,
        _ => Sent::Refused { error: message(&answer["error"]) },
    }
}

/// Returns the message of an error, which is a text or a problem document.
fn message(error: &Value) -> String {
    let text = |value: &Value, field: &str| value[field].as_str().map(String::from);
    let all = error["errors"].as_array().map(|errors| {
        let lines = errors.iter().map(|error| {
            let of = |field| text(error, field).unwrap_or_default();
            format!("{}: {}", of("field"), of("message"))
        });
        lines.collect::<Vec<_>>().join("; ")
    });
    all.filter(|message| !message.is_empty())
        .or_else(|| error.as_str().map(String::from))
        .or_else(|| text(error, "detail"))
        .or_else(|| text(error, "title"))
        .unwrap_or_else(|| "the server gave no reason".into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_answer_is_parsed() {
        let created = read(&json!({"line": 1, "status": 201, "id": "x", "error": null}));
        assert_eq!(created, Sent::Created { id: "x".into() });
        let conflict = |kind: &str| {
            let error = json!({"type": format!("/problems/{kind}"), "detail": "why"});
            read(&json!({"line": 1, "status": 409, "error": error}))
        };
        assert_eq!(conflict("name-taken"), Sent::AlreadyThere);
        for kind in ["request-under-way", "answer-not-kept"] {
            assert_eq!(conflict(kind), Sent::Refused { error: "why".into() });
        }
        for (error, message) in [
            (json!("no"), "no"),
            (json!({"title": "t", "detail": "d"}), "d"),
            (
                json!({"title": "t", "errors": [{"field": "url", "message": "is none"}]}),
                "url: is none",
            ),
            (json!(null), "the server gave no reason"),
        ] {
            let refused = Sent::Refused { error: message.into() };
            assert_eq!(read(&json!({"line": 1, "status": 422, "error": error})), refused);
        }
    }
}
