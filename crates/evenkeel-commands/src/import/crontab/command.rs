//! Parses the command of a crontab entry.

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Command {
    /// The shell script of the crontab entry.
    pub script: String,
    /// Text for the standard input of the script.
    pub input: Option<String>,
}

impl Command {
    /// Splits a command at `%` signs. The first unescaped `%` of a command ends the script; the
    /// rest is its standard input, in which every further `%` is a line break.
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
        let mut input = lines.join("\n");
        // Cron adds a missing line break at the end of the standard input.
        if !input.is_empty() && !input.ends_with('\n') {
            input.push('\n');
        }
        Self { script, input: (!lines.is_empty()).then_some(input) }
    }

    /// Returns the first placeholder such as `{{run_id}}` in the script, which the shell executor
    /// would replace.
    pub(super) fn placeholder(&self) -> Option<&str> {
        const PLACEHOLDERS: [&str; 6] =
            ["run_id", "execution_id", "attempt", "fence", "scheduled_at", "payload"];
        let places = self.script.split("{{").skip(1);
        places
            .filter_map(|rest| rest.split_once("}}").map(|(name, _)| name.trim()))
            .find(|name| PLACEHOLDERS.contains(&name.split('.').next().unwrap_or_default()))
    }

    /// Guesses the name of the program that the script runs.
    pub(super) fn program(&self) -> String {
        // Words that may come before the name of a program, such as `exec` or `sudo`.
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
