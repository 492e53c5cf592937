//! What robots.txt allows, by RFC 9309.

use std::time::Duration;

use evenkeel_outbound::reqwest::Url;

use crate::glob::Glob;
use crate::normal_url::tidy_percent;
use crate::scope::after_host;

/// Bytes of a robots.txt that are read; the RFC asks for at least so many.
pub(crate) const ROBOTS_BYTES_MAX: usize = 500 * 1024;
/// A crawl-delay counts up to this.
pub(crate) const CRAWL_DELAY_MAX: Duration = Duration::from_secs(60);
/// Rules that are kept, and characters of each: what is longer is no rule anyone wrote by hand.
const RULES_MAX: usize = 5000;
const RULE_CHARS_MAX: usize = 1000;
const SITEMAPS_MAX: usize = 50;

/// The rules of a host for us.
#[derive(Clone, Debug, Default)]
pub(crate) struct Robots {
    rules: Vec<Rule>,
    /// How long to wait between requests.
    pub(crate) delay: Option<Duration>,
    /// Where its sitemaps are.
    pub(crate) sitemaps: Vec<String>,
}

#[derive(Clone, Debug)]
struct Rule {
    allows: bool,
    /// The longest rule that fits wins.
    length: usize,
    glob: Glob,
}

/// The lines for one or more crawlers.
#[derive(Default)]
struct Group {
    is_ours: bool,
    is_for_all: bool,
    rules: Vec<Rule>,
    delay: Option<Duration>,
}

impl Robots {
    /// Reads the rules for the crawler called `name`, or else those for all.
    pub(crate) fn parse(text: &str, name: &str) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        let mut sitemaps = Vec::new();
        let mut rules_left = RULES_MAX;
        // Several names in a row share the rules that follow.
        let mut naming = false;
        for line in text.trim_start_matches('\u{feff}').split(['\n', '\r']) {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match (key.as_str(), groups.last_mut()) {
                ("user-agent", _) => {
                    if !naming {
                        groups.push(Group::default());
                    }
                    naming = true;
                    let product = value.split(['/', ' ']).next().unwrap_or_default();
                    if let Some(group) = groups.last_mut() {
                        group.is_ours |= product.eq_ignore_ascii_case(name);
                        group.is_for_all |= value == "*";
                    }
                }
                ("sitemap", _) if sitemaps.len() < SITEMAPS_MAX => sitemaps.push(value.to_owned()),
                ("allow" | "disallow", Some(group)) => {
                    naming = false;
                    if !value.is_empty() && value.len() <= RULE_CHARS_MAX && rules_left > 0 {
                        rules_left -= 1;
                        group.rules.push(Rule::new(key == "allow", value));
                    }
                }
                ("crawl-delay", Some(group)) => {
                    naming = false;
                    let secs = value.parse().ok().filter(|secs: &f64| *secs >= 0.0);
                    let capped = secs.map(|secs| secs.min(CRAWL_DELAY_MAX.as_secs_f64()));
                    group.delay = capped.map(Duration::from_secs_f64).or(group.delay);
                }
                _ => {}
            }
        }
        let named = groups.iter().any(|group| group.is_ours);
        let mut robots = Self { sitemaps, ..Self::default() };
        for group in groups {
            if if named { group.is_ours } else { group.is_for_all } {
                robots.rules.extend(group.rules);
                robots.delay = robots.delay.max(group.delay);
            }
        }
        robots
    }

    /// May it be fetched?
    pub(crate) fn allows(&self, url: &Url) -> bool {
        if url.path() == "/robots.txt" {
            return true;
        }
        let path = tidy_percent(after_host(url));
        let fitting = self.rules.iter().filter(|rule| rule.glob.matches(&path));
        // Of two of the same length, the one that allows.
        fitting.max_by_key(|rule| (rule.length, rule.allows)).is_none_or(|rule| rule.allows)
    }
}

impl Rule {
    fn new(allows: bool, value: &str) -> Self {
        let tidy = tidy_percent(value);
        let glob = match tidy.strip_suffix('$') {
            Some(start) => Glob::whole(start),
            None => Glob::beginning(&tidy),
        };
        Self { allows, length: tidy.len(), glob }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(robots: &str, path: &str) -> bool {
        let url = Url::parse("http://a/").unwrap().join(path).unwrap();
        Robots::parse(robots, "evenkeel").allows(&url)
    }

    #[test]
    fn the_longest_rule_wins_and_allows_in_a_tie() {
        let robots = "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /c\nAllow: /c";
        assert!(!allows(robots, "/a/x") && allows(robots, "/a/b/x"));
        assert!(allows(robots, "/c") && allows(robots, "/"));
    }

    #[test]
    fn rules_for_us_replace_those_for_all() {
        let robots = "user-agent: *\ndisallow: /\n\nUser-Agent: other\nUser-Agent: EvenKeel/2\n\
                      Disallow: /private # not this\nuser-agent: more\nDisallow: /";
        assert!(allows(robots, "/x") && !allows(robots, "/private/y"));
        assert!(!allows("user-agent: evenkeelx\nallow: /\nuser-agent: *\ndisallow: /", "/x"));
    }

    #[test]
    fn two_groups_for_us_are_one() {
        let robots = "user-agent: evenkeel\ndisallow: /a\ncrawl-delay: 1\n\
                      user-agent: x\ndisallow: /\nuser-agent: evenkeel\ndisallow: /b\ncrawl-delay: 2";
        assert!(!allows(robots, "/a") && !allows(robots, "/b") && allows(robots, "/c"));
        let delay = Robots::parse(robots, "evenkeel").delay;
        assert_eq!(delay, Some(Duration::from_secs(2)));
    }

    #[test]
    fn stars_and_ends_are_understood() {
        let robots = "user-agent: *\ndisallow: /*.pdf$\ndisallow: /x/*/y\ndisallow: /q?*s=";
        assert!(!allows(robots, "/a/b.pdf") && allows(robots, "/a/b.pdf?c"));
        assert!(!allows(robots, "/x/1/2/yz") && allows(robots, "/x/y"));
        assert!(!allows(robots, "/q?a=1&s=2") && allows(robots, "/q?a=1"));
    }

    #[test]
    fn encoding_does_not_hide_a_path() {
        let robots = "user-agent: *\ndisallow: /f%c3%bc\ndisallow: /%7euser";
        assert!(!allows(robots, "/fü/x") && !allows(robots, "/~user"));
    }

    #[test]
    fn nothing_and_rubbish_allow_everything() {
        for robots in ["", "<html>not found</html>", "disallow: /", "user-agent: *\ndisallow:"] {
            assert!(allows(robots, "/x"), "{robots}");
        }
        let robots = "user-agent: *\ndisallow: /";
        assert!(allows(robots, "/robots.txt") && !allows(robots, "/"));
    }

    #[test]
    fn delays_are_capped_and_sitemaps_found() {
        let text = "Sitemap: http://a/one.xml\nuser-agent: *\ncrawl-delay: 86400\n\
                    sitemap: http://a/two.xml\r\nuser-agent: b\ncrawl-delay: x";
        let robots = Robots::parse(text, "evenkeel");
        assert_eq!(robots.delay, Some(CRAWL_DELAY_MAX));
        assert_eq!(robots.sitemaps, ["http://a/one.xml", "http://a/two.xml"]);
        let odd = Robots::parse("user-agent: *\ncrawl-delay: -1\ncrawl-delay: NaN", "evenkeel");
        assert_eq!(odd.delay, None);
    }
}
