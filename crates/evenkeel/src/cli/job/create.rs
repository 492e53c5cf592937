//! `evenkeel job create`

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use evenkeel_core::{Span, Timestamp};
use serde_json::{Map, Value, json};

use super::super::Context;
use super::super::run::moment;
use super::show::schedule;
use crate::Failure;
use crate::client::Client;
use crate::output::{ago, clean, quoted};

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel job create --name hello --every 10s --noop
  evenkeel job create --name ping --every 5m --http https://example.com/ --method GET
  evenkeel job create --name news --every 30m --crawl https://example.com/ --max-pages 500
  evenkeel job create --name backup --schedule '@every 24h' --shell -- tar -czf /tmp/b.tgz /etc
  evenkeel job create --name later --at +10m --http https://example.com/hook --payload '{\"a\": 1}'
  evenkeel job create --file job.json
  echo '{\"name\": \"x\", \"executor_type\": \"noop\"}' | evenkeel job create --file -";

/// The job to create.
#[derive(Args, Clone)]
#[command(group = clap::ArgGroup::new("when").args(["every", "at", "now", "schedule"]))]
#[command(group = clap::ArgGroup::new("what").args(["noop", "http", "crawl", "shell", "file"]).required(true))]
pub(super) struct CreateArgs {
    /// What people call it; unique
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    name: Option<String>,
    /// What it is for
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    description: Option<String>,

    /// Run it so often
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "When")]
    every: Option<Span>,
    /// Run it once, at this time, or in so long: 2026-12-01T09:00:00Z or +10m
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "When")]
    at: Option<String>,
    /// Run it once, now
    #[arg(long, conflicts_with = "file", help_heading = "When")]
    now: bool,
    /// Run it by an expression: '@every 30m', PT30M, R/2026-12-01T00:00:00Z/PT30M
    #[arg(long, value_name = "EXPR", conflicts_with = "file", help_heading = "When")]
    schedule: Option<String>,
    /// The zone its times are meant in
    #[arg(long, value_name = "ZONE", conflicts_with = "file", help_heading = "When")]
    tz: Option<String>,

    /// Do nothing, for trying things out
    #[arg(long, help_heading = "What")]
    noop: bool,
    /// Call this address
    #[arg(long, value_name = "URL", help_heading = "What")]
    http: Option<String>,
    // The conflicts are said as well: a requirement that a conflict rules out is passed over.
    /// With this method
    #[arg(long, value_name = "METHOD", requires = "http", help_heading = "What")]
    #[arg(conflicts_with_all = ["noop", "crawl", "shell", "file"])]
    method: Option<String>,
    /// With this header, like 'X-Team: blue'; repeatable
    #[arg(long, value_name = "NAME: VALUE", requires = "http", help_heading = "What")]
    #[arg(conflicts_with_all = ["noop", "crawl", "shell", "file"])]
    header: Vec<String>,
    /// Crawl the site that starts here, politely, and keep its pages
    #[arg(long, value_name = "URL", help_heading = "What")]
    crawl: Option<String>,
    /// Following so many links from the start [default: 2]
    #[arg(long, value_name = "N", requires = "crawl", help_heading = "What")]
    #[arg(conflicts_with_all = ["noop", "http", "shell", "file"])]
    depth: Option<u32>,
    /// And no more pages than this [default: 100]
    #[arg(long, value_name = "N", requires = "crawl", help_heading = "What")]
    #[arg(conflicts_with_all = ["noop", "http", "shell", "file"])]
    max_pages: Option<u32>,
    /// Run the program after --, as it is: no shell reads its arguments
    #[arg(long, requires = "argv", help_heading = "What")]
    shell: bool,
    /// The program of --shell and its arguments
    #[arg(last = true, value_name = "PROGRAM", requires = "shell", help_heading = "What")]
    #[arg(conflicts_with_all = ["noop", "http", "crawl", "file"])]
    argv: Vec<String>,
    /// Pass this JSON on, or that of a file with @PATH
    #[arg(long, value_name = "JSON", conflicts_with = "file", help_heading = "What")]
    payload: Option<String>,
    /// Create the job that this JSON file describes, or standard input with -
    #[arg(long, value_name = "FILE", help_heading = "What")]
    file: Option<PathBuf>,

    /// Try again so often after a failure
    #[arg(long, value_name = "N", conflicts_with = "file", help_heading = "How")]
    max_retries: Option<u32>,
    /// Wait so long before the first retry, then longer each time
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "How")]
    retry_backoff: Option<Span>,
    /// Give up after so long without a sign of life
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "How")]
    timeout: Option<Span>,
    /// If it is due while it runs: skip, queue or allow
    #[arg(long, value_name = "POLICY", conflicts_with = "file", help_heading = "How")]
    overlap: Option<String>,
    /// If times were missed: last, skip or all
    #[arg(long, value_name = "POLICY", conflicts_with = "file", help_heading = "How")]
    misfire: Option<String>,
    /// Its lane: critical, standard or batch
    #[arg(long, value_name = "LANE", conflicts_with = "file", help_heading = "How")]
    lane: Option<String>,
    /// Its weight in its lane
    #[arg(long, value_name = "N", conflicts_with = "file", help_heading = "How")]
    priority: Option<u32>,
    /// The workers that may take it
    #[arg(long, value_name = "POOL", conflicts_with = "file", help_heading = "How")]
    pool: Option<String>,
}

