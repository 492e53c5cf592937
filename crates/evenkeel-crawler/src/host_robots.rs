//! What a host's robots.txt says, asked once an hour.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_outbound::Outbound;
use evenkeel_outbound::reqwest::Url;
use evenkeel_outbound::reqwest::header::HeaderValue;
use tokio::time::Instant;

use crate::clock::now;
use crate::fetch::{Answer, Ask, Body, FetchError, Wanted, fetch};
use crate::hosts::Host;
use crate::robots::{ROBOTS_BYTES_MAX, Robots};

/// How long an answer is believed.
const FRESH: Duration = Duration::from_secs(3600);
/// How long a host without an answer is left alone.
const FRESH_SILENCE: Duration = Duration::from_secs(60);
/// By the RFC.
const REDIRECTS_MAX: usize = 5;
const TIME_MAX: Duration = Duration::from_secs(20);

/// What a host said.
#[derive(Debug)]
pub(crate) struct RobotsCache {
    until: Instant,
    rules: Result<Arc<Robots>, NoRobots>,
}

/// A host whose robots.txt could not be read, so that nothing of it may be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NoRobots {
    pub(crate) why: String,
    /// Is that because the host may not be called at all?
    pub(crate) refused: bool,
}

/// Who asks, and how.
#[derive(Copy, Clone)]
pub(crate) struct Asker<'a> {
    pub(crate) outbound: &'a Outbound,
    pub(crate) robots_name: &'a str,
    pub(crate) user_agent: Option<&'a HeaderValue>,
    pub(crate) delay: Duration,
}

/// The rules of the host that `url` is on. Whoever comes while they are fetched waits for the
/// same answer.
pub(crate) async fn robots(
    host: &Host,
    url: &Url,
    asker: Asker<'_>,
) -> Result<Arc<Robots>, NoRobots> {
    let mut cache = host.robots.lock().await;
    if let Some(cache) = &*cache
        && now() < cache.until
    {
        return cache.rules.clone();
    }
    let rules = ask(host, url, asker).await.map(Arc::new);
    let fresh = if rules.is_ok() { FRESH } else { FRESH_SILENCE };
    *cache = Some(RobotsCache { until: now() + fresh, rules: rules.clone() });
    rules
}

async fn ask(host: &Host, url: &Url, asker: Asker<'_>) -> Result<Robots, NoRobots> {
    let silent = |why: String| NoRobots { why: format!("robots.txt: {why}"), refused: false };
    let mut place = url.join("/robots.txt").map_err(|error| silent(error.to_string()))?;
    for _ in 0..=REDIRECTS_MAX {
        let request = Ask {
            url: place.clone(),
            known: None,
            user_agent: asker.user_agent,
            bytes_max: ROBOTS_BYTES_MAX,
            time_max: TIME_MAX,
            wanted: Wanted::All,
        };
        let _permit = host.enter(asker.delay).await;
        let answer = match fetch(asker.outbound, &request, asker.robots_name).await {
            Ok(answer) => answer,
            Err(FetchError::Refused(why)) => return Err(NoRobots { why, refused: true }),
            Err(error) => return Err(silent(error.to_string())),
        };
        match answer.status {
            300..400 => match answer.location.and_then(|to| place.join(&to).ok()) {
                Some(to) if matches!(to.scheme(), "http" | "https") => place = to,
                _ => return Ok(Robots::default()),
            },
            429 | 500.. => {
                host.trouble(answer.retry_after);
                return Err(silent(format!("the answer was {}", answer.status)));
            }
            200..300 => return Ok(parse(answer, asker.robots_name)),
            _ => return Ok(Robots::default()),
        }
    }
    // Too many redirects are as good as no file.
    Ok(Robots::default())
}

fn parse(answer: Answer, name: &str) -> Robots {
    match answer.body {
        Body::Whole(bytes) | Body::Cut(bytes) => {
            Robots::parse(&String::from_utf8_lossy(&bytes), name)
        }
        Body::Unread => Robots::default(),
    }
}
