//! Getting one page.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::charset;
use crate::clock::now;
use crate::crawler::Shared;
use crate::entry::Entry;
use crate::extract::{self, Extract};
use crate::fetch::{Answer, Ask, Body, FetchError, Wanted, fetch};
use crate::host_robots::{Asker, NoRobots, robots};
use crate::normal_url::host_of;

/// Pages up to this size are read on the spot, larger ones and those with fields on a thread for
/// heavy work.
const SMALL_BYTES: usize = 8 * 1024;
/// Tries of a page whose host is in trouble.
pub(crate) const TRIES: u8 = 3;
/// Tries of a page that is too slow: each costs its whole time.
const TRIES_IF_SLOW: u8 = 2;

/// A page that was asked for.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) no: u64,
    pub(crate) entry: Entry,
    pub(crate) found: Found,
    pub(crate) status: Option<u16>,
    pub(crate) bytes: usize,
    pub(crate) took: Duration,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Found {
    Page(Box<FoundPage>),
    /// It is as it was known.
    Unchanged,
    Gone,
    /// To there, as the server says.
    Redirect(String),
    /// Robots.txt does not allow it.
    Forbidden,
    /// It is there, but not for us.
    Skipped(String),
    /// Its host does not say what is allowed, so it was not asked for.
    NoRules(String),
    /// It may go better later, if it was tried less often than this.
    Trouble {
        why: String,
        tries: u8,
    },
    Failed {
        why: String,
        hopeless: bool,
    },
}

/// A page that was read.
#[derive(Debug)]
pub(crate) struct FoundPage {
    pub(crate) content_type: String,
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
    pub(crate) extract: Extract,
    pub(crate) hash: [u8; 32],
}

/// Gets a page: asks robots.txt, waits its turn, fetches, reads.
pub(crate) async fn visit(shared: Arc<Shared>, no: u64, entry: Entry) -> Visit {
    let mut visit =
        Visit { no, entry, found: Found::Forbidden, status: None, bytes: 0, took: Duration::ZERO };
    let (config, settings) = (&shared.config, &shared.settings);
    let url = &visit.entry.url;
    let host = shared.hosts.get(&host_of(url));
    let mut delay = config.delay;
    if config.obey_robots {
        let asker = Asker {
            outbound: &shared.outbound,
            robots_name: &settings.robots_name,
            delay,
            silence: &shared.silence,
        };
        match robots(&host, url, asker).await {
            Ok(rules) if rules.allows(url) => delay = delay.max(rules.delay.unwrap_or_default()),
            Ok(_) => return visit,
            Err(NoRobots { why, refused }) => {
                visit.found = match refused {
                    true => Found::Failed { why, hopeless: true },
                    false => Found::NoRules(why),
                };
                return visit;
            }
        }
    }
    let permit = host.enter(delay).await;
    let started = now();
    let ask = Ask {
        url: url.clone(),
        // A page that was read in another way has to be read again, changed or not.
        known: visit
            .entry
            .known
            .page()
            .map(|known| &**known)
            .filter(|known| known.content_hash.ends_with(&config.reading)),
        user_agent: config.user_agent.as_ref(),
        bytes_max: config.page_bytes_max,
        time_max: config.page_timeout,
        wanted: Wanted::Pages,
        silence: &shared.silence,
    };
    let fetched = fetch(&shared.outbound, &ask, &settings.robots_name).await;
    drop(permit);
    visit.took = now() - started;
    let answer = match fetched {
        Ok(answer) => answer,
        Err(error) => {
            let why = error.to_string();
            visit.found = match error {
                FetchError::Refused(_) => Found::Failed { why, hopeless: true },
                // One page may be slow on a host that is well.
                FetchError::TimedOut(_) => Found::Trouble { why, tries: TRIES_IF_SLOW },
                FetchError::Failed(_) => {
                    host.trouble(None);
                    Found::Trouble { why, tries: TRIES }
                }
            };
            return visit;
        }
    };
    visit.status = Some(answer.status);
    if let Body::Whole(bytes) | Body::Cut(bytes) = &answer.body {
        visit.bytes = bytes.len();
    }
    if matches!(answer.status, 429 | 500..) {
        let wait = host.trouble(answer.retry_after).as_secs();
        let why = format!("the answer was {}, its host is left alone for {wait} s", answer.status);
        visit.found = Found::Trouble { why, tries: TRIES };
        return visit;
    }
    host.well();
    let is_known = ask.known.is_some();
    visit.found = judge(&shared, &visit.entry, answer, is_known).await;
    visit
}

async fn judge(shared: &Arc<Shared>, entry: &Entry, answer: Answer, is_known: bool) -> Found {
    match answer.status {
        304 if is_known => Found::Unchanged,
        204 | 205 => Found::Skipped("no content".into()),
        200..=299 => read(shared, entry, answer).await,
        301 | 302 | 303 | 307 | 308 => match answer.location {
            Some(location) => Found::Redirect(location),
            None => Found::Skipped("a redirect to nowhere".into()),
        },
        404 | 410 => Found::Gone,
        status => Found::Skipped(format!("the answer was {status}")),
    }
}

async fn read(shared: &Arc<Shared>, entry: &Entry, mut answer: Answer) -> Found {
    let body = match std::mem::replace(&mut answer.body, Body::Unread) {
        Body::Whole(body) => body,
        Body::Cut(_) => {
            let most = shared.config.page_bytes_max;
            return Found::Skipped(format!("larger than {most} bytes"));
        }
        Body::Unread => return Found::Skipped(format!("{} is not read", answer.content_type)),
    };
    let is_html = match answer.content_type.as_str() {
        "text/plain" => false,
        "" if body.contains(&0) => return Found::Skipped("of an unknown kind".into()),
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
        extract.orders.noindex |= answer.orders.noindex;
        if answer.orders.nofollow {
            extract.orders.nofollow = true;
            extract.links.clear();
        }
        let hash = extract.content_hash(shared.config.reading);
        let content_type = match (answer.content_type, is_html) {
            (kind, true) if kind.is_empty() => "text/html".into(),
            (kind, false) if kind.is_empty() => "text/plain".into(),
            (kind, _) => kind,
        };
        let (etag, last_modified) = (answer.etag, answer.last_modified);
        Ok(FoundPage { content_type, etag, last_modified, extract, hash })
    };
    // A page that breaks its reader is lost, and nothing else. Its reader is not used again.
    let read: Option<Result<FoundPage, extract::TooHard>> = if is_quick {
        catch_unwind(AssertUnwindSafe(work)).ok()
    } else {
        tokio::task::spawn_blocking(work).await.ok()
    };
    match read {
        Some(Ok(page)) => Found::Page(Box::new(page)),
        Some(Err(extract::TooHard)) => {
            Found::Skipped("it takes too much time or memory to read".into())
        }
        None => Found::Failed { why: "reading it went wrong".into(), hopeless: false },
    }
}
