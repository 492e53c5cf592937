//! Fetches and caches the robots.txt of hosts.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_outbound::reqwest::Url;
use tokio::time::Instant;

use crate::clock::now;
use crate::crawler::Shared;
use crate::fetch::{Answer, Body, FetchError, FetchRequest, Wanted, fetch};
use crate::hosts::Host;
use crate::robots::{ROBOTS_BYTES_MAX, Robots};

/// How long robots.txt is cached.
const FRESH: Duration = Duration::from_secs(3600);
/// Maximum age at which a cached robots.txt is still used if it cannot be refreshed (RFC 9309).
const STALE_MAX: Duration = Duration::from_secs(24 * 3600);
/// The time between a failed refresh of a cached robots.txt and the next try.
const REFRESH_PAUSE: Duration = Duration::from_secs(60);
/// The time after which robots.txt is requested again from a host with a forbidden address.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);
/// RFC 9309.
const REDIRECTS_MAX: usize = 5;
const TIME_MAX: Duration = Duration::from_secs(20);

/// The cached robots.txt of a host.
#[derive(Debug, Default)]
pub(crate) struct RobotsCache {
    rules: Option<Rules>,
    /// The last failure to read robots.txt, if no rules are cached.
    silence: Option<(Instant, NoRobots)>,
}

#[derive(Debug)]
struct Rules {
    robots: Arc<Robots>,
    read_at: Instant,
    ask_at: Instant,
}

/// Robots.txt could not be read, so no page of the host may be crawled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NoRobots {
    pub(crate) why: String,
    /// True if the address guard refuses the address of the host.
    pub(crate) refused: bool,
}

/// Returns the robots.txt rules of the host of `url`. Concurrent callers wait for the same
/// response. After a failure, the next caller tries again once the host's pause after errors has
/// passed.
pub(crate) async fn robots(
    host: &Host,
    url: &Url,
    shared: &Shared,
) -> Result<Arc<Robots>, NoRobots> {
    let came_at = now();
    let mut cache = host.robots.lock().await;
    if let Some(rules) = &cache.rules
        && now() < rules.ask_at
    {
        return Ok(Arc::clone(&rules.robots));
    }
    if let Some((since, silence)) = &cache.silence
        && (*since > came_at || (silence.refused && now() < *since + REFUSED_PAUSE))
    {
        return Err(silence.clone());
    }
    let answer = ask(host, url, shared).await;
    let now = now();
    match (answer, &mut cache.rules) {
        (Ok(robots), rules) => {
            let robots = Arc::new(robots);
            let read = Rules { robots: Arc::clone(&robots), read_at: now, ask_at: now + FRESH };
            *rules = Some(read);
            cache.silence = None;
            Ok(robots)
        }
        (Err(silence), Some(old)) if !silence.refused && now < old.read_at + STALE_MAX => {
            old.ask_at = now + REFRESH_PAUSE;
            Ok(Arc::clone(&old.robots))
        }
        (Err(silence), rules) => {
            *rules = None;
            cache.silence = Some((now, silence.clone()));
            Err(silence)
        }
    }
}

async fn ask(host: &Host, url: &Url, shared: &Shared) -> Result<Robots, NoRobots> {
    let silent = |why: String| NoRobots { why: format!("robots.txt: {why}"), refused: false };
    let mut place = url.join("/robots.txt").map_err(|error| silent(error.to_string()))?;
    for _ in 0..=REDIRECTS_MAX {
        let request = FetchRequest {
            url: place.clone(),
            known: None,
            // The request uses the server's user agent, because all jobs share robots.txt.
            user_agent: None,
            bytes_max: ROBOTS_BYTES_MAX,
            time_max: TIME_MAX,
            wanted: Wanted::All,
        };
        let _permit = host.enter(shared.config.delay).await;
        let answer = match fetch(shared, &request).await {
            Ok(answer) => answer,
            Err(FetchError::Refused(why)) => return Err(NoRobots { why, refused: true }),
            Err(error) => {
                host.record_error(None);
                return Err(silent(error.to_string()));
            }
        };
        match answer.status {
            300..400 => match answer.location.and_then(|to| place.join(&to).ok()) {
                Some(to) if matches!(to.scheme(), "http" | "https") => place = to,
                _ => return Ok(Robots::default()),
            },
            429 | 500.. => {
                host.record_error(answer.retry_after);
                return Err(silent(format!("the answer was {}", answer.status)));
            }
            200..300 => return Ok(parse(answer, &shared.settings.robots_name)),
            _ => return Ok(Robots::default()),
        }
    }
    // If robots.txt redirects too often, the host is treated as if it had no robots.txt.
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::get;
    use evenkeel_outbound::{Outbound, OutboundSettings};
    use serde_json::json;

    use super::*;
    use crate::config::CrawlConfig;
    use crate::hosts::Hosts;
    use crate::settings::CrawlerSettings;
    use crate::silence::Silence;

    /// Starts a server that responds normally to its first request, and then with 503.
    async fn host_with_one_answer(asked: &Arc<AtomicUsize>) -> Url {
        let asked = Arc::clone(asked);
        let answer = get(move || {
            let is_first = asked.fetch_add(1, Ordering::SeqCst) == 0;
            let status = if is_first { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            async move { (status, "user-agent: *\ndisallow: /no") }
        });
        let router = Router::new().route("/robots.txt", answer);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Url::parse(&format!("http://{address}/no")).unwrap()
    }

    #[tokio::test]
    async fn old_rules_are_used_for_a_day_if_they_cannot_be_refreshed() {
        let asked = Arc::default();
        let url = host_with_one_answer(&asked).await;
        let settings = OutboundSettings {
            allow_networks: vec!["127.0.0.1/32".parse().unwrap()],
            ..OutboundSettings::default()
        };
        let outbound = Outbound::new(settings).unwrap();
        let pause = Duration::from_millis(1);
        let settings = CrawlerSettings { error_pause: pause, ..CrawlerSettings::default() };
        let config = json!({"url": "http://a/", "delay_ms": 0});
        let shared = &Shared {
            outbound,
            hosts: Arc::new(Hosts::new(&settings)),
            config: CrawlConfig::read(&config, &settings).unwrap(),
            silence: Silence::default(),
            settings: Arc::new(settings),
        };
        let host = shared.hosts.get("a");
        assert!(!robots(&host, &url, shared).await.unwrap().allows(&url));
        let age = async |by: Duration| {
            let mut cache = host.robots.lock().await;
            let rules = cache.rules.as_mut().unwrap();
            rules.read_at -= by;
            rules.ask_at = rules.read_at + FRESH;
        };
        age(2 * FRESH).await;
        for _ in 0..3 {
            assert!(!robots(&host, &url, shared).await.unwrap().allows(&url));
        }
        // A failed refresh of robots.txt is not repeated immediately.
        assert_eq!(asked.load(Ordering::SeqCst), 2);
        age(STALE_MAX).await;
        let silence = robots(&host, &url, shared).await.unwrap_err();
        assert!(silence.why.contains("503") && !silence.refused, "{silence:?}");
        // After the cached rules are dropped, each caller requests robots.txt again.
        robots(&host, &url, shared).await.unwrap_err();
        assert_eq!(asked.load(Ordering::SeqCst), 4);
    }
}
