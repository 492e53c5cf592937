//! `evenkeel run logs`

use clap::Args;
use serde_json::Value;

use super::super::Context;
use crate::Failure;
use crate::client::Client;
use crate::output::clean_lines;

/// Whose logs, and how much of them.
#[derive(Args, Clone)]
pub(super) struct LogsArgs {
    /// The id of a run or of one of its attempts
    id: String,
    /// Go on until it has ended
    #[arg(short, long)]
    follow: bool,
    /// Only the last so many lines
    #[arg(short = 'n', long, value_name = "N")]
    tail: Option<u32>,
}

pub(super) async fn logs(
    context: &Context,
    client: &Client,
    args: &LogsArgs,
) -> Result<(), Failure> {
    let tail = args.tail.map(|tail| tail.to_string());
    let mut query: Vec<(&str, &str)> = tail.iter().map(|tail| ("tail", tail.as_str())).collect();
    let path = ["executions", &args.id, "logs"];
    if !args.follow {
        let answer = client.get(&path, &query).await?;
        if context.output.is_json() {
            return context.output.line(&answer.text);
        }
        let text = clean_lines(answer.text_of("text"));
        return if text.is_empty() { Ok(()) } else { context.output.line(&text) };
    }
    query.push(("follow", "true"));
    let mut stream = client.listen(&path, &query, None).await?;
    while let Some(message) = stream.next().await {
        let told: Value = serde_json::from_str(&message.data).unwrap_or_default();
        if context.output.is_json() {
            if !message.data.is_empty() {
                context.output.line(&message.data)?;
            }
        } else if let Some(text) = told["text"].as_str() {
            if told["skipped"] == true {
                context.output.line("-- something was printed too fast to follow --")?;
            }
            context.output.piece(&clean_lines(text))?;
        }
        if message.event == "end" {
            return Ok(());
        }
    }
    Err(Failure::failed("the stream ended before the run did").or_else("follow it again"))
}
