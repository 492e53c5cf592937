//! Checks whether the server allows jobs that run programs.

use serde_json::json;

use crate::client::Client;
use crate::{Exit, Failure, Result};

/// Returns a remark for a preview if the server may refuse jobs that run programs. If `creating` is
/// true, returns an error instead, because the server would refuse every imported job.
pub(super) async fn shell(client: Option<&Client>, creating: bool) -> Result<Option<String>> {
    let needed = "the jobs run programs: the server needs --enable-shell".to_owned();
    let Some(client) = client else { return Ok(Some(needed)) };
    match runs_programs(client).await {
        Ok(true) => Ok(None),
        Ok(false) if creating => {
            Err(Failure::failed("this server runs no programs for this tenant")
                .or_else("start it with `evenkeel serve --enable-shell`, or --enable-shell=TENANT"))
        }
        Ok(false) => Ok(Some(format!("{needed}, which this server does not have"))),
        Err(failure) if creating => Err(failure),
        // A preview needs no server.
        Err(_) => Ok(Some(needed)),
    }
}

/// Sends a job with a blank name, which the server always refuses, and checks whether the response
/// also refuses the executor.
async fn runs_programs(client: &Client) -> Result<bool> {
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
