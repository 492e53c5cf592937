//! Responses of the server, and the error messages for refused requests.

use serde_json::Value;

use super::Endpoint;
use crate::{Exit, Failure, Result};

#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// The body as received.
    pub text: String,
    pub value: Value,
}

impl Answer {
    pub(super) fn read(status: u16, text: String, endpoint: &Endpoint) -> Result<Self> {
        let value = serde_json::from_str::<Value>(&text);
        match (status, value) {
            (200..=299, Ok(value)) => Ok(Self { text, value }),
            (200..=299, Err(_)) => {
                let what = format!("the program at {} is not an Evenkeel server", endpoint.url);
                Err(Failure::failed(what).or_else("check --url or EVENKEEL_URL"))
            }
            (_, value) => Err(refusal(status, value.ok(), endpoint)),
        }
    }

    pub fn text_of(&self, field: &str) -> &str {
        self.value[field].as_str().unwrap_or_default()
    }

    pub fn list_of(&self, field: &str) -> &[Value] {
        self.value[field].as_array().map_or(&[], Vec::as_slice)
    }
}

const HIGHER_ROLE: &str = "use a token with a higher role: `evenkeel token create --role operator`";
const LISTS: &str = "`evenkeel job list`, `run list`, `targets list`, `dead-letters list`, \
                     `page list` and `rebalance --list` list what exists";

/// Turns an error response into a failure. The server supplies the error message, and the client
/// adds a hint for the user.
fn refusal(status: u16, problem: Option<Value>, endpoint: &Endpoint) -> Failure {
    let field = |name: &str| problem.as_ref().and_then(|problem| problem[name].as_str());
    let title = field("title").map_or_else(|| format!("the server answered {status}"), Into::into);
    let what = match (status, field("detail").filter(|detail| !detail.is_empty())) {
        // With status 404, 409 or 412, the response's `detail` is a complete error message.
        (404 | 409 | 412, Some(detail)) => detail.to_owned(),
        // The hint already lists all errors, so the error message contains only the title.
        (422, Some(_)) if all_errors(problem.as_ref()).is_some() => title,
        (_, Some(detail)) => format!("{title}: {detail}"),
        (_, None) => title,
    };
    let hint = |text: &str| Some(text.to_owned());
    let (exit, way_out) = match status {
        401 => (Exit::Failed, hint(token_hint(endpoint))),
        403 => (Exit::Failed, hint(HIGHER_ROLE)),
        404 => (Exit::NotFound, hint(LISTS)),
        409 => (Exit::Conflict, taken(problem.as_ref())),
        412 => (Exit::Conflict, hint("see it with `evenkeel job show`, then change it again")),
        422 => (Exit::Failed, all_errors(problem.as_ref())),
        500..=599 => (Exit::Failed, hint("try again later; the server's log has details")),
        _ => (Exit::Failed, None),
    };
    let mut failure = Failure::new(exit, what);
    failure.way_out = way_out;
    failure.problem = problem;
    failure
}

fn token_hint(endpoint: &Endpoint) -> &'static str {
    if endpoint.token.is_some() {
        "create a new token with `evenkeel token create` on the server's machine, and set \
         EVENKEEL_TOKEN to it"
    } else {
        "set EVENKEEL_TOKEN to the output of `evenkeel token create` on the server's machine"
    }
}

fn taken(problem: Option<&Value>) -> Option<String> {
    let problem = problem?;
    match problem["type"].as_str() {
        Some("/problems/plan-changed" | "/problems/plan-expired") => {
            return Some("preview again with `evenkeel rebalance --preview`".into());
        }
        Some("/problems/rebalance-under-way") => {
            let id = problem["rebalance"]["id"].as_str()?;
            return Some(format!(
                "`evenkeel rebalance --show {id}` shows its progress, `--stop {id}` stops it"
            ));
        }
        _ => {}
    }
    let id = problem["existing_id"].as_str()?;
    Some(format!("choose another name, or see the job with `evenkeel job show {id}`"))
}

/// Returns all errors of the problem document, one per line, if there are several.
fn all_errors(problem: Option<&Value>) -> Option<String> {
    let errors = problem?["errors"].as_array().filter(|errors| errors.len() > 1)?;
    let lines = errors.iter().map(|error| {
        let text = |name: &str| error[name].as_str().unwrap_or_default();
        format!("fix {}: {}", text("field"), text("message"))
    });
    Some(lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(status: u16, problem: &Value) -> Failure {
        let url = "http://127.0.0.1:1".parse().unwrap();
        let endpoint = Endpoint { url, token: None, is_local: true, certificate_sha256: None };
        Answer::read(status, problem.to_string(), &endpoint).unwrap_err()
    }

    #[test]
    fn each_status_has_its_exit_code() {
        let problem = json!({"title": "t", "detail": "d"});
        for (status, exit) in [
            (401, Exit::Failed),
            (404, Exit::NotFound),
            (409, Exit::Conflict),
            (422, Exit::Failed),
            (500, Exit::Failed),
        ] {
            assert_eq!(refused(status, &problem).exit, exit, "{status}");
        }
    }

    #[test]
    fn all_errors_of_a_document_are_listed() {
        let errors = json!([{"field": "name", "message": "a"}, {"field": "lane", "message": "b"}]);
        let failure = refused(422, &json!({"title": "t", "detail": "d", "errors": errors}));
        assert_eq!(failure.way_out.unwrap(), "fix name: a\nfix lane: b");
    }

    #[test]
    fn answer_of_another_program_is_reported() {
        let url = "http://127.0.0.1:1".parse().unwrap();
        let endpoint = Endpoint { url, token: None, is_local: false, certificate_sha256: None };
        let failure = Answer::read(200, "<html>".into(), &endpoint).unwrap_err();
        assert!(failure.what.contains("is not an Evenkeel server"));
        assert_eq!(
            Answer::read(502, "<html>".into(), &endpoint).unwrap_err().what,
            "the server answered 502"
        );
    }
}
