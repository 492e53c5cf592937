//! Web pages that crawls have stored.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::lists::{address, input, search};
use super::{PAGE_ITEMS, counted, items, job_link, next_page};
use crate::backend::escape;
use crate::session::Session;
use crate::{Web, layout, text};

const PATH: &str = "/pages";

#[derive(Deserialize)]
pub(crate) struct Parameters {
    #[serde(default)]
    q: String,
    #[serde(default)]
    job: String,
    #[serde(default)]
    url_prefix: String,
    #[serde(default)]
    cursor: String,
}

pub(crate) async fn list(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(Parameters { q, job, url_prefix, cursor }): Query<Parameters>,
) -> Response {
    let fields =
        [("q", q.as_str()), ("job_id", &job), ("url_prefix", &url_prefix), ("cursor", &cursor)];
    let path = address(&format!("/api/v1/pages?limit={PAGE_ITEMS}"), &fields);
    let answer = match web.backend.get(&session.credential, &path).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let (pages, now) = (items(&answer, "pages"), web.now());
    let filter = [("q", q.as_str()), ("job", &job), ("url_prefix", &url_prefix)];
    let body = html! {
        h1 { "Crawled pages" }
        form.filter method="get" action=(PATH) {
            (search(&q))
            (input("job", "Job", &job, "name or id"))
            (input("url_prefix", "URL starts with", &url_prefix, "https://example.com/"))
            button { "Show" }
        }
        @if pages.is_empty() {
            @if filter.iter().all(|(_, value)| value.is_empty()) {
                p { "No page is stored. A job with the executor " code { "crawl" }
                    " stores the pages that it reads: " code {
                    "evenkeel job create --name site --every 1h --crawl https://example.com" } }
            } @else {
                p { "No page matches. " a href=(PATH) { "Show all pages" } }
            }
        } @else {
            p { (counted(&answer, "page")) }
            table aria-label="Crawled pages" {
                thead { tr { th scope="col" { "Page" } th scope="col" { "Excerpt" }
                    th scope="col" { "Changed" } th scope="col" { "Seen" } th scope="col" { "Job" } } }
                tbody {
                    @for page in pages {
                        tr { th scope="row" { (page_link(page)) br; small { (text::plain(&page["url"])) } }
                            td.cut { (snippet(page["snippet"].as_str().unwrap_or_default())) }
                            td { (text::time(&page["changed_at"], now)) }
                            td { (text::time(&page["seen_at"], now)) }
                            td { (job_link(&page["job_id"], &Value::from("job"))) } }
                    }
                }
            }
        }
        (next_page(&answer, PATH, &filter))
    };
    layout::page(&session, PATH, "Crawled pages", &body)
}

fn page_link(page: &Value) -> Markup {
    let title = page["title"].as_str().filter(|title| !title.trim().is_empty());
    let target = format!("{PATH}/{}", escape(&text::plain(&page["id"])));
    html! { a href=(target) { (title.unwrap_or("(no title)")) } }
}

/// Shows an excerpt with its search matches. The excerpt is HTML with no tag but `<mark>`; it is read
/// back into texts, so that this page never contains markup that came from another site.
fn snippet(html_text: &str) -> Markup {
    html! {
        @for (place, part) in html_text.split("<mark>").enumerate() {
            @if place == 0 { (plain(part)) } @else {
                @let (marked, rest) = part.split_once("</mark>").unwrap_or((part, ""));
                mark { (plain(marked)) } (plain(rest))
            }
        }
    }
}

fn plain(escaped: &str) -> String {
    let text = escaped.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    // `&amp;` is last, so that the text `&lt;` of a page stays as it is.
    text.replace("&#39;", "'").replace("&amp;", "&")
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
) -> Response {
    let path = format!("/api/v1/pages/{}", escape(&id));
    let page = match web.backend.get(&session.credential, &path).await {
        Ok(page) => page,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let now = web.now();
    let title = page["title"].as_str().filter(|title| !title.trim().is_empty());
    let title = title.unwrap_or("(no title)");
    let json = |name: &str| serde_json::to_string_pretty(&page[name]).unwrap_or_default();
    let body = html! {
        h1 { (title) }
        dl {
            // The address is no link: it comes from another site.
            dt { "URL" } dd { code { (text::plain(&page["url"])) } }
            dt { "Job" } dd { (job_link(&page["job_id"], &Value::Null)) }
            dt { "Status" } dd { (text::plain(&page["status"])) " " (text::plain(&page["content_type"])) }
            dt { "Depth" } dd { (text::plain(&page["depth"])) }
            dt { "First seen" } dd { (text::time(&page["first_seen_at"], now)) }
            dt { "Changed" } dd { (text::time(&page["changed_at"], now)) }
            dt { "Seen" } dd { (text::time(&page["seen_at"], now)) }
        }
        h2 { "Text" }
        pre { (text::plain(&page["text"])) }
        details { summary { "Fields" } pre { (json("fields")) } }
        details { summary { "Metadata" } pre { (json("metadata")) } }
        details {
            summary { (items(&page, "links").len()) " links" }
            ul { @for link in items(&page, "links") { li { code { (text::plain(link)) } } } }
        }
    };
    layout::page(&session, PATH, title, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_keeps_its_marks_and_no_other_markup() {
        let shown = snippet("a &lt;b&gt; &amp;lt; <mark>x&amp;y</mark> <i>z").into_string();
        assert_eq!(shown, "a &lt;b&gt; &amp;lt; <mark>x&amp;y</mark> &lt;i&gt;z");
    }
}
