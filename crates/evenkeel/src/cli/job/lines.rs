//! `evenkeel job create --file jobs.ndjson`

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use evenkeel_core::JobId;
use evenkeel_core::chance::Chance as _;
use evenkeel_engine::RandomChance;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use super::super::Context;
use crate::client::Client;
use crate::output::clean;
use crate::{Exit, Failure};

/// Maximum number of lines per request.
const LINES_MAX: usize = 5000;
/// Maximum number of bytes per request.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// Delays before a request is repeated, in milliseconds. The sum of the delays is slightly longer
/// than the time for which the idempotency key of a crashed server stays locked.
const PAUSES: [u64; 9] = [250, 500, 1000, 2000, 4000, 8000, 15_000, 30_000, 60_000];
/// Maximum number of refused lines to show.
const SHOWN_MAX: usize = 20;

/// The results so far.
#[derive(Default)]
struct Results {
    created: u64,
    /// Jobs that existed already.
    found: u64,
    refused: u64,
    shown: Vec<String>,
}

pub(super) async fn run(context: &Context, client: &Client, path: &Path) -> Result<(), Failure> {
    let (mut file, size) = open(path)?;
    let bar = bar(size, context.output.is_json());
    // The idempotency keys of all requests start with this id, so that a repeated request creates
    // no job twice.
    let key = JobId::new(context.now(), RandomChance::from_system().ten_bytes());
    let (mut tally, mut lines_before, mut part) = (Results::default(), 0, 0);
    loop {
        let (bytes, lines) = next_part(&mut file).map_err(|error| {
            Failure::failed(format!("--file {} can't be read on: {error}", path.display()))
        })?;
        if lines == 0 {
            break;
        }
        part += 1;
        let sent = bytes.len() as u64;
        let key = format!("{key}-{part}");
        let answers = send(client, &bytes, &key).await.map_err(|failure| {
            let what = format!("{} (after {} created jobs)", failure.what, tally.created);
            Failure { what, ..failure }
        })?;
        let open = first_open(&bytes, &answers);
        tally.add(context, answers, lines_before)?;
        if let Some(line) = open {
            bar.finish_and_clear();
            return Err(tally.broken_off(lines_before + line));
        }
        lines_before += lines;
        bar.inc(sent);
        bar.set_message(format!("{} created, {} refused", tally.created, tally.refused));
    }
    bar.finish_and_clear();
    tally.finish(context)
}

/// Sends a part of the file, and repeats the request after each delay until every line has a
/// result. The idempotency key ensures that each line is processed once.
async fn send(client: &Client, bytes: &[u8], key: &str) -> Result<Vec<Value>, Failure> {
    let post = || client.post_lines(&["jobs", "bulk"], bytes.to_vec(), key);
    let mut pauses = PAUSES.iter();
    loop {
        let answered = match post().await {
            Err(failure) if failure.exit == Exit::Unreachable => post().await,
            answered => answered,
        };
        let answers = match answered {
            Ok(text) => Ok(read(&text)?),
            Err(failure) if failure.problem.as_ref().is_some_and(is_temporary) => Err(failure),
            Err(failure) => return Err(failure),
        };
        let is_whole = answers.as_ref().is_ok_and(|answers| first_open(bytes, answers).is_none());
        match pauses.next() {
            Some(pause) if !is_whole => tokio::time::sleep(Duration::from_millis(*pause)).await,
            _ => return answers,
        }
    }
}

fn read(answers: &str) -> Result<Vec<Value>, Failure> {
    let answers = answers.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    answers.map_err(|error| Failure::because("the server's answer can't be parsed", &error))
}

/// Returns the number of the first line without a final result. If the database fails, the server's
/// response does not mention the remaining lines.
fn first_open(bytes: &[u8], answers: &[Value]) -> Option<u64> {
    let settled: HashSet<u64> = answers
        .iter()
        .filter(|answer| is_final(answer))
        .filter_map(|answer| answer["line"].as_u64())
        .collect();
    let mut lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    let open = lines.find(|(n, line)| !line.trim_ascii().is_empty() && !settled.contains(n));
    open.map(|(n, _)| n)
}

/// True if sending the line again would not change its result.
fn is_final(answer: &Value) -> bool {
    !is_temporary(answer) && !is_temporary(&answer["error"])
}

/// True if the server may accept the same request later.
fn is_temporary(refusal: &Value) -> bool {
    refusal["status"] == 503 || refusal["type"] == "/problems/request-under-way"
}

impl Results {
    /// Counts the results of one request. The server's line numbers start at 1 in each request.
    fn add(
        &mut self,
        context: &Context,
        answers: Vec<Value>,
        lines_before: u64,
    ) -> Result<(), Failure> {
        for mut answer in answers {
            let line = lines_before + answer["line"].as_u64().unwrap_or(0);
            answer["line"] = json!(line);
            if context.output.is_json() {
                context.output.line(&answer.to_string())?;
            }
            if answer["id"].is_string() {
                let is_new = answer["deduplicated"] != true;
                self.created += u64::from(is_new);
                self.found += u64::from(!is_new);
                continue;
            }
            if !is_final(&answer) {
                continue;
            }
            self.refused += 1;
            if self.shown.len() < SHOWN_MAX {
                let error = &answer["error"];
                let why = error["detail"].as_str().or(error["title"].as_str()).unwrap_or("refused");
                self.shown.push(format!("  line {line}: {}", clean(why)));
            }
        }
        Ok(())
    }

