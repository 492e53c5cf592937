//! Parses robots.txt (RFC 9309).

use std::time::Duration;

use evenkeel_outbound::reqwest::Url;

use crate::glob::Glob;
use crate::normal_url::{URL_CHARS_MAX, tidy_percent};
use crate::scope::after_host;

/// Maximum number of bytes of robots.txt that are read; RFC 9309 requires crawlers to read at least
/// this many.
pub(crate) const ROBOTS_BYTES_MAX: usize = 500 * 1024;
/// Maximum delay between requests that robots.txt can require; a longer delay is shortened to this.
pub(crate) const CRAWL_DELAY_MAX: Duration = Duration::from_secs(60);
/// Limits for the robots.txt rules of a host: the number of rules, the bytes of each rule, and the
/// bytes of all rules. Robots.txt files that are written by hand stay below these limits.
const RULES_MAX: usize = 5000;
const RULE_CHARS_MAX: usize = 1000;
const RULES_BYTES_MAX: usize = 64 * 1024;
const SITEMAPS_MAX: usize = 50;

/// The robots.txt rules of a host that apply to this crawler.
#[derive(Clone, Debug, Default)]
pub(crate) struct Robots {
    rules: Vec<Rule>,
    /// The delay between requests that robots.txt requires.
    pub(crate) delay: Option<Duration>,
    pub(crate) sitemaps: Vec<String>,
}

#[derive(Clone, Debug)]
struct Rule {
    allows: bool,
    glob: Glob,
}

/// The rules for one user agent, or for all user agents.
#[derive(Default)]
struct Group {
    is_there: bool,
    rules: Vec<Rule>,
    bytes: usize,
    delay: Option<Duration>,
}

impl Group {
    fn add(&mut self, allows: bool, value: &str) {
        if value.is_empty() || value.len() > RULE_CHARS_MAX || self.rules.len() >= RULES_MAX {
            return;
        }
        let tidy = tidy_percent(value);
        let glob = match tidy.strip_suffix('$') {
            Some(start) => Glob::whole(start),
            None => Glob::beginning(&tidy),
        };
        if self.bytes + glob.len() <= RULES_BYTES_MAX {
            self.bytes += glob.len();
            self.rules.push(Rule { allows, glob });
        }
    }
}

impl Robots {
    /// Reads the rules for the crawler `name`, or the rules for all crawlers if no rules name this
    /// crawler. Rules for other crawlers are skipped.
    pub(crate) fn parse(text: &str, name: &str) -> Self {
        let (mut ours, mut for_all) = (Group::default(), Group::default());
        // Whether the current lines of robots.txt apply to this crawler, or to all crawlers.
        let (mut is_ours, mut is_for_all) = (false, false);
        let mut sitemaps = Vec::new();
        // Consecutive user-agent lines share the rules that follow them.
        let mut naming = false;
        for line in text.trim_start_matches('\u{feff}').split(['\n', '\r']) {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match key.as_str() {
                "user-agent" => {
                    if !naming {
                        (is_ours, is_for_all) = (false, false);
                    }
                    naming = true;
                    let product = value.split(['/', ' ']).next().unwrap_or_default();
                    is_ours |= product.eq_ignore_ascii_case(name);
                    is_for_all |= value == "*";
                    ours.is_there |= is_ours;
                }
                "sitemap" if sitemaps.len() < SITEMAPS_MAX && value.len() <= URL_CHARS_MAX => {
                    sitemaps.push(value.to_owned());
                }
                "allow" | "disallow" | "crawl-delay" => {
                    naming = false;
                    let groups = [(is_ours, &mut ours), (is_for_all, &mut for_all)];
                    for group in groups.into_iter().filter_map(|(is, group)| is.then_some(group)) {
                        match key.as_str() {
                            "crawl-delay" => group.delay = group.delay.max(read_delay(value)),
                            _ => group.add(key == "allow", value),
                        }
                    }
                }
                _ => {}
            }
        }
        let Group { mut rules, delay, .. } = if ours.is_there { ours } else { for_all };
        rules.shrink_to_fit();
        Self { rules, delay, sitemaps }
    }

    pub(crate) fn allows(&self, url: &Url) -> bool {
        if url.path() == "/robots.txt" {
            return true;
        }
        let path = tidy_percent(after_host(url));
        let fitting = self.rules.iter().filter(|rule| rule.glob.matches(&path));
        // The longest rule wins. Of two rules with the same length, the rule that allows the URL
        // wins.
        fitting.max_by_key(|rule| (rule.glob.len(), rule.allows)).is_none_or(|rule| rule.allows)
    }
}

