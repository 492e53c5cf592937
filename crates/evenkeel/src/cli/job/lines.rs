//! `evenkeel job create --file jobs.ndjson`

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use evenkeel_core::JobId;
use evenkeel_core::chance::Chance as _;
use evenkeel_engine::RandomChance;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use super::super::Context;
use crate::client::Client;
use crate::output::clean;
use crate::{Exit, Failure};

/// Lines sent in one request: few enough that the answers find room while it is sent.
const LINES_MAX: usize = 5000;
/// Bytes sent in one request.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// Refusals that are told one by one.
const TOLD_MAX: usize = 20;

/// What has become of the file so far.
#[derive(Default)]
struct Tally {
    created: u64,
    refused: u64,
    told: Vec<String>,
}

pub(super) async fn run(context: &Context, client: &Client, path: &Path) -> Result<(), Failure> {
    let (mut file, size) = open(path)?;
    let bar = bar(size, context.output.is_json());
    // One key for the file, so that a part that is sent again is not created again.
    let key = JobId::new(context.now(), RandomChance::from_system().ten_bytes());
    let (mut tally, mut lines_before, mut part) = (Tally::default(), 0, 0);
    loop {
        let (bytes, lines) = next_part(&mut file).map_err(|error| {
            Failure::failed(format!("--file {} can't be read on: {error}", path.display()))
        })?;
        if lines == 0 {
            break;
        }
        part += 1;
        let sent = bytes.len() as u64;
        let answers = send(client, bytes, &format!("{key}-{part}")).await.map_err(|failure| {
            let what = format!("{} (after {} created jobs)", failure.what, tally.created);
            Failure { what, ..failure }
        })?;
        tally.add(context, &answers, lines_before)?;
        lines_before += lines;
        bar.inc(sent);
        bar.set_message(format!("{} created, {} refused", tally.created, tally.refused));
    }
    bar.finish_and_clear();
    tally.finish(context)
}

/// Sends a part, once more if nobody answered: under the same key it is done once.
async fn send(client: &Client, bytes: Vec<u8>, key: &str) -> Result<String, Failure> {
    match client.post_lines(&["jobs", "bulk"], bytes.clone(), key).await {
        Err(failure) if failure.exit == Exit::Unreachable => {
            client.post_lines(&["jobs", "bulk"], bytes, key).await
        }
        answered => answered,
    }
}

impl Tally {
    /// Counts answers, whose lines are counted from the first of their part.
    fn add(&mut self, context: &Context, answers: &str, lines_before: u64) -> Result<(), Failure> {
        for text in answers.lines() {
            let mut answer: Value = serde_json::from_str(text).map_err(|error| {
                Failure::because("the server's answer can't be understood", &error)
            })?;
            let line = lines_before + answer["line"].as_u64().unwrap_or(0);
            answer["line"] = json!(line);
            if context.output.is_json() {
                context.output.line(&answer.to_string())?;
            }
            if answer["id"].is_string() {
                self.created += 1;
                continue;
            }
            self.refused += 1;
            if self.told.len() < TOLD_MAX {
                let error = &answer["error"];
                let why = error["detail"].as_str().or(error["title"].as_str()).unwrap_or("refused");
                self.told.push(format!("  line {line}: {}", clean(why)));
            }
        }
        Ok(())
    }

    fn finish(self, context: &Context) -> Result<(), Failure> {
        let Self { created, refused, told } = self;
        if !context.output.is_json() {
            context.output.line(&format!("Created {created} jobs."))?;
        }
        if refused == 0 {
            return Ok(());
        }
        let more = refused - told.len() as u64;
        let rest = if more > 0 { format!("\n  and {more} more") } else { String::new() };
        let what = format!("{refused} jobs were not created:\n{}{rest}", told.join("\n"));
        Err(Failure::failed(what)
            .or_else("mend these lines and send them alone; the others are created"))
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

/// The next lines, and how many they are.
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

/// Shown to people only: it hides itself where nobody looks.
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
    fn a_file_is_sent_in_parts_of_whole_lines() {
        let text: String = (0..LINES_MAX + 2).map(|n| format!("{n}\n")).collect();
        let mut file = text.trim_end().as_bytes();
        let (first, lines) = next_part(&mut file).unwrap();
        assert_eq!(lines, LINES_MAX as u64);
        assert!(first.ends_with(format!("\n{}\n", LINES_MAX - 1).as_bytes()));
        let (rest, lines) = next_part(&mut file).unwrap();
        assert_eq!((rest.as_slice(), lines), (b"5000\n5001".as_slice(), 2));
        assert_eq!(next_part(&mut file).unwrap(), (Vec::new(), 0));
    }
}
