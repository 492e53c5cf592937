//! Templates in a job's configuration, filled in when an attempt starts.

use evenkeel_core::secret::url_escaped;
use evenkeel_core::{AttemptId, AttemptKey, JobNo, RunIds, Timestamp, lease::Fence};
use serde_json::Value;

use crate::Invocation;

/// A text with variables: `{{run_id}}`, `{{execution_id}}`, `{{attempt}}`, `{{fence}}`,
/// `{{scheduled_at}}`, and `{{payload.a.0.b}}` for a value inside the payload. Values of the
/// payload that are strings are inserted as text, other values as JSON. `{{"text"}}`, a JSON
/// string, inserts that text without reading it as a template. The values of secrets are inserted
/// in the form `{{"text"}}`. A literal `{{` is written as `{{"{{"}}`. A single `{` is plain text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Text(String),
    RunId,
    ExecutionId,
    Attempt,
    Fence,
    ScheduledAt,
    Payload(Vec<String>),
    Literal(String),
}

/// Maximum number of bytes of a filled-in text, because a template may refer to a large payload
/// many times.
pub(crate) const FILLED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Maximum number of bytes that several filled-in texts may have together, and what is left of it.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    max: usize,
    left: usize,
}

impl ByteBudget {
    pub(crate) const fn new(max: usize) -> Self {
        Self { max, left: max }
    }

    fn check(&self, text: &str) -> Result<(), String> {
        if text.len() <= self.left {
            return Ok(());
        }
        let shared = if self.left < self.max { ", with what comes before it," } else { "" };
        Err(format!("is longer than {} bytes{shared} once filled in", self.max))
    }

    fn take(&mut self, text: &str) -> Result<(), String> {
        self.check(text)?;
        self.left -= text.len();
        Ok(())
    }
}

/// The values of the variables in templates.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Values<'a> {
    pub(crate) id: AttemptId,
    pub(crate) fence: Fence,
    pub(crate) payload: &'a Value,
}

impl<'a> Values<'a> {
    pub(crate) fn of(invocation: &'a Invocation) -> Self {
        let Invocation { id, fence, definition, .. } = invocation;
        Self { id: *id, fence: *fence, payload: &definition.payload }
    }

    /// Returns template values of an example run, to check a configuration before the first run.
    pub(crate) fn example(payload: &'a Value) -> Self {
        let key = AttemptKey::regular(JobNo(1), Timestamp::MIN);
        Self { id: RunIds::new(b"example").attempt_id(key), fence: Fence(1), payload }
    }
}

/// How inserted values are escaped, so that they cannot change the meaning of the text around them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Escape {
    /// Values are not escaped, because the text around them has no syntax.
    None,
    /// Values are percent-encoded as one segment of the path or one value of the query of a URL.
    Url,
}

