//! `evenkeel job create`

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use evenkeel_core::{Span, Timestamp};
use serde_json::{Map, Value, json};

use super::dedup::DedupArgs;
use super::policies::{PolicyArgs, put, put_same};
use super::retries::RetryArgs;
use super::show::schedule;
use super::when::WhenArgs;
use crate::cli::Session;
use crate::cli::next::point_at;
use crate::cli::run::moment;
use crate::output::{ago, clean, quoted};
use crate::{Failure, Result};

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel job create --name hello --every 10s --noop
  evenkeel job create --name ping --every 5m --http https://example.com/ --method GET
  evenkeel job create --name news --every 30m --crawl https://example.com/ --max-pages 500
  evenkeel job create --name report --cron '0 9 * * 1-5' --tz America/Toronto --tolerance 1h --noop
  evenkeel job create --name fresh --periodic 24h --cooldown 1h --crawl https://example.com/
  evenkeel job create --name night --every 1h --blackout 08:00-18:00 --tz Europe/Berlin --noop
  evenkeel job create --name backup --schedule '@every 24h' --shell -- tar -czf /tmp/b.tgz /etc
  evenkeel job create --name later --at +10m --http https://example.com/hook --payload '{\"a\": 1}'
  evenkeel job create --name board --every 6h --target 1
  evenkeel job create --now --crawl https://example.com/ --unique --dedup-scope pending_or_running
  evenkeel job create --file job.json
  evenkeel job create --file jobs.ndjson
  echo '{\"name\": \"x\", \"executor_type\": \"noop\"}' | evenkeel job create --file -";

#[derive(Args, Clone)]
#[command(group = clap::ArgGroup::new("what").args(["noop", "http", "crawl", "shell", "target", "file"]).required(true))]
pub struct CreateArgs {
    /// A unique name
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    name: Option<String>,
    /// A free text
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    description: Option<String>,

    #[command(flatten)]
    when: WhenArgs,

    /// Create a job that does nothing, to try out schedules
    #[arg(long, help_heading = "What")]
    noop: bool,
    /// Call this URL
    #[arg(long, value_name = "URL", help_heading = "What")]
    http: Option<String>,
    // Flags such as --method need `conflicts_with_all` in addition to `requires`, because clap
    // ignores `requires = "http"` if a flag that conflicts with --http is given.
    /// With --http: the method
    #[arg(long, value_name = "METHOD", requires = "http", help_heading = "What")]
    #[arg(conflicts_with_all = ["noop", "crawl", "shell", "file", "target"])]
    method: Option<String>,
    /// With --http: a header, like 'X-Team: blue'; repeatable
    #[arg(long, value_name = "NAME: VALUE", requires = "http", help_heading = "What")]
    #[arg(conflicts_with_all = ["noop", "crawl", "shell", "file", "target"])]
    header: Vec<String>,
    /// Crawl a website, starting at this URL, and store its pages
    #[arg(long, value_name = "URL", help_heading = "What")]
    crawl: Option<String>,
    /// With --crawl: the depth of links to follow [default: 2]
    #[arg(long, value_name = "N", requires = "crawl", help_heading = "What")]
    #[arg(conflicts_with_all = ["noop", "http", "shell", "file", "target"])]
    depth: Option<u32>,
    /// With --crawl: the maximum number of pages [default: 100]
    #[arg(long, value_name = "N", requires = "crawl", help_heading = "What")]
    #[arg(conflicts_with_all = ["noop", "http", "shell", "file", "target"])]
    max_pages: Option<u32>,
    /// Run the program after --; no shell interprets its arguments
    #[arg(long, requires = "argv", help_heading = "What")]
    shell: bool,
    /// The program of --shell and its arguments
    #[arg(last = true, value_name = "PROGRAM", requires = "shell", help_heading = "What")]
    #[arg(conflicts_with_all = ["noop", "http", "crawl", "file", "target"])]
    argv: Vec<String>,
    /// Crawl the URL of the target with this number; when the target changes, the job changes too
    #[arg(long, value_name = "NUMBER", help_heading = "What")]
    target: Option<u64>,
    /// JSON payload for the executor; @PATH reads it from a file
    #[arg(long, value_name = "JSON", conflicts_with = "file", help_heading = "What")]
    payload: Option<String>,
    /// Read the job from this JSON file, or from standard input with -; a file that ends in .ndjson
    /// or .jsonl has one job per line
    #[arg(long, value_name = "FILE", help_heading = "What")]
    file: Option<PathBuf>,
    /// Read one job per line from the file, whatever its name
    #[arg(long, requires = "file", help_heading = "What")]
    #[arg(conflicts_with_all = ["noop", "http", "crawl", "shell", "target"])]
    lines: bool,

