//! `evenkeel run logs`

use std::ops::ControlFlow;

use clap::Args;
use serde_json::{Value, json};

use super::super::Session;
use crate::Result;
use crate::client::Message;
use crate::output::{Output, clean_lines};

#[derive(Args, Clone)]
pub struct LogsArgs {
    /// Id of a run or execution
    id: String,
    /// Follow the log until the run ends
    #[arg(short, long)]
    follow: bool,
    /// Number of last lines to show
    #[arg(short = 'n', long, value_name = "N")]
    tail: Option<u32>,
    /// Only one stream
    #[arg(long, value_name = "STREAM", value_parser = ["stdout", "stderr"])]
    stream: Option<String>,
    /// Show the time of each line, and whether it is standard output or standard error
    #[arg(short, long)]
    timestamps: bool,
}

pub(super) async fn logs(session: &Session, args: LogsArgs) -> Result {
    let mut query = Vec::from_iter(args.tail.map(|tail| ("tail", tail.to_string())));
    query.extend(args.stream.map(|stream| ("stream", stream)));
    let path = ["executions", &args.id, "logs"];
    let mut printer = Printer::new(session.output, args.timestamps);
    if !args.follow {
        let view = session.client.get_with(&path, &query).await?.value;
        printer.lines(&view)?;
        return printer.end(&json!({
            "execution_id": view["execution_id"], "status": view["status"],
            "is_final": view["is_final"], "printed_bytes": view["printed_bytes"],
            "error_message": view["error_message"],
        }));
    }
    query.push(("follow", "true".into()));
    let handle = |message: &Message| {
        let data: Value = serde_json::from_str(&message.data).unwrap_or_default();
        match message.event.as_str() {
            "log" => printer.lines(&data)?,
            "end" => {
                printer.end(&data)?;
                return Ok(ControlFlow::Break(()));
            }
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    };
    // If the server closes the log stream before the run ends, the client reconnects and continues.
    session.client.follow(&path, &query, None, handle).await
}

/// Prints the log lines of a run as they arrive, as text or JSON.
struct Printer {
    output: Output,
    timestamps: bool,
    /// The stream (stdout or stderr) of the last printed line, if this line has no newline yet.
    open: Option<String>,
}

impl Printer {
    const fn new(output: Output, timestamps: bool) -> Self {
        Self { output, timestamps, open: None }
    }

    fn lines(&mut self, data: &Value) -> Result {
        let lines = data["lines"].as_array().map_or(&[][..], Vec::as_slice);
        if self.output.is_json() {
            return lines.iter().try_for_each(|line| self.output.line(&line.to_string()));
        }
        let mut text = String::new();
        lines.iter().for_each(|line| self.add(&mut text, line));
        if text.is_empty() { Ok(()) } else { self.output.piece(&text) }
    }

    /// Appends one log line, formatted for display, to `text`.
    fn add(&mut self, text: &mut String, line: &Value) {
        let left_out = line["left_out_before"].as_u64().unwrap_or(0);
        let stream = line["stream"].as_str().unwrap_or_default();
        let continues = left_out == 0 && self.open.as_deref() == Some(stream);
        if !continues && self.open.take().is_some() {
            text.push('\n');
        }
        if left_out > 0 {
            text.push_str(&format!("-- {left_out} bytes left out --\n"));
        }
        let is_error = stream == "stderr";
        let mut shown = String::new();
        if self.timestamps && !continues {
            let at = line["at"].as_str().unwrap_or("-");
            shown.push_str(&format!("{} {stream} ", clean_lines(at)));
        }
        shown.push_str(&clean_lines(line["text"].as_str().unwrap_or_default()));
        text.push_str(&if is_error { self.output.warned(&shown) } else { shown });
        if line["is_partial"] == true {
            self.open = Some(stream.to_owned());
        } else {
            text.push('\n');
            self.open = None;
        }
    }

    /// Ends the output after the last log line.
    fn end(&self, data: &Value) -> Result {
        if self.output.is_json() {
            return self.output.line(&data.to_string());
        }
        // Without a final newline, the shell's prompt would appear on the last line of the log.
        if self.open.is_some() { self.output.piece("\n") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(stream: &str, text: &str, is_partial: bool) -> Value {
        json!({"stream": stream, "at": "2026-12-01T09:00:00Z", "text": text,
               "is_partial": is_partial, "left_out_before": 0})
    }

    fn printed(timestamps: bool, lines: &[Value]) -> String {
        let mut printer = Printer::new(Output::new(false), timestamps);
        let mut text = String::new();
        lines.iter().for_each(|line| printer.add(&mut text, line));
        text
    }

    #[test]
    fn unfinished_line_continues_unless_the_other_stream_prints() {
        let dots = [line("stdout", ".", true), line("stdout", ".", true)];
        assert_eq!(printed(false, &dots), "..");
        let data = [dots[0].clone(), line("stderr", "alas", false), line("stdout", "!", false)];
        assert_eq!(printed(false, &data), ".\nalas\n!\n");
    }

    #[test]
    fn omitted_bytes_are_counted() {
        let mut late = line("stdout", "late", false);
        late["left_out_before"] = json!(70);
        let data = [line("stdout", "be", true), late];
        assert_eq!(printed(false, &data), "be\n-- 70 bytes left out --\nlate\n");
    }

    #[test]
    fn timestamps_name_the_stream_and_control_characters_are_replaced() {
        let data = [line("stderr", "a\u{1b}[2J", false)];
        assert_eq!(printed(true, &data), "2026-12-01T09:00:00Z stderr a\u{fffd}[2J\n");
    }
}
