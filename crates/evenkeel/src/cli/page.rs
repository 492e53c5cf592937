//! `evenkeel page`

use clap::{Args, Subcommand};
use serde_json::Value;

use super::Session;
use super::list::{OffsetArgs, job_id};
use super::run::when;
use crate::Result;
use crate::output::{Table, Tone, clean};

#[derive(Subcommand, Clone)]
pub(super) enum PageCommand {
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
#[command(mut_arg("limit", |limit| limit.default_value("20")))]
pub(super) struct ListArgs {
    /// Words to search for; "a phrase", begin* and (after --) -without are supported
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
    /// Only pages of this job (name or id)
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Only pages whose URL begins with this text
    #[arg(long, value_name = "URL")]
    url_prefix: Option<String>,
    #[command(flatten)]
    page: OffsetArgs,
}

pub(super) async fn run(session: &Session, command: PageCommand) -> Result {
    match command {
        PageCommand::List(args) => list(session, args).await,
        PageCommand::Show { id } => {
            let answer = session.client.get(&["pages", &id]).await?;
            session.answer(&answer, &details(&answer.value))
        }
    }
}

async fn list(session: &Session, args: ListArgs) -> Result {
    let words = args.words.join(" ");
    let nothing = match words.is_empty() {
        true => "No page is stored yet: `evenkeel job create --crawl URL` crawls a site.",
        false => "No page contains these words.",
    };
    let mut query = args.page.query();
    query.extend((!words.is_empty()).then_some(("q", words)));
    query.extend(job_id(session, args.job.as_deref()).await?);
    query.extend(args.url_prefix.map(|prefix| ("url_prefix", prefix)));
    let answer = session.client.get_with(&["pages"], &query).await?;
    let rows = answer.list_of("pages").iter().map(|page| {
        let text = |field: &str| page[field].as_str().unwrap_or_default().to_owned();
        [
            (text("id"), Tone::Quiet),
            (text("title"), Tone::Plain),
            (text("url"), Tone::Plain),
            (when(&page["seen_at"], session.now(), ""), Tone::Plain),
            (plain(&text("snippet")), Tone::Quiet),
        ]
    });
    let table = Table::of(session.output, ["PAGE", "TITLE", "ADDRESS", "SEEN", "TEXT"], rows);
    let next = args.page.next(&answer, table.len());
    session.page(&answer, table, &next, nothing)
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