    #[command(flatten)]
    retries: RetryArgs,
    #[command(flatten)]
    policies: PolicyArgs,
    /// Log each run that takes longer than this time
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "How")]
    max_expected_duration: Option<Span>,
    /// Average duration of a run, used in place of the measured duration
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "How")]
    average_duration: Option<Span>,
    /// Name of the worker pool that runs the job
    #[arg(long, value_name = "POOL", conflicts_with = "file", help_heading = "How")]
    pool: Option<String>,
    /// Concurrency key: jobs with the same key share a limit of active runs
    #[arg(long, value_name = "KEY", conflicts_with = "file", help_heading = "How")]
    concurrency_key: Option<String>,
    /// Maximum number of active runs that share the concurrency key [default: 1]
    #[arg(long, value_name = "N", requires = "concurrency_key", help_heading = "How")]
    concurrency_limit: Option<u32>,
    #[command(flatten)]
    dedup: DedupArgs,
    /// Never run the job on this node; repeatable
    #[arg(long, value_name = "NODE", conflicts_with = "file", help_heading = "How")]
    dont_run_on: Vec<String>,
}

impl CreateArgs {
    /// Returns the path of `--file` if the file has one job per line.
    pub(super) fn lines(&self) -> Option<&Path> {
        let path = self.file.as_deref()?;
        let ending = path.extension().and_then(|ending| ending.to_str());
        let has_lines = self.lines || ending.is_some_and(|it| ["ndjson", "jsonl"].contains(&it));
        has_lines.then_some(path)
    }

    pub(super) fn document(&self, now: Timestamp) -> Result<Value> {
        if let Some(path) = &self.file {
            return read_document(path);
        }
        let mut document = Map::new();
        let job = &mut document;
        put_same!(job, self, name, description, target, pool, concurrency_key, concurrency_limit);
        put_same!(job, self, max_expected_duration);
        if self.target.is_none() {
            let (executor, settings) = self.executor()?;
            put(job, "executor_type", Some(executor));
            put(job, "executor_config", settings);
        }
        put(job, "payload", self.payload.as_deref().map(read_payload).transpose()?);
        let nodes = &self.dont_run_on;
        put(job, "dont_run_on_nodes", (!nodes.is_empty()).then_some(nodes));
        put(job, "average_duration_override", self.average_duration);
        self.policies.add_to(job)?;
        self.retries.add_to(job)?;
        self.dedup.add_to(job)?;
        self.when.add_to(job, now)?;
        Ok(Value::Object(document))
    }

    fn executor(&self) -> Result<(&'static str, Option<Value>)> {
        if let Some(url) = &self.http {
            let mut settings = json!({"url": url});
            if let Some(method) = &self.method {
                settings["method"] = method.to_uppercase().into();
            }
            if !self.header.is_empty() {
                settings["headers"] = Value::Object(read_headers(&self.header)?);
            }
            Ok(("http", Some(settings)))
        } else if let Some(url) = &self.crawl {
            let mut settings = json!({"url": url});
            for (name, value) in [("depth", self.depth), ("max_pages", self.max_pages)] {
                if let Some(value) = value {
                    settings[name] = value.into();
                }
            }
            Ok(("crawl", Some(settings)))
        } else if self.shell {
            Ok(("shell", Some(json!({"argv": self.argv}))))
        } else {
            Ok(("noop", None))
        }
    }
}

pub(super) fn read_document(path: &Path) -> Result<Value> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    let shown = path.display();
    let text = text.map_err(|error| {
        Failure::usage(format!("--file {shown} can't be read: {error}"))
            .or_else("give an existing file, or - for standard input")
    })?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("--file {shown} is not JSON: {error}"))
            .or_else("correct it; a minimal job is {\"name\": \"x\", \"executor_type\": \"noop\"}")
    })
}

fn read_payload(text: &str) -> Result<Value> {
    let text = match text.strip_prefix('@') {
        Some(path) => &std::fs::read_to_string(path).map_err(|error| {
            Failure::usage(format!("--payload @{path} can't be read: {error}"))
                .or_else("give an existing file after the @")
        })?,
        None => text,
    };
    serde_json::from_str(text).map_err(|error| {
        Failure::usage(format!("--payload is not JSON: {error}"))
            .or_else("put texts in double quotes: --payload '{\"key\": \"value\"}'")
    })
}

fn read_headers(headers: &[String]) -> Result<Map<String, Value>> {
    let one = |header: &String| match header.split_once(':') {
        Some((name, value)) => Ok((name.trim().to_owned(), Value::from(value.trim()))),
        // The error message does not show the HTTP header, because the header may contain a secret.
        None => Err(Failure::usage("--header needs a name, a colon and a value")
            .or_else("write it like --header 'X-Team: blue'")),
    };
    headers.iter().map(one).collect()
}

pub(super) fn whole_seconds(flag: &str, span: Option<Span>) -> Result<Option<Value>> {
    let Some(span) = span else { return Ok(None) };
    if span.as_millis() % 1000 != 0 {
        return Err(Failure::usage(format!("{flag}: {span} is not a whole number of seconds"))
            .or_else(format!("write it like {flag} 30s")));
    }
    Ok(Some((span.as_millis() / 1000).into()))
}

