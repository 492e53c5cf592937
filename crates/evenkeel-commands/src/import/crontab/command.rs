//! What an entry runs.

/// A command, read as cron reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Command {
    /// What the shell is told.
    pub script: String,
    /// What it gets as standard input, if anything.
    pub input: Option<String>,
}

impl Command {
    /// The first `%` that has no backslash before it ends the command; what follows is its
    /// standard input, in which every further one is the end of a line.
    pub(super) fn read(text: &str) -> Self {
        let mut parts = vec![String::new()];
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let part = match c {
                '\\' if chars.peek() == Some(&'%') => {
                    chars.next();
                    '%'
                }
                '%' => {
                    parts.push(String::new());
                    continue;
                }
                c => c,
            };
            if let Some(last) = parts.last_mut() {
                last.push(part);
            }
        }
        let mut parts = parts.into_iter();
        let script = parts.next().unwrap_or_default().trim().to_owned();
        let lines: Vec<String> = parts.collect();
        let input = (!lines.is_empty()).then(|| ended(lines.join("\n")));
        Self { script, input }
    }

    /// Something in it that the shell executor would fill in, if there is any. It would run as
    /// another command than it was.
    pub(super) fn place(&self) -> Option<&str> {
        const FILLED: [&str; 6] =
            ["run_id", "execution_id", "attempt", "fence", "scheduled_at", "payload"];
        let places = self.script.split("{{").skip(1);
        places
            .filter_map(|rest| rest.split_once("}}").map(|(name, _)| name.trim()))
            .find(|name| FILLED.contains(&name.split('.').next().unwrap_or_default()))
    }

    /// The name of the program, as well as it can be told.
    pub(super) fn program(&self) -> String {
        // Words that come before a program: changes of folder, variables, runners.
        const BEFORE: [&str; 8] = ["exec", "nice", "ionice", "nohup", "sudo", "time", "env", "["];
        let last_of_cd = self.script.rsplit("&&").next().unwrap_or_default();
        let script = if self.script.starts_with("cd ") { last_of_cd } else { self.script.as_str() };
        let mut words = script.split_whitespace().filter(|word| {
            let plain = !word.contains('=') && !word.starts_with('-');
            plain && !BEFORE.contains(word)
        });
        let program = words.next().unwrap_or_default();
        let name = program.trim_matches(['(', ')', '"', '\'', ';']).rsplit('/').next();
        match name.unwrap_or_default() {
            "" => "cron job".into(),
            name => name.into(),
        }
    }
}

/// Cron ends the last line, if there is one that has no end.
fn ended(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