    /// Builds the error for a server that sent no result for `line` and the lines after it.
    fn broken_off(self, line: u64) -> Failure {
        let created = self.created;
        let mut what = format!(
            "the server sent no result for line {line} and the lines after it ({created} jobs were \
             created before)"
        );
        if self.refused > 0 {
            what.push_str(&format!("; {}", self.refusals()));
        }
        Failure::failed(what).or_else(format!(
            "check which jobs from line {line} on exist, then send only the missing jobs"
        ))
    }

    fn refusals(&self) -> String {
        let Self { refused, shown, .. } = self;
        let more = refused - shown.len() as u64;
        let rest = if more > 0 { format!("\n  and {more} more") } else { String::new() };
        format!("{refused} jobs were not created:\n{}{rest}", shown.join("\n"))
    }

    fn finish(self, context: &Context) -> Result<(), Failure> {
        if !context.output.is_json() {
            let there = match self.found {
                0 => String::new(),
                found => format!(" {found} existed already."),
            };
            context.output.line(&format!("Created {} jobs.{there}", self.created))?;
        }
        if self.refused == 0 {
            return Ok(());
        }
        Err(Failure::failed(self.refusals())
            .or_else("correct these lines and send only them; the others were created"))
    }
}

fn open(path: &Path) -> Result<(Box<dyn BufRead>, Option<u64>), Failure> {
    if path == Path::new("-") {
        return Ok((Box::new(BufReader::new(std::io::stdin())), None));
    }
    let file = File::open(path).map_err(|error| {
        Failure::usage(format!("--file {} can't be read: {error}", path.display()))
            .or_else("give an existing file, or - for standard input")
    })?;
    let size = file.metadata().ok().map(|about| about.len());
    Ok((Box::new(BufReader::new(file)), size))
}

/// Reads the lines of the next request and returns how many there are.
fn next_part(file: &mut dyn BufRead) -> std::io::Result<(Vec<u8>, u64)> {
    let (mut bytes, mut lines) = (Vec::new(), 0);
    while lines < LINES_MAX && bytes.len() < BYTES_MAX {
        if file.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        lines += 1;
    }
    Ok((bytes, lines as u64))
}

/// A progress bar, hidden without a terminal.
fn bar(size: Option<u64>, is_json: bool) -> ProgressBar {
    let target = if is_json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(size, target);
    let style = "{bar:30} {percent:>3}% {bytes}/{total_bytes}  {msg}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_sent_in_parts_of_whole_lines() {
        let text: String = (0..LINES_MAX + 2).map(|n| format!("{n}\n")).collect();
        let mut file = text.trim_end().as_bytes();
        let (first, lines) = next_part(&mut file).unwrap();
        assert_eq!(lines, LINES_MAX as u64);
        assert!(first.ends_with(format!("\n{}\n", LINES_MAX - 1).as_bytes()));
        let (rest, lines) = next_part(&mut file).unwrap();
        assert_eq!((rest.as_slice(), lines), (b"5000\n5001".as_slice(), 2));
        assert_eq!(next_part(&mut file).unwrap(), (Vec::new(), 0));
    }

    #[test]
    fn lines_are_open_until_they_have_a_final_answer() {
        let part = b"{}\n \r\n{}\n{}";
        let good = |line: u64| json!({"line": line, "status": 201, "id": "x"});
        assert_eq!(first_open(part, &[good(1), good(3), good(4)]), None);
        assert_eq!(first_open(part, &[good(1), good(3)]), Some(4));
        assert_eq!(first_open(part, &[]), Some(1));
        let with = |answer: Value| first_open(part, &[good(1), answer, good(4)]);
        assert_eq!(with(json!({"line": 3, "status": 503, "error": {}})), Some(3));
        let under_way = json!({"type": "/problems/request-under-way", "status": 409});
        assert_eq!(with(json!({"line": 3, "status": 409, "error": under_way})), Some(3));
        let taken = json!({"type": "/problems/name-taken", "status": 409});
        assert_eq!(with(json!({"line": 3, "status": 409, "error": taken})), None);
    }

    #[test]
    fn broken_off_transfer_names_the_first_open_line() {
        let shown = vec!["  line 2: no".into()];
        let failure = Results { created: 7, found: 0, refused: 3, shown }.broken_off(5001);
        for words in ["line 5001 and the lines after it", "7 jobs were", "line 2: no", "and 2 more"]
        {
            assert!(failure.what.contains(words), "{words}: {}", failure.what);
        }
    }
}
