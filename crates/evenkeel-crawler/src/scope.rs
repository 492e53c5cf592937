//! Decides which URLs belong to a crawl.

use evenkeel_outbound::reqwest::Url;

use crate::glob::Glob;

/// Which URLs a crawl may visit, relative to its start URLs.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Reach {
    /// The crawl stays on the host and port of the start URL. A leading `www.` is ignored. On
    /// default ports, http and https count as the same site, because sites redirect from http to
    /// https or back.
    #[default]
    Host,
    /// Like `Host`, but the crawl also visits subdomains (`docs.example.com` for `example.com`), on
    /// the default ports or the port of the start URL.
    Site,
    /// Like `Host`, but the crawl visits only URLs below the path of the start URL. For the start
    /// URLs `/docs/` and `/docs/index.html`, this path is `/docs/`. The start URL `/docs` allows
    /// `/docs` and URLs below `/docs/`.
    Prefix,
}

#[derive(Clone, Debug)]
pub(crate) struct Scope {
    areas: Vec<Area>,
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

/// The area of URLs that a crawl may visit because of one start URL.
#[derive(Clone, Debug)]
struct Area {
    reach: Reach,
    host: String,
    is_name: bool,
    port: Option<u16>,
    path: String,
}

/// A pattern for whole URLs or, if it begins with `/`, for the path and query of URLs.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    glob: Glob,
    after_host: bool,
}

impl Pattern {
    pub(crate) fn new(pattern: &str) -> Self {
        Self { glob: Glob::whole(pattern), after_host: pattern.starts_with('/') }
    }

    fn matches(&self, url: &Url) -> bool {
        self.glob.matches(if self.after_host { after_host(url) } else { url.as_str() })
    }
}

/// Returns the path and query of a URL.
pub(crate) fn after_host(url: &Url) -> &str {
    let text = url.as_str();
    let start = text.find("://").map_or(0, |at| at + 3);
    text[start..].find('/').map_or("/", |at| &text[start + at..])
}

impl Scope {
    pub(crate) fn new(
        starts: &[Url],
        reach: Reach,
        include: Vec<Pattern>,
        exclude: Vec<Pattern>,
    ) -> Self {
        let areas = starts.iter().map(|start| Area::new(start, reach)).collect();
        Self { areas, include, exclude }
    }

    /// True if the URL is in the area that one of the start URLs allows.
    pub(crate) fn covers(&self, url: &Url) -> bool {
        self.areas.iter().any(|area| area.covers(url))
    }

    /// True if the crawl follows links to this URL. Start URLs are visited even if the patterns
    /// exclude them.
    pub(crate) fn wants(&self, url: &Url) -> bool {
        self.covers(url)
            && (self.include.is_empty() || self.include.iter().any(|p| p.matches(url)))
            && !self.exclude.iter().any(|p| p.matches(url))
    }
}

impl Area {
    fn new(start: &Url, reach: Reach) -> Self {
        let host = bare_host(start).to_owned();
        let path = start.path();
        let last = path.rsplit('/').next().unwrap_or_default();
        // A last path segment with a dot counts as a file, so the area is its directory.
        let path = if last.contains('.') { &path[..path.len() - last.len()] } else { path };
        Self {
            reach,
            host,
            is_name: start.domain().is_some(),
            port: start.port(),
            path: path.to_owned(),
        }
    }

    fn covers(&self, url: &Url) -> bool {
        let host = bare_host(url);
        let same_host = host == self.host && url.port() == self.port;
        match self.reach {
            Reach::Host => same_host,
            Reach::Site => {
                let below = host.strip_suffix(&self.host).is_some_and(|rest| rest.ends_with('.'));
                same_host
                    || (self.is_name
                        && (below || host == self.host)
                        && (url.port().is_none() || url.port() == self.port))
            }
            Reach::Prefix => {
                let rest = url.path().strip_prefix(&self.path);
                same_host
                    && rest.is_some_and(|rest| {
                        self.path.ends_with('/') || rest.is_empty() || rest.starts_with('/')
                    })
            }
        }
    }
}

fn bare_host(url: &Url) -> &str {
    let host = url.host_str().unwrap_or_default();
    // The `www.` of `www.com` is not removed, because `com` alone is not a host name.
    host.strip_prefix("www.").filter(|rest| rest.contains('.')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn covers(reach: Reach, start: &str, other: &str) -> bool {
        Scope::new(&[url(start)], reach, Vec::new(), Vec::new()).covers(&url(other))
    }

    #[test]
    fn host_scope_ignores_www_and_tls() {
        let start = "http://example.com/a";
        for inside in ["http://example.com/", "https://www.example.com/b", "https://example.com/"] {
            assert!(covers(Reach::Host, start, inside), "{inside}");
        }
        for outside in [
            "http://example.com:8080/", "http://docs.example.com/", "http://example.org/",
            "http://notexample.com/",
        ] {
            assert!(!covers(Reach::Host, start, outside), "{outside}");
        }
        assert!(covers(Reach::Host, "http://a:81/", "http://a:81/x"));
        assert!(!covers(Reach::Host, "http://a:81/", "http://a/x"));
    }

    #[test]
    fn site_scope_includes_subdomains() {
        let start = "https://www.example.com/";
        assert!(covers(Reach::Site, start, "https://docs.example.com/"));
        assert!(covers(Reach::Site, start, "http://a.b.example.com/"));
        assert!(!covers(Reach::Site, start, "https://badexample.com/"));
        assert!(!covers(Reach::Site, start, "https://docs.example.com:8443/"));
        assert!(!covers(Reach::Site, start, "https://com/"));
        assert!(!covers(Reach::Site, "http://www.com/", "http://example.com/"));
        assert!(covers(Reach::Site, "http://www.com/", "http://a.www.com/"));
        assert!(!covers(Reach::Site, "http://1.2.3.4/", "http://5.1.2.3.4.example/"));
    }

    #[test]
    fn prefix_scope_ends_at_a_slash() {
        for (start, inside, outside) in [
            ("http://a/docs/", "http://a/docs/x", "http://a/docsx"),
            ("http://a/docs", "http://a/docs", "http://a/docs2"),
            ("http://a/docs/index.html", "http://a/docs/y", "http://a/other"),
            ("http://a/docs", "http://a/docs/x?y", "http://b/docs/x"),
        ] {
            assert!(covers(Reach::Prefix, start, inside), "{start} {inside}");
            assert!(!covers(Reach::Prefix, start, outside), "{start} {outside}");
        }
    }

    #[test]
    fn include_selects_and_exclude_wins() {
        let patterns = |texts: &[&str]| texts.iter().map(|text| Pattern::new(text)).collect();
        let scope = Scope::new(
            &[url("http://a/")],
            Reach::Host,
            patterns(&["/blog/*", "http://a/news*"]),
            patterns(&["*/drafts/*"]),
        );
        assert!(scope.wants(&url("http://a/blog/x")) && scope.wants(&url("http://a/news?x=1")));
        assert!(!scope.wants(&url("http://a/other")));
        assert!(!scope.wants(&url("http://a/blog/drafts/x")));
        assert!(!scope.wants(&url("http://b/blog/x")));
    }
}
