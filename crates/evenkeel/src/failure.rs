//! Failures of a command: a message, a hint for the user, and an exit code.

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::output::clean;

/// Exit codes of the program. Scripts rely on these numbers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    /// The command line or the configuration is invalid.
    Usage = 2,
    NotFound = 3,
    Conflict = 4,
    /// The server can't be reached.
    Unreachable = 5,
}

impl Exit {
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    pub exit: Exit,
    pub what: String,
    pub way_out: Option<String>,
    /// The invalid input, and the index of the character at which the error was found.
    pub place: Option<(String, usize)>,
    /// The server's problem document.
    pub problem: Option<Value>,
}

impl Failure {
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), way_out: None, place: None, problem: None }
    }

    pub fn failed(what: impl Into<String>) -> Self {
        Self::new(Exit::Failed, what)
    }

    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// A failure caused by `error`; the message contains the chain of causes.
    pub fn because(what: impl Into<String>, error: &dyn Error) -> Self {
        Self::failed(format!("{}: {}", what.into(), chain(error)))
    }

    /// Adds a hint that tells the user what to do.
    #[must_use]
    pub fn or_else(mut self, way_out: impl Into<String>) -> Self {
        self.way_out = Some(way_out.into());
        self
    }

    /// Adds the invalid input, and the index of the character at which the error was found.
    #[must_use]
    pub fn at(mut self, text: impl Into<String>, position: usize) -> Self {
        self.place = Some((text.into(), position));
        self
    }

    /// Prints the failure to standard error, as text or JSON.
    pub fn report(&self, as_json: bool) {
        let mut stderr = std::io::stderr().lock();
        // A failed write to standard error is ignored.
        let _ = if as_json {
            writeln!(stderr, "{}", self.to_json())
        } else {
            write!(stderr, "{}", self.to_text())
        };
    }

    fn to_json(&self) -> Value {
        self.problem.clone().unwrap_or_else(|| {
            json!({
                "title": self.what,
                "detail": self.way_out,
                "exit_code": self.exit.code(),
                "position": self.place.as_ref().map(|(_, position)| position),
            })
        })
    }

    fn to_text(&self) -> String {
        let mut lines = self.what.lines();
        let mut text = format!("error: {}\n", clean(lines.next().unwrap_or_default()));
        for line in lines {
            // All lines after the first are indented, so that text from a server cannot look like a
            // separate error message.
            let indent = if line.starts_with("  ") { "" } else { "  " };
            text.push_str(&format!("{indent}{}\n", clean(line)));
        }
        if let Some((line, position)) = &self.place {
            // Each control character is replaced by exactly one character, so that the caret stays
            // under the invalid character.
            let line: String =
                line.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
            text.push_str(&format!("    {line}\n    {}^\n", " ".repeat(*position)));
        }
        if let Some(way_out) = &self.way_out {
            for line in way_out.lines() {
                text.push_str(&format!("  try: {}\n", clean(line)));
            }
        }
        text
    }
}

/// Formats an error and its causes on one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        // An error message that already contains its cause does not repeat the cause.
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        source = cause.source();
    }
    text
}

/// Turns the error of a result into a [`Failure`].
pub trait Because<T> {
    /// Adds a message that says what failed, as [`Failure::because`] does.
    fn because(self, what: impl Into<String>) -> Result<T, Failure>;
}

impl<T, E: Error> Because<T> for Result<T, E> {
    fn because(self, what: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| Failure::because(what, &error))
    }
}

impl From<std::io::Error> for Failure {
    /// Writing the output failed.
    fn from(error: std::io::Error) -> Self {
        Self::because("the output could not be written", &error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_and_way_out_are_one_line_each() {
        let failure = Failure::usage("no").or_else("say yes");
        assert_eq!(failure.to_text(), "error: no\n  try: say yes\n");
        assert_eq!(failure.exit.code(), 2);
    }

    #[test]
    fn caret_marks_the_fault() {
        let failure = Failure::usage("no such day").at("0 9\t* * 8", 8);
        assert_eq!(failure.to_text(), "error: no such day\n    0 9\u{fffd}* * 8\n            ^\n");
        assert_eq!(failure.to_json()["position"], 8);
    }

    #[test]
    fn failure_of_several_lines_keeps_its_lines() {
        let failure = Failure::failed("2 jobs were not created:\n  line 3: a\\nb\nline 4: c");
        assert_eq!(
            failure.to_text(),
            "error: 2 jobs were not created:\n  line 3: a\\nb\n  line 4: c\n"
        );
        let title = failure.to_json()["title"].clone();
        assert_eq!(title, "2 jobs were not created:\n  line 3: a\\nb\nline 4: c");
    }

    #[test]
    fn control_characters_of_the_server_are_replaced() {
        assert_eq!(Failure::failed("a\x1b[2Jb").to_text(), "error: a\u{fffd}[2Jb\n");
    }

    #[test]
    fn json_failure_is_the_problem_of_the_server() {
        let problem = json!({"type": "/problems/not-found", "status": 404});
        let failure = Failure { problem: Some(problem.clone()), ..Failure::failed("no such job") };
        assert_eq!(failure.to_json(), problem);
        assert_eq!(Failure::usage("no").to_json()["exit_code"], 2);
    }
}
