//! `evenkeel page`

use clap::{Args, Subcommand};
use serde_json::Value;

use super::Context;
use super::list::{job_id, next_offset};
use super::run::moment;
use crate::Failure;
use crate::client::Client;
use crate::config::raw::RawClient;
use crate::output::{Table, Tone, ago, clean};

#[derive(Args, Clone)]
pub struct PageArgs {
    #[command(flatten)]
    client: RawClient,
    #[command(subcommand)]
    command: PageCommand,
}

#[derive(Subcommand, Clone)]
enum PageCommand {
    /// Search crawled pages, best match first; without search words, list all pages
    #[command(after_help = "Examples:
  evenkeel page list
  evenkeel page list --job news rust
  evenkeel page list -- '\"job scheduler\"' 'sched*' -python
  evenkeel page list --url-prefix https://example.com/blog/ --json | jq '.pages[].url'")]
    List(ListArgs),
    /// Show one page with its text
    #[command(after_help = "Examples:
  evenkeel page show 5c3b8f0e-3a1d-5d1e-9a43-0c8d1f7a2b66")]
    Show {
        /// Id of the page
        id: String,
    },
}

#[derive(Args, Clone)]
struct ListArgs {
    /// Words to search for; "a phrase", begin* and (after --) -without are supported
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
    /// Only pages of this job (name or id)
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Only pages whose URL begins with this text
    #[arg(long, value_name = "URL")]
    url_prefix: Option<String>,
    /// Maximum number of entries
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// Number of entries to skip
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u32,
}

pub(super) fn run(context: &Context, args: PageArgs) -> Result<(), Failure> {
    let client = context.client(args.client)?;
    context.runtime()?.block_on(async {
        match args.command {
            PageCommand::List(args) => list(context, &client, args).await,
            PageCommand::Show { id } => show(context, &client, &id).await,
        }
    })
}

async fn list(context: &Context, client: &Client, args: ListArgs) -> Result<(), Failure> {
    let (limit, offset) = (args.limit.to_string(), args.offset.to_string());
    let words = args.words.join(" ");
    let job = job_id(client, args.job.as_deref()).await?;
    let mut query = vec![("limit", limit.as_str()), ("offset", offset.as_str())];
    query.extend((!words.is_empty()).then_some(("q", words.as_str())));
    query.extend(job.as_deref().map(|job| ("job_id", job)));
    query.extend(args.url_prefix.as_deref().map(|prefix| ("url_prefix", prefix)));
    let answer = client.get(&["pages"], &query).await?;
    if context.output.is_json() {
        return context.output.line(&answer.text);
    }
    let pages = answer.list_of("pages");
    if pages.is_empty() {
        return context.output.line(match words.is_empty() {
            true => "No page is stored yet: `evenkeel job create --crawl URL` crawls a site.",
            false => "No page contains these words.",
        });
    }
    let mut table = Table::new(context.output, &["PAGE", "TITLE", "ADDRESS", "SEEN", "TEXT"]);
    for page in pages {
        let text = |field: &str| page[field].as_str().unwrap_or_default().to_owned();
        let seen = moment(&page["seen_at"]).map(|at| ago(at, context.now()));
        table.row([
            (text("id"), Tone::Quiet),
            (text("title"), Tone::Plain),
            (text("url"), Tone::Plain),
            (seen.unwrap_or_default(), Tone::Plain),
            (plain(&text("snippet")), Tone::Quiet),
        ]);
    }
    let mut rendered = table.render();
    rendered.push_str(&next_offset(&answer, pages.len(), args.offset));
    context.output.line(&rendered)
}

async fn show(context: &Context, client: &Client, id: &str) -> Result<(), Failure> {
    let answer = client.get(&["pages", id], &[]).await?;
    context.output.answer(&answer, &details(&answer.value))
}

fn details(page: &Value) -> String {
    let mut text = String::new();
    for (name, field) in [
        ("page", "id"),
        ("title", "title"),
        ("address", "url"),
        ("job", "job_id"),
        ("type", "content_type"),
        ("changed", "changed_at"),
        ("seen", "seen_at"),
    ] {
        if let Some(value) = page[field].as_str() {
            text.push_str(&format!("{name:<9}{}\n", clean(value)));
        }
    }
    for (name, field) in [("field", "fields"), ("meta", "metadata")] {
        for (key, value) in page[field].as_object().into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), String::from);
            text.push_str(&format!("{name:<9}{} = {}\n", clean(key), clean(&value)));
        }
    }
    text.push('\n');
    for line in page["text"].as_str().unwrap_or_default().lines() {
        text.push_str(&clean(line));
        text.push('\n');
    }
    text
}

/// Removes the markup that highlights matches in a search result.
fn plain(html: &str) -> String {
    let text = html.replace("<mark>", "").replace("</mark>", "");
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
        .iter()
        .fold(text, |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippet_is_shown_without_markup() {
        assert_eq!(plain("a &lt;b&gt; <mark>c</mark> &amp;lt;"), "a <b> c &lt;");
    }
}
