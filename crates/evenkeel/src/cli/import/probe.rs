//! Can the server run programs?

use serde_json::json;

use crate::client::Client;
use crate::{Exit, Failure};

/// What is to be said about the server and programs. If jobs are to be made and it runs none, that
/// is a failure: each of them would be refused.
pub(super) async fn shell(
    client: Option<&Client>,
    acting: bool,
) -> Result<Option<String>, Failure> {
    let needed = "the jobs run programs: the server needs --enable-shell".to_owned();
    let Some(client) = client else { return Ok(Some(needed)) };
    match runs_programs(client).await {
        Ok(true) => Ok(None),
        Ok(false) if acting => Err(Failure::failed("this server runs no programs for this tenant")
            .or_else("start it with `evenkeel serve --enable-shell`, or --enable-shell=TENANT")),
        Ok(false) => Ok(Some(format!("{needed}, which the one that was asked does not have"))),
        Err(failure) if acting => Err(failure),
        // A look needs no server.
        Err(_) => Ok(Some(needed)),
    }
}

/// Asks for a job that can't be made, because its name is blank, and sees what else is wrong.
async fn runs_programs(client: &Client) -> Result<bool, Failure> {
    let document = json!({
        "name": " ", "executor_type": "shell", "executor_config": {"argv": ["true"]},
    });
    let Err(failure) = client.post(&["jobs"], Some(&document)).await else { return Ok(true) };
    let errors = failure.problem.as_ref().and_then(|problem| problem["errors"].as_array());
    match errors {
        Some(errors) if failure.exit == Exit::Failed => {
            let blamed = |error: &serde_json::Value| error["field"] == "executor_type";
            Ok(!errors.iter().any(blamed))
        }
        _ => Err(failure),
    }
}
