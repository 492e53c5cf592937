//! URLs with templates in their path and query.

use evenkeel_outbound::reqwest::Url;
use serde_json::Value;

use crate::template::{Escape, Template, Values};

/// The URL of an HTTP call. Values inserted into the URL cannot change its scheme or host, and
/// cannot leave their segment of the path. A client that supplies only a payload must not choose
/// which server the node calls.
#[derive(Debug)]
pub(super) enum UrlTemplate {
    Plain(Url),
    /// The template of the URL, and the part of the URL before its first variable.
    Filled(Template, Url),
}

impl UrlTemplate {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let template = Template::parse(text)?;
        if template.is_plain() {
            return parse(text).map(Self::Plain);
        }
        let fixed = text.split_once("{{").map_or(text, |(before, _)| before);
        let in_host = || {
            "has a placeholder before the end of its host; placeholders are allowed only after \
             http://host/"
                .to_string()
        };
        let rest = ["http://", "https://"].iter().find_map(|scheme| {
            let (start, rest) = fixed.split_at_checked(scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then_some(rest)
        });
        if !rest.ok_or_else(in_host)?.contains(['/', '?', '#']) {
            return Err(in_host());
        }
        Ok(Self::Filled(template, parse(fixed)?))
    }

    pub(super) fn check(&self, payload: &Value) -> Result<(), String> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Filled(template, _) => template.check(payload),
        }
    }

    pub(super) fn fill(&self, values: &Values<'_>) -> Result<Url, String> {
        let (template, fixed) = match self {
            Self::Plain(url) => return Ok(url.clone()),
            Self::Filled(template, fixed) => (template, fixed),
        };
        let text = template.fill(values, Escape::Url)?;
        // Encoding the dots of `..` does not help, because servers treat `%2e%2e` like `..`.
        let path = text.split(['?', '#']).next().unwrap_or_default();
        if path.split(['/', '\\']).any(climbs) {
            return Err("has a step like .. in its path once filled in".into());
        }
        let url = parse(&text)?;
        // The origin cannot differ if the checks in `parse` are right. This check guards against
        // mistakes in `parse`.
        if url.origin() != fixed.origin() {
            return Err("would call another host once filled in".into());
        }
        Ok(url)
    }
}

fn climbs(segment: &str) -> bool {
    matches!(&*segment.to_ascii_lowercase().replace("%2e", "."), "." | "..")
}

fn parse(text: &str) -> Result<Url, String> {
    let url: Url = text.parse().map_err(|error| format!("is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must start with http:// or https://".into());
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(text: &str, x: &str) -> Result<String, String> {
        let payload = json!({"x": x});
        Ok(UrlTemplate::parse(text)?.fill(&Values::example(&payload))?.into())
    }

    #[test]
    fn templates_in_the_scheme_or_host_are_refused() {
        for text in [
            "{{payload.x}}", "{{payload.x}}://e.com/", "http{{payload.x}}://e.com/",
            "http://{{payload.x}}/", "http://{{payload.x}}.e.com/", "http://e.com{{payload.x}}",
            "http://e.com:{{payload.x}}/", "http://user:{{payload.x}}@e.com/",
            "http:///{{payload.x}}/", "http:////{{payload.x}}/", "http://\\/{{payload.x}}/",
            "http://\\{{payload.x}}/", "http://\t/{{payload.x}}/", "http:/{{payload.x}}/",
            "http:{{payload.x}}/", " http://e.com/{{payload.x}}", "//e.com/{{payload.x}}",
        ] {
            assert!(UrlTemplate::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn filled_in_value_stays_in_its_part_of_the_url() {
        let nasty = "/../@evil.com:80\\?a=b&c#d\r\n";
        let filled = fill("https://e.com/a/{{payload.x}}/z?q={{payload.x}}&r=1", nasty).unwrap();
        let encoded = "%2F..%2F%40evil.com%3A80%5C%3Fa%3Db%26c%23d%0D%0A";
        assert_eq!(filled, format!("https://e.com/a/{encoded}/z?q={encoded}&r=1"));
        assert_eq!(fill("HTTPS://e.com?{{payload.x}}", "..").unwrap(), "https://e.com/?..");
        assert_eq!(fill("https://e.com/{{payload.x}}", "...").unwrap(), "https://e.com/...");
    }

    #[test]
    fn filled_in_value_cannot_climb_the_path() {
        for (text, x) in [
            ("https://e.com/a/{{payload.x}}", ".."),
            ("https://e.com/a/{{payload.x}}/b", "."),
            ("https://e.com/a/.{{payload.x}}/b", "."),
            ("https://e.com/a/%2e{{payload.x}}/b", "."),
            ("https://e.com/a/{{payload.x}}{{payload.x}}?q", "."),
        ] {
            assert!(fill(text, x).unwrap_err().contains(".."), "{text} {x}");
        }
    }
}