impl Template {
    /// Parses a template. The error describes the fault in the template.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Self::split(text, |name| match name {
            Some(name) => Piece::parse(name).map(Some),
            None => Err("has {{ without }}; close it, or leave it out".into()),
        })
    }

    /// Parses an argument or environment variable of a program as a template. Only variables of the
    /// run are filled in, because their format is fixed and no program can misread them. Variables
    /// of the payload are refused, because an interpreter could execute their values. Braces that
    /// enclose no known variable are plain text.
    pub(crate) fn of_run(text: &str) -> Result<Self, String> {
        Self::split(text, |name| match name.map(|name| (name, Piece::parse(name))) {
            Some((name, Ok(Piece::Payload(_)))) => Err(format!(
                "has {{{{{name}}}}}: the payload is not filled in here, because the program might \
                 run it; the program reads it as JSON from its standard input (/dev/stdin), and \
                 fields of it from variables: \"$EVENKEEL_PAYLOAD_customer\" is payload.customer"
            )),
            Some((_, Ok(piece))) => Ok(Some(piece)),
            Some((_, Err(_))) | None => Ok(None),
        })
    }

    /// Splits a text into plain texts and variables. `variable` gets the text between `{{` and
    /// `}}`, or `None` if `}}` is missing. If `variable` returns `None`, the braces are plain text.
    fn split(
        text: &str,
        variable: impl Fn(Option<&str>) -> Result<Option<Piece>, String>,
    ) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            let name = rest[start + 2..].split_once("}}").map(|(name, _)| name);
            let piece = variable(name.map(str::trim))?;
            let (before, after) = match (&piece, name) {
                (Some(_), Some(name)) => (&rest[..start], &rest[start + 2 + name.len() + 2..]),
                // Skips only the first brace, so that `{{{attempt}}` finds the variable.
                _ => rest.split_at(start + 1),
            };
            push_text(&mut pieces, before);
            pieces.extend(piece);
            rest = after;
        }
        push_text(&mut pieces, rest);
        Ok(Self(pieces))
    }

    /// Refuses a template that refers to a value that the payload does not have.
    pub(crate) fn check(&self, payload: &Value) -> Result<(), String> {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Payload(path) => find(payload, path).map(drop),
            _ => Ok(()),
        })
    }

    /// Returns the text of a template without variables, or `None` if the template has variables.
    pub(crate) fn plain(&self) -> Option<&str> {
        match &self.0[..] {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.plain().is_some()
    }

    /// If the template is a single `{{payload…}}`, returns the JSON value, so that a number stays a
    /// number in a JSON body.
    pub(crate) fn whole<'v>(&self, values: &Values<'v>) -> Option<Result<&'v Value, String>> {
        match &self.0[..] {
            [Piece::Payload(path)] => Some(find(values.payload, path)),
            _ => None,
        }
    }

    pub(crate) fn fill(&self, values: &Values<'_>, escape: Escape) -> Result<String, String> {
        self.fill_within(values, escape, &mut ByteBudget::new(FILLED_BYTES_MAX))
    }

    /// Fills in the template like [`fill`](Self::fill), as one of several texts with a common size
    /// limit.
    pub(crate) fn fill_within(
        &self,
        values: &Values<'_>,
        escape: Escape,
        budget: &mut ByteBudget,
    ) -> Result<String, String> {
        let mut text = String::new();
        for piece in &self.0 {
            let value = match piece {
                Piece::Text(plain) => {
                    text.push_str(plain);
                    continue;
                }
                Piece::RunId => values.id.run_id().to_string(),
                Piece::ExecutionId => values.id.to_string(),
                Piece::Attempt => values.id.attempt().from_one().to_string(),
                Piece::Fence => values.fence.0.to_string(),
                Piece::ScheduledAt => values.id.scheduled_at().to_string(),
                Piece::Literal(value) => value.clone(),
                Piece::Payload(path) => match find(values.payload, path)? {
                    Value::String(string) => string.clone(),
                    other => other.to_string(),
                },
            };
            match escape {
                Escape::None => text.push_str(&value),
                Escape::Url => text.push_str(&url_escaped(&value)),
            }
            budget.check(&text)?;
        }
        budget.take(&text)?;
        Ok(text)
    }
}

impl Piece {
    fn parse(name: &str) -> Result<Self, String> {
        match name {
            "run_id" => Ok(Self::RunId),
            "execution_id" => Ok(Self::ExecutionId),
            "attempt" => Ok(Self::Attempt),
            "fence" => Ok(Self::Fence),
            "scheduled_at" => Ok(Self::ScheduledAt),
            "payload" => Ok(Self::Payload(Vec::new())),
            text if text.starts_with('"') => serde_json::from_str(text)
                .map(Self::Literal)
                .map_err(|_| "has a text in {{ }} that is not a JSON string".to_string()),
            _ => match name.strip_prefix("payload.") {
                Some(path) if path.split('.').all(|step| !step.is_empty()) => {
                    Ok(Self::Payload(path.split('.').map(String::from).collect()))
                }
                _ => Err(format!(
                    "has {{{{{name}}}}}, which is none of run_id, execution_id, attempt, fence, \
                     scheduled_at, payload.…, secret.…"
                )),
            },
        }
    }
}

fn push_text(pieces: &mut Vec<Piece>, more: &str) {
    match pieces.last_mut() {
        _ if more.is_empty() => {}
        Some(Piece::Text(text)) => text.push_str(more),
        _ => pieces.push(Piece::Text(more.into())),
    }
}

fn find<'a>(payload: &'a Value, path: &[String]) -> Result<&'a Value, String> {
    path.iter()
        .try_fold(payload, |value, step| match value {
            Value::Object(fields) => fields.get(step),
            Value::Array(items) => step.parse().ok().and_then(|n: usize| items.get(n)),
            _ => None,
        })
        .ok_or_else(|| {
            format!("refers to payload.{}, which the payload does not have", path.join("."))
        })
}

#[cfg(test)]
mod tests {
    use evenkeel_core::AttemptNo;
    use serde_json::json;

    use super::*;

