//! Fetches and parses one page.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_outbound::reqwest::Url;

use crate::charset;
use crate::clock::now;
use crate::crawler::Shared;
use crate::entry::Entry;
use crate::extract::{self, Extract};
use crate::fetch::{Answer, Body, FetchError, FetchRequest, Wanted, fetch};
use crate::host_robots::{NoRobots, robots};
use crate::hosts::Host;
use crate::normal_url::host_of;

/// Pages up to this size are parsed in the async task; larger pages, and pages of jobs with fields,
/// are parsed on a blocking thread.
const SMALL_BYTES: usize = 8 * 1024;
/// Maximum number of tries for a page if its host responds with errors.
pub(crate) const TRIES: u8 = 3;
/// Maximum number of tries for a page that times out, because each try takes the whole timeout.
const TRIES_IF_SLOW: u8 = 2;

/// One visited page of the queue, with the result of the visit.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) no: u64,
    pub(crate) entry: Entry,
    pub(crate) found: VisitResult,
    pub(crate) status: Option<u16>,
    pub(crate) bytes: usize,
    pub(crate) took: Duration,
}

/// The result of a visit.
#[derive(Debug)]
pub(crate) enum VisitResult {
    Page(Box<ReadPage>),
    /// The server reports that the page is equal to its stored version.
    Unchanged,
    Gone,
    /// The `Location` header of the response.
    Redirect(String),
    Forbidden,
    /// The page may exist, but is not saved for the given reason.
    Skipped(String),
    /// Robots.txt could not be read, so the page was not requested.
    RobotsUnavailable(String),
    /// The visit failed but may succeed later; the page is tried at most `tries` times.
    HostError {
        why: String,
        tries: u8,
    },
    Failed {
        why: String,
        hopeless: bool,
    },
}

#[derive(Debug)]
pub(crate) struct ReadPage {
    pub(crate) content_type: String,
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
    pub(crate) extract: Extract,
    pub(crate) hash: [u8; 32],
}

/// Visits a page: checks robots.txt, waits for a permit for its host, fetches the page and parses
/// it.
pub(crate) async fn visit(shared: Arc<Shared>, no: u64, entry: Entry) -> Visit {
    let found = VisitResult::Forbidden;
    let mut visit = Visit { no, entry, found, status: None, bytes: 0, took: Duration::ZERO };
    visit.found = request(&shared, &mut visit).await.unwrap_or_else(std::convert::identity);
    visit
}

/// Requests and parses a page. The error is the result of a visit without a usable response.
async fn request(shared: &Arc<Shared>, visit: &mut Visit) -> Result<VisitResult, VisitResult> {
    let config = &shared.config;
    let url = &visit.entry.url;
    let host = shared.hosts.get(&host_of(url));
    let delay = allowed_delay(shared, &host, url).await?;
    let permit = host.enter(delay).await;
    let started = now();
    // A page that was parsed for other fields or by another version of the parser must be read
    // again, even if the page has not changed.
    let known = visit.entry.known.page().map(|known| &**known);
    let known = known.filter(|known| known.content_hash.ends_with(&config.parse_version));
    let ask = FetchRequest {
        url: url.clone(),
        known,
        user_agent: config.user_agent.as_ref(),
        bytes_max: config.page_bytes_max,
        time_max: config.page_timeout,
        wanted: Wanted::Pages,
    };
    let fetched = fetch(shared, &ask).await;
    drop(permit);
    visit.took = now() - started;
    let answer = fetched.map_err(|error| {
        let why = error.to_string();
        match error {
            FetchError::Refused(_) => VisitResult::Failed { why, hopeless: true },
            // A timeout does not pause the host, because a single page of a good host may be slow.
            FetchError::TimedOut(_) => VisitResult::HostError { why, tries: TRIES_IF_SLOW },
            FetchError::Failed(_) => {
                host.record_error(None);
                VisitResult::HostError { why, tries: TRIES }
            }
        }
    })?;
    visit.status = Some(answer.status);
    if let Body::Whole(bytes) | Body::Cut(bytes) = &answer.body {
        visit.bytes = bytes.len();
    }
    if matches!(answer.status, 429 | 500..) {
        let wait = host.record_error(answer.retry_after).as_secs();
        let why = format!("the answer was {}, pausing its host for {wait} s", answer.status);
        return Err(VisitResult::HostError { why, tries: TRIES });
    }
    host.recovered();
    let is_known = known.is_some();
    Ok(judge(shared, &visit.entry, answer, is_known).await)
}

