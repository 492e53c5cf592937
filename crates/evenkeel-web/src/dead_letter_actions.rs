//! Forms that redrive or delete dead letters.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use maud::html;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::backend::{Refused, escape};
use crate::pages::dead_letters::PATH;
use crate::pages::items;
use crate::pages::lists::{address, count};
use crate::session::{Session, TokenForm};
use crate::{Web, layout, text};

const ACTIONS: [&str; 2] = ["redrive", "delete"];
/// Dead letters that the API handles with one request.
const BATCH: usize = 1000;
/// Refusals that the page after a command lists.
const REFUSALS_MAX: usize = 50;

/// Redrives or deletes one dead letter.
pub(crate) async fn act_on_letter(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Path((id, action)): Path<(String, String)>,
    Form(form): Form<TokenForm>,
) -> Response {
    if let Some(refused) = refuse(&web, &session, &form.token, &action) {
        return refused;
    }
    // The bulk command answers a deletion like a redrive, so both need only one path.
    let ids = vec![Value::String(id)];
    let mut outcome = Outcome::default();
    if let Err(refused) = outcome.apply(&web, &session, &action, ids).await {
        return layout::refused(&session, PATH, &refused);
    }
    outcome.show(&session, &action, "")
}

#[derive(Deserialize)]
pub(crate) struct LettersForm {
    #[serde(default)]
    token: String,
    #[serde(default)]
    job: String,
    #[serde(default)]
    redriven: String,
    /// The time at which the dead letters were counted, in microseconds.
    until: i64,
}

/// Redrives or deletes all dead letters that the confirmation counted.
pub(crate) async fn act_on_letters(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Path(action): Path<String>,
    Form(form): Form<LettersForm>,
) -> Response {
    if let Some(refused) = refuse(&web, &session, &form.token, &action) {
        return refused;
    }
    // All ids are read before the first command, because a command changes which letters match.
    let ids = match matching(&web, &session, &form).await {
        Ok(ids) => ids,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let mut outcome = Outcome::default();
    for batch in ids.chunks(BATCH) {
        if let Err(refused) = outcome.apply(&web, &session, &action, batch.to_vec()).await {
            return layout::refused(&session, PATH, &refused);
        }
    }
    outcome.show(&session, &action, &form.job)
}

fn refuse(web: &Web, session: &Session, token: &str, action: &str) -> Option<Response> {
    let unknown = || {
        let detail = format!("There is no command {action:?}; use one of {ACTIONS:?}.");
        layout::error(StatusCode::NOT_FOUND, "Unknown command", &detail)
    };
    session.refuse_form(web, token).or_else(|| (!ACTIONS.contains(&action)).then(unknown))
}

/// Returns the ids of the dead letters that match and existed when they were counted. The store keeps
/// at most 10,000 dead letters per tenant.
async fn matching(web: &Web, session: &Session, form: &LettersForm) -> Result<Vec<Value>, Refused> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let fields =
            [("job_id", form.job.as_str()), ("redriven", &form.redriven), ("cursor", &cursor)];
        let list = address(&format!("/api/v1/dead-letters?limit={BATCH}"), &fields);
        let answer = web.backend.get(&session.credential, &list).await?;
        let counted = items(&answer, "dead_letters").iter().filter(|letter| {
            text::micros(&letter["died_at"]).is_some_and(|died_at| died_at <= form.until)
        });
        ids.extend(counted.map(|letter| letter["id"].clone()));
        match answer["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return Ok(ids),
        }
    }
}

/// What became of a command.
#[derive(Default)]
struct Outcome {
    done: u64,
    refused: u64,
    /// Id and reason of the first refusals.
    refusals: Vec<(String, String)>,
}

impl Outcome {
    async fn apply(
        &mut self,
        web: &Web,
        session: &Session,
        action: &str,
        ids: Vec<Value>,
    ) -> Result<(), Refused> {
        let path = format!("/api/v1/dead-letters/{action}");
        let answer =
            web.backend.post(&session.credential, &path, Some(&json!({"ids": ids}))).await?;
        for result in items(&answer, "results") {
            if result["ok"] == true {
                self.done += 1;
                continue;
            }
            self.refused += 1;
            if self.refusals.len() < REFUSALS_MAX {
                let detail = text::plain(&result["error"]["detail"]);
                self.refusals.push((text::plain(&result["id"]), detail));
            }
        }
        Ok(())
    }

    fn show(&self, session: &Session, action: &str, job: &str) -> Response {
        let number = self.done.to_string();
        if self.refused == 0 {
            let fields = [("job", job), ("done", action), ("count", number.as_str())];
            return Redirect::to(&address(PATH, &fields)).into_response();
        }
        let done = if action == "redrive" { "redriven" } else { "deleted" };
        let body = html! {
            h1 { (count(self.done, "dead letter")) " " (done) ", " (self.refused) " not" }
            p role="alert" { "These dead letters were not " (done) ":" }
            table {
                thead { tr { th scope="col" { "Dead letter" } th scope="col" { "Reason" } } }
                tbody {
                    @for (id, detail) in &self.refusals {
                        tr { th scope="row" { a href={ "/runs/" (escape(id)) } { code { (id) } } }
                            td { (detail) } }
                    }
                }
            }
            @if self.refused > self.refusals.len() as u64 {
                p { "The list shows the first " (REFUSALS_MAX) "." }
            }
            p { a href=(address(PATH, &[("job", job)])) { "Back to the dead letters" } }
        };
        layout::page(session, PATH, "Dead letters", &body)
    }
}