fn read_delay(value: &str) -> Option<Duration> {
    let secs = value.parse().ok().filter(|secs: &f64| *secs >= 0.0)?;
    Some(Duration::from_secs_f64(secs.min(CRAWL_DELAY_MAX.as_secs_f64())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(robots: &str, path: &str) -> bool {
        let url = Url::parse("http://a/").unwrap().join(path).unwrap();
        Robots::parse(robots, "evenkeel").allows(&url)
    }

    #[test]
    fn longest_rule_wins_and_allows_in_a_tie() {
        let robots = "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /c\nAllow: /c";
        assert!(!allows(robots, "/a/x") && allows(robots, "/a/b/x"));
        assert!(allows(robots, "/c") && allows(robots, "/"));
    }

    #[test]
    fn own_rules_replace_the_rules_for_all() {
        let robots = "user-agent: *\ndisallow: /\n\nUser-Agent: other\nUser-Agent: EvenKeel/2\n\
                      Disallow: /private # not this\nuser-agent: more\nDisallow: /";
        assert!(allows(robots, "/x") && !allows(robots, "/private/y"));
        assert!(!allows("user-agent: evenkeelx\nallow: /\nuser-agent: *\ndisallow: /", "/x"));
    }

    #[test]
    fn two_groups_for_one_crawler_are_merged() {
        let robots = "user-agent: evenkeel\ndisallow: /a\ncrawl-delay: 1\n\
                      user-agent: x\ndisallow: /\nuser-agent: evenkeel\ndisallow: /b\ncrawl-delay: 2";
        assert!(!allows(robots, "/a") && !allows(robots, "/b") && allows(robots, "/c"));
        let delay = Robots::parse(robots, "evenkeel").delay;
        assert_eq!(delay, Some(Duration::from_secs(2)));
    }

    #[test]
    fn rules_for_others_do_not_use_up_the_limit() {
        let others = "user-agent: other\n".to_owned() + &"disallow: /x\n".repeat(2 * RULES_MAX);
        assert!(!allows(&format!("{others}user-agent: *\ndisallow: /a"), "/a"));
        assert!(!allows(&format!("{others}user-agent: evenkeel\ndisallow: /a"), "/a"));
        assert!(allows(&format!("{others}user-agent: *\ndisallow: /a"), "/x"));
    }

    #[test]
    fn rules_of_a_host_take_bounded_memory() {
        let stars = format!("user-agent: *\ndisallow: /{}b\n", "*".repeat(900));
        let long = format!("disallow: /{}\n", "a".repeat(900));
        let robots = Robots::parse(&(stars + &long.repeat(500)), "evenkeel");
        assert_eq!(robots.rules[0].glob.len(), 3);
        let bytes: usize = robots.rules.iter().map(|rule| rule.glob.len()).sum();
        assert!(bytes > RULES_BYTES_MAX / 2 && bytes <= RULES_BYTES_MAX, "{bytes}");
    }

    #[test]
    fn patterns_with_stars_and_ends_match() {
        let robots = "user-agent: *\ndisallow: /*.pdf$\ndisallow: /x/*/y\ndisallow: /q?*s=";
        assert!(!allows(robots, "/a/b.pdf") && allows(robots, "/a/b.pdf?c"));
        assert!(!allows(robots, "/x/1/2/yz") && allows(robots, "/x/y"));
        assert!(allows("user-agent: *\nallow: /$\ndisallow: /", "/"));
        assert!(!allows(robots, "/q?a=1&s=2") && allows(robots, "/q?a=1"));
    }

    #[test]
    fn percent_encoding_does_not_hide_a_path() {
        let robots = "user-agent: *\ndisallow: /f%c3%bc\ndisallow: /%7euser";
        assert!(!allows(robots, "/fü/x") && !allows(robots, "/~user"));
    }

    #[test]
    fn empty_and_invalid_files_allow_everything() {
        for robots in ["", "<html>not found</html>", "disallow: /", "user-agent: *\ndisallow:"] {
            assert!(allows(robots, "/x"), "{robots}");
        }
        let robots = "user-agent: *\ndisallow: /";
        assert!(allows(robots, "/robots.txt") && !allows(robots, "/"));
    }

    #[test]
    fn crawl_delays_are_capped_and_sitemaps_found() {
        let text = "Sitemap: http://a/one.xml\nuser-agent: *\ncrawl-delay: 86400\n\
                    sitemap: http://a/two.xml\r\nuser-agent: b\ncrawl-delay: x";
        let robots = Robots::parse(text, "evenkeel");
        assert_eq!(robots.delay, Some(CRAWL_DELAY_MAX));
        assert_eq!(robots.sitemaps, ["http://a/one.xml", "http://a/two.xml"]);
        let odd = Robots::parse("user-agent: *\ncrawl-delay: -1\ncrawl-delay: NaN", "evenkeel");
        assert_eq!(odd.delay, None);
    }
}
