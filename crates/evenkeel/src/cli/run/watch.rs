//! `evenkeel run watch`

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::super::Context;
use super::details;
use crate::Failure;
use crate::client::Client;
use crate::output::clean;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);

/// Shows a run until it has ended, and then how; fails if it did.
pub(super) async fn watch(context: &Context, client: &Client, id: &str) -> Result<(), Failure> {
    let target = if context.output.is_json() {
        ProgressDrawTarget::hidden()
    } else {
        // Hides itself where nobody looks.
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    let last = loop {
        let answer = client.get(&["executions", id], &[]).await?;
        if !matches!(answer.text_of("status"), "pending" | "running") {
            break answer;
        }
        show(&bar, &answer.value);
        tokio::time::sleep(LOOK).await;
    };
    bar.finish_and_clear();
    if context.output.is_json() {
        context.output.line(&last.text)?;
    } else {
        context.output.line(&details(&last.value, context.now()))?;
    }
    match last.text_of("status") {
        "completed" | "partly_failed" | "skipped" => Ok(()),
        status => Err(Failure::failed(format!("the run has ended: {}", clean(status)))),
    }
}

fn show(bar: &ProgressBar, run: &Value) {
    let progress = &run["progress"];
    let (done, total) = (progress["done"].as_u64(), progress["total"].as_u64());
    let style = match total {
        Some(_) => "{bar:30} {pos}/{len} {elapsed} {wide_msg}",
        None => "{spinner} {elapsed} {wide_msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    if let Some(total) = total {
        bar.set_length(total);
    }
    bar.set_position(done.unwrap_or(0));
    let status = run["status"].as_str().unwrap_or_default();
    bar.set_message(clean(progress["message"].as_str().unwrap_or(status)));
    bar.tick();
}