impl CreateArgs {
    /// The job as a document.
    pub(super) fn document(&self, now: Timestamp) -> Result<Value, Failure> {
        if let Some(path) = &self.file {
            return read_document(path);
        }
        let mut job = Map::new();
        let mut put = |field: &str, value: Option<Value>| {
            if let Some(value) = value {
                job.insert(field.into(), value);
            }
        };
        put("name", self.name.clone().map(Value::from));
        put("description", self.description.clone().map(Value::from));
        put("schedule", self.schedule(now)?);
        put("timezone", self.tz.clone().map(Value::from));
        let (executor, settings) = self.executor()?;
        put("executor_type", Some(executor.into()));
        put("executor_config", settings);
        put("payload", self.payload.as_deref().map(read_payload).transpose()?);
        put("max_retries", self.max_retries.map(Value::from));
        put("retry_backoff_seconds", whole_seconds("--retry-backoff", self.retry_backoff)?);
        put("timeout_sec", whole_seconds("--timeout", self.timeout)?);
        put("overlap", self.overlap.clone().map(Value::from));
        put("misfire", self.misfire.clone().map(Value::from));
        put("lane", self.lane.clone().map(Value::from));
        put("priority", self.priority.map(Value::from));
        put("pool", self.pool.clone().map(Value::from));
        Ok(Value::Object(job))
    }

    fn schedule(&self, now: Timestamp) -> Result<Option<Value>, Failure> {
        Ok(if let Some(every) = self.every {
            Some(json!({"kind": "interval", "every": every}))
        } else if let Some(at) = &self.at {
            Some(json!({"kind": "once", "at": read_time(at, now)?}))
        } else if self.now {
            Some(json!({"kind": "once"}))
        } else {
            self.schedule.clone().map(Value::from)
        })
    }

    fn executor(&self) -> Result<(&'static str, Option<Value>), Failure> {
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

fn read_document(path: &Path) -> Result<Value, Failure> {
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
        Failure::usage(format!("--file {shown} is not JSON: {error}")).or_else(
            "mend that place; a small job is {\"name\": \"x\", \"executor_type\": \"noop\"}",
        )
    })
}

fn read_payload(text: &str) -> Result<Value, Failure> {
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

fn read_headers(headers: &[String]) -> Result<Map<String, Value>, Failure> {
    let one = |header: &String| match header.split_once(':') {
        Some((name, value)) => Ok((name.trim().to_owned(), Value::from(value.trim()))),
        // The text is not repeated: headers hold secrets.
        None => Err(Failure::usage("--header needs a name, a colon and a value")
            .or_else("write it like --header 'X-Team: blue'")),
    };
    headers.iter().map(one).collect()
}

fn read_time(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    let relative = text.strip_prefix('+').map(str::parse::<Span>);
    let time = match relative {
        Some(span) => span.ok().map(|span| now.saturating_add(span)),
        None => text.parse().ok(),
    };
    time.ok_or_else(|| {
        Failure::usage(format!("--at: {text:?} is not a time"))
            .or_else("write it like 2026-12-01T09:00:00Z, or +10m for ten minutes from now")
    })
}

fn whole_seconds(flag: &str, span: Option<Span>) -> Result<Option<Value>, Failure> {
    let Some(span) = span else { return Ok(None) };
    if span.as_millis() % 1000 != 0 {
        return Err(Failure::usage(format!("{flag}: {span} is not in whole seconds"))
            .or_else(format!("write it like {flag} 30s")));
    }
    Ok(Some((span.as_millis() / 1000).into()))
}

pub(super) async fn run(
    context: &Context,
    client: &Client,
    document: &Value,
) -> Result<(), Failure> {
    let answer = client.post(&["jobs"], Some(document)).await?;
    if context.output.is_json() {
        return context.output.line(&answer.text);
    }
    let job = &answer.value;
    let id = answer.text_of("id");
    let name = job["name"].as_str();
    let handle = name.unwrap_or(id);
    let called = name.map_or_else(String::new, |name| format!(" {name}"));
    let next = moment(&job["next_run_at"])
        .map_or_else(String::new, |at| format!(", first run {}", ago(at, context.now())));
    let text = format!(
        "Created job{called} ({id}).\n  runs:   {}{next}\n  see it: evenkeel run list --job {}",
        schedule(&job["schedule"]),
        quoted(handle),
    );
    let text: Vec<String> = text.lines().map(clean).collect();
    context.output.line(&text.join("\n"))
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
    fn flags_become_the_document_they_stand_for() {
        assert_eq!(
            document(&["--name", "a", "--every", "90s", "--noop", "--max-retries", "2"]).unwrap(),
            json!({"name": "a", "schedule": {"kind": "interval", "every": "1m 30s"},
                   "executor_type": "noop", "max_retries": 2})
        );
        assert_eq!(
            document(&[
                "--now",
                "--http",
                "http://a/",
                "--method",
                "get",
                "--header",
                "A: b:c",
                "--payload",
                "[1]",
                "--timeout",
                "2m"
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
    fn what_is_written_wrong_is_a_matter_of_usage() {
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
    fn contradictions_are_refused() {
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