pub(super) async fn run(session: &Session, document: &Value) -> Result {
    let answer = session.client.post(&["jobs"], Some(document)).await;
    let answer = answer.map_err(|failure| pointed(failure, document))?;
    let job = &answer.value;
    let did = if job["deduplicated"] == true { "There is already" } else { "Created" };
    let id = answer.text_of("id");
    let name = job["name"].as_str();
    let handle = name.unwrap_or(id);
    let called = name.map_or_else(String::new, |name| format!(" {name}"));
    let next = moment(&job["next_run_at"])
        .map_or_else(String::new, |at| format!(", first run {}", ago(at, session.now())));
    let text = format!(
        "{did} job{called} ({id}).\n  runs:   {}{next}\n  see it: evenkeel run list --job {}",
        schedule(&job["schedule"]),
        quoted(handle),
    );
    session.answer(&answer, &with_warnings(&text, job))
}

/// Appends the warnings about a job to a text, one per line.
pub(super) fn with_warnings(text: &str, job: &Value) -> String {
    let warnings = job["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let warnings = warnings.map(|warning| format!("  warning: {}", clean(warning)));
    text.lines().map(clean).chain(warnings).collect::<Vec<_>>().join("\n")
}

/// Marks the invalid character of `document` with a caret if the server returned its position.
pub(super) fn pointed(failure: Failure, document: &Value) -> Failure {
    let problem = failure.problem.clone().unwrap_or_default();
    let position = problem["position"].as_u64().and_then(|it| usize::try_from(it).ok());
    point_at(failure, document, problem["field"].as_str().unwrap_or_default(), position)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::Exit;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        args: CreateArgs,
    }

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    fn document(words: &[&str]) -> Result<Value, Failure> {
        let words = std::iter::once(&"create").chain(words);
        Only::try_parse_from(words).unwrap().args.document(NOW)
    }

    #[test]
    fn flags_become_a_document() {
        assert_eq!(
            document(&["--name", "a", "--every", "90s", "--noop", "--max-retries", "2"]).unwrap(),
            json!({"name": "a", "schedule": {"kind": "interval", "every": "1m 30s"},
                   "executor_type": "noop", "max_retries": 2})
        );
        assert_eq!(
            document(&[
                "--now", "--http", "http://a/", "--method", "get", "--header", "A: b:c",
                "--payload", "[1]", "--timeout", "2m"
            ])
            .unwrap(),
            json!({"schedule": {"kind": "once"}, "executor_type": "http", "payload": [1],
                   "executor_config": {"url": "http://a/", "method": "GET", "headers": {"A": "b:c"}},
                   "timeout_sec": 120})
        );
        assert_eq!(
            document(&["--at", "+10m", "--shell", "--", "echo", "--json"]).unwrap(),
            json!({"schedule": {"kind": "once", "at": NOW.saturating_add(Span::from_secs(600))},
                   "executor_type": "shell", "executor_config": {"argv": ["echo", "--json"]}})
        );
    }

    #[test]
    fn policy_flags_become_fields() {
        let words = "--noop --cron @daily --dont-run-on a --dont-run-on b --overlap replace \
                     --max-expected-duration 10m --max-allowed-duration 1h --average-duration 5m";
        let words: Vec<&str> = words.split_whitespace().collect();
        assert_eq!(
            document(&words).unwrap(),
            json!({"executor_type": "noop", "schedule": {"kind": "cron", "expression": "@daily"},
                   "dont_run_on_nodes": ["a", "b"], "max_expected_duration": "10m",
                   "max_allowed_duration": "1h", "average_duration_override": "5m",
                   "overlap": "replace"})
        );
    }

    #[test]
    fn fault_of_the_server_gets_a_caret() {
        let document = json!({"schedule": {"kind": "cron", "expression": "0 9 * * 8"}});
        let problem = json!({"field": "schedule.expression", "position": 8});
        let failure = Failure { problem: Some(problem), ..Failure::failed("no") };
        assert_eq!(pointed(failure, &document).place, Some(("0 9 * * 8".into(), 8)));
        let failure = Failure { problem: Some(json!({"field": "name"})), ..Failure::failed("no") };
        assert_eq!(pointed(failure, &document).place, None);
    }

    #[test]
    fn wrong_values_are_usage_errors() {
        for words in [
            &["--noop", "--at", "soon"][..],
            &["--noop", "--payload", "{a}"],
            &["--http", "http://a", "--header", "nothing"],
            &["--noop", "--timeout", "1500ms"],
            &["--file", "/does/not/exist"],
        ] {
            let failure = document(words).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage, "{words:?}");
            assert!(failure.way_out.is_some(), "{words:?}");
        }
    }

    #[test]
    fn contradictory_flags_are_refused() {
        for words in [
            &["--every", "10s"][..],
            &["--noop", "--http", "http://a"],
            &["--noop", "--every", "10s", "--now"],
            &["--shell"],
            &["--noop", "--", "echo"],
            &["--file", "a", "--name", "b"],
            &["--noop", "--method", "GET"],
        ] {
            let words = std::iter::once(&"create").chain(words);
            let words: Vec<_> = words.collect();
            assert!(Only::try_parse_from(&words).is_err(), "{words:?}");
        }
    }
}
