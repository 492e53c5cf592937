//! `evenkeel job create --file jobs.ndjson`

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use evenkeel_core::JobId;
use evenkeel_core::chance::Chance as _;
use evenkeel_engine::RandomChance;
use serde_json::{Value, json};

use crate::cli::Session;
use crate::cli::bulk::{first_open, is_final, send};
use crate::output::{Output, clean};
use crate::{Failure, Result};

/// Maximum number of lines per request.
const LINES_MAX: usize = 5000;
/// Maximum number of bytes per request.
const BYTES_MAX: usize = 8 * 1024 * 1024;
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

pub(super) async fn run(session: &Session, path: &Path) -> Result {
    let (mut file, size) = open(path)?;
    let style = "{bar:30} {percent:>3}% {bytes}/{total_bytes}  {msg}";
    let bar = session.output.progress(size, style);
    // The idempotency key of each request starts with this id, so that a repeated request creates
    // no job twice.
    let key = JobId::new(session.now(), RandomChance::from_system().ten_bytes());
    let (mut tally, mut lines_before, mut part) = (Results::default(), 0, 0);
    loop {
        let (bytes, lines) = next_part(&mut file).map_err(|error| {
            Failure::failed(format!("--file {} can't be read further: {error}", path.display()))
        })?;
        if lines == 0 {
            break;
        }
        part += 1;
        let sent = bytes.len() as u64;
        let key = format!("{key}-{part}");
        let answers = send(&session.client, &bytes, &key).await.map_err(|failure| {
            let what = format!("{} (after {} created jobs)", failure.what, tally.created);
            Failure { what, ..failure }
        })?;
        let open = first_open(&bytes, &answers);
        tally.add(session.output, answers, lines_before)?;
        if let Some(line) = open {
            bar.finish_and_clear();
            return Err(tally.broken_off(lines_before + line));
        }
        lines_before += lines;
        bar.inc(sent);
        bar.set_message(format!("{} created, {} refused", tally.created, tally.refused));
    }
    bar.finish_and_clear();
    tally.finish(session.output)
}

impl Results {
    /// Counts the server's results for one request. In each response, the line numbers start at 1.
    fn add(&mut self, output: Output, answers: Vec<Value>, before: u64) -> Result {
        for mut answer in answers {
            let line = before + answer["line"].as_u64().unwrap_or(0);
            answer["line"] = json!(line);
            if output.is_json() {
                output.line(&answer.to_string())?;
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

    /// Returns the error for a response without results from the line `line` on.
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

    fn finish(self, output: Output) -> Result {
        if !output.is_json() {
            let there = match self.found {
                0 => String::new(),
                found => format!(" {found} existed already."),
            };
            output.line(&format!("Created {} jobs.{there}", self.created))?;
        }
        if self.refused == 0 {
            return Ok(());
        }
        Err(Failure::failed(self.refusals())
            .or_else("correct these lines and send only them; the others were created"))
    }
}

fn open(path: &Path) -> Result<(Box<dyn BufRead>, Option<u64>)> {
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

/// Reads the lines of the input file that the next request sends, and counts these lines.
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
    fn broken_off_transfer_names_the_first_open_line() {
        let shown = vec!["  line 2: no".into()];
        let failure = Results { created: 7, found: 0, refused: 3, shown }.broken_off(5001);
        for words in ["line 5001 and the lines after it", "7 jobs were", "line 2: no", "and 2 more"]
        {
            assert!(failure.what.contains(words), "{words}: {}", failure.what);
        }
    }
}