    fn values(payload: &Value) -> Values<'_> {
        let scheduled_at = "2026-12-01T09:00:00Z".parse().unwrap();
        let key = AttemptKey::regular(JobNo(7), scheduled_at).with_attempt(AttemptNo(2));
        Values { id: RunIds::new(b"test").attempt_id(key), fence: Fence(5), payload }
    }

    fn fill(text: &str, payload: &Value, escape: Escape) -> Result<String, String> {
        let template = Template::parse(text)?;
        let filled = template.fill(&values(payload), escape);
        assert_eq!(template.check(payload).is_ok(), filled.is_ok());
        filled
    }

    #[test]
    fn variables_are_filled_in() {
        let payload = json!({"a": {"b": [10, "x y"]}, "list": [1, {"c": null}]});
        let filled = |text: &str| fill(text, &payload, Escape::None).unwrap();
        assert_eq!(filled("{ {{attempt}} } {{ fence }}}"), "{ 3 } 5}");
        assert_eq!(filled("{{payload.a.b.1}}|{{payload.a.b.0}}"), "x y|10");
        assert_eq!(filled("{{payload.list}}"), r#"[1,{"c":null}]"#);
        assert_eq!(filled("{{scheduled_at}}"), "2026-12-01T09:00:00.000000Z");
        assert_ne!(filled("{{run_id}}"), filled("{{execution_id}}"));
        assert!(Template::parse("no places }} { here").unwrap().is_plain());
    }

    #[test]
    fn literal_is_not_read_again() {
        let payload = json!({"x": 1});
        let literal = r#"a {{ "{{payload.x\u007d\u007d \"" }} b"#;
        assert_eq!(fill(literal, &payload, Escape::None).unwrap(), "a {{payload.x}} \" b");
        assert_eq!(fill(r#"{{"a/b"}}"#, &payload, Escape::Url).unwrap(), "a%2Fb");
        assert!(!Template::parse(r#"{{"sh"}}"#).unwrap().is_plain(), "no program is named by one");
        assert!(Template::parse(r#"{{"a}}"#).is_err());
    }

    #[test]
    fn command_line_takes_variables_of_the_run_only() {
        let payload = json!({"x": "$(id)"});
        let values = values(&payload);
        let filled = |text: &str| {
            Template::of_run(text).and_then(|template| template.fill(&values, Escape::None))
        };
        assert_eq!(filled("{{ fence }}/{{attempt}}").unwrap(), "5/3");
        assert_eq!(filled("{{scheduled_at}}").unwrap(), "2026-12-01T09:00:00.000000Z");
        for text in ["'{{.Names}}'", "{{json .State}} {{", "{{}}", "a }} b", "{{{x}}}", "{{shape}}"]
        {
            assert_eq!(filled(text).unwrap(), text);
        }
        assert_eq!(filled("{{.X}}{{{fence}}}").unwrap(), "{{.X}}{5}");
        for text in ["{{payload}}", "a{{ payload.x }}", "{{.X}}{{payload.x.0}}"] {
            let message = filled(text).unwrap_err();
            assert!(message.contains("standard input"), "{text}: {message}");
        }
    }

    #[test]
    fn value_cannot_leave_its_part_of_a_url() {
        let payload = json!({"x": "../a?b=c&d#é"});
        let url = fill("https://e.com/{{payload.x}}/y", &payload, Escape::Url).unwrap();
        assert_eq!(url, "https://e.com/..%2Fa%3Fb%3Dc%26d%23%C3%A9/y");
    }

    #[test]
    fn single_payload_variable_keeps_its_json_type() {
        let payload = json!({"n": 5});
        let values = values(&payload);
        let whole = |text: &str| Template::parse(text).unwrap().whole(&values).map(Result::ok);
        assert_eq!(whole("{{ payload.n }}"), Some(Some(&json!(5))));
        assert_eq!(whole("{{payload.m}}"), Some(None));
        assert_eq!(whole("{{payload.n}} "), None);
        assert_eq!(whole("{{attempt}}"), None);
    }

    #[test]
    fn filled_in_text_has_a_size_limit() {
        let payload = json!("x".repeat(1024 * 1024));
        assert!(fill_only(&"{{payload}}".repeat(8), &payload).is_ok());
        let message = fill_only(&"{{payload}}".repeat(9), &payload).unwrap_err();
        assert!(message.contains("longer than"), "{message}");
    }

    fn fill_only(text: &str, payload: &Value) -> Result<String, String> {
        Template::parse(text)?.fill(&values(payload), Escape::None)
    }

    #[test]
    fn invalid_variables_are_refused_by_name() {
        for (text, part) in [
            ("{{run_id", "without }}"),
            ("{{job}}", "{{job}}"),
            ("{{payload.}}", "{{payload.}}"),
            ("{{payload..a}}", "{{payload..a}}"),
            ("{{payload.a.9}}", "payload.a.9"),
            ("{{payload.b}}", "payload.b"),
        ] {
            let message = fill(text, &json!({"a": [1]}), Escape::None).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