/// Returns the delay between requests to the host, or why the page may not be requested.
async fn allowed_delay(shared: &Shared, host: &Host, url: &Url) -> Result<Duration, VisitResult> {
    let delay = shared.config.delay;
    if !shared.config.obey_robots {
        return Ok(delay);
    }
    match robots(host, url, shared).await {
        Ok(rules) if rules.allows(url) => Ok(delay.max(rules.delay.unwrap_or_default())),
        Ok(_) => Err(VisitResult::Forbidden),
        Err(NoRobots { why, refused: true }) => Err(VisitResult::Failed { why, hopeless: true }),
        Err(NoRobots { why, refused: false }) => Err(VisitResult::RobotsUnavailable(why)),
    }
}

async fn judge(shared: &Arc<Shared>, entry: &Entry, answer: Answer, is_known: bool) -> VisitResult {
    match answer.status {
        304 if is_known => VisitResult::Unchanged,
        204 | 205 => VisitResult::Skipped("no content".into()),
        200..=299 => read(shared, entry, answer).await,
        301 | 302 | 303 | 307 | 308 => match answer.location {
            Some(location) => VisitResult::Redirect(location),
            None => VisitResult::Skipped("a redirect to nowhere".into()),
        },
        404 | 410 => VisitResult::Gone,
        status => VisitResult::Skipped(format!("the answer was {status}")),
    }
}

async fn read(shared: &Arc<Shared>, entry: &Entry, mut answer: Answer) -> VisitResult {
    let body = match std::mem::replace(&mut answer.body, Body::Unread) {
        Body::Whole(body) => body,
        Body::Cut(_) => {
            let most = shared.config.page_bytes_max;
            return VisitResult::Skipped(format!("larger than {most} bytes"));
        }
        Body::Unread => {
            return VisitResult::Skipped(format!("{} is not read", answer.content_type));
        }
    };
    let is_html = match answer.content_type.as_str() {
        "text/plain" => false,
        "" if body.contains(&0) => return VisitResult::Skipped("of an unknown kind".into()),
        "" => body.trim_ascii_start().starts_with(b"<"),
        _ => true,
    };
    let (shared, url) = (Arc::clone(shared), entry.url.clone());
    let is_quick = body.len() <= SMALL_BYTES && shared.config.fields.is_empty();
    let work = move || {
        let text = charset::decode(&body, answer.charset.as_deref());
        let mut extract = if is_html {
            let name = &shared.settings.robots_name;
            extract::html(&text, &url, name, &shared.config.fields)?
        } else {
            extract::plain(&text)
        };
        extract.directives.noindex |= answer.directives.noindex;
        if answer.directives.nofollow {
            extract.directives.nofollow = true;
            extract.links.clear();
        }
        let hash = extract.content_hash(shared.config.parse_version);
        let content_type = match (answer.content_type, is_html) {
            (kind, true) if kind.is_empty() => "text/html".into(),
            (kind, false) if kind.is_empty() => "text/plain".into(),
            (kind, _) => kind,
        };
        let (etag, last_modified) = (answer.etag, answer.last_modified);
        Ok(ReadPage { content_type, etag, last_modified, extract, hash })
    };
    // A page that makes the parser panic fails without affecting other pages, because each page is
    // parsed with a new parser.
    let read: Option<Result<ReadPage, extract::TooHard>> = if is_quick {
        catch_unwind(AssertUnwindSafe(work)).ok()
    } else {
        tokio::task::spawn_blocking(work).await.ok()
    };
    match read {
        Some(Ok(page)) => VisitResult::Page(Box::new(page)),
        Some(Err(extract::TooHard)) => {
            VisitResult::Skipped("it takes too much time or memory to read".into())
        }
        None => VisitResult::Failed { why: "the parser failed".into(), hopeless: false },
    }
}
