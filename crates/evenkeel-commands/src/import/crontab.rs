//! Plans the import of user and system crontabs.

mod command;
mod lines;
mod random;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use evenkeel_core::Zone;
use evenkeel_core::executor::ExecutorCatalog;
use serde::Serialize;
use serde_json::{Value, json};

use self::command::Command;
use self::lines::{AT_BOOT, Line};
use super::{Disposition, Planned};
use crate::Object;
use crate::limits::{NAME_CHARS_MAX, TIMEOUT_SECONDS_MAX};
use crate::read::read_cron;

#[derive(Clone, Debug)]
pub struct CrontabOptions {
    /// Time zone of the machine whose crontab is imported.
    pub zone: Zone,
    /// True for a system crontab, in which each entry names a user.
    pub system: bool,
    /// User that runs the programs if the crontab names no user; `None` leaves the choice to the
    /// server.
    pub user: Option<String>,
    /// Working directory of the programs if the crontab does not set `HOME`.
    pub cwd: Option<String>,
    pub executors: ExecutorCatalog,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CrontabPlan {
    pub entries: Vec<Planned>,
    /// Differences between Evenkeel and cron that apply to all entries of the crontab.
    pub remarks: Vec<String>,
}

pub fn plan(text: &str, options: &CrontabOptions) -> CrontabPlan {
    let mut reader = Reader::new(options);
    for (line, text) in (1..).zip(text.lines()) {
        reader.read_line(line, text);
    }
    reader.finish()
}

/// Default value of `PATH` in cron.
const CRON_PATH: &str = "/usr/bin:/bin";

/// Reads a crontab line by line, and keeps the variables and comments that apply to the next entry.
struct Reader<'a> {
    options: &'a CrontabOptions,
    zone: Result<Zone, String>,
    shell: String,
    home: Option<String>,
    env: Object,
    /// Comments directly above the next entry.
    comments: Vec<String>,
    names: HashSet<String>,
    plan: CrontabPlan,
}

impl<'a> Reader<'a> {
    fn new(options: &'a CrontabOptions) -> Self {
        Self {
            options,
            zone: Ok(options.zone.clone()),
            shell: "/bin/sh".into(),
            home: None,
            env: Object::new(),
            comments: Vec::new(),
            names: HashSet::new(),
            plan: CrontabPlan { entries: Vec::new(), remarks: Vec::new() },
        }
    }

    fn read_line(&mut self, line: u64, text: &str) {
        match lines::read(text, self.options.system) {
            Line::Blank => self.comments.clear(),
            Line::Comment(comment) => self.comments.push(comment.into()),
            Line::Variable { name, value } => {
                self.comments.clear();
                self.set(&name, value);
            }
            Line::Unreadable(why) => {
                let name = format!("line {line}");
                self.comments.clear();
                self.plan.entries.push(Planned {
                    was: Some(text.trim().into()),
                    ..Planned::for_review(line, name, "unreadable_line", why)
                });
            }
            Line::Entry { expression, user, command } => {
                let comments = std::mem::take(&mut self.comments);
                let command = Command::read(command);
                let name = self.name(&comments, &command);
                let user = user.or(self.options.user.as_deref());
                let planned = self.entry(line, name, &comments, &expression, user, &command);
                if planned.document.is_some() {
                    self.names.insert(planned.name.clone());
                }
                self.plan.entries.push(planned);
            }
        }
    }

    fn set(&mut self, name: &str, value: String) {
        match name {
            // `CRON_TZ` with an empty value restores the default time zone.
            "CRON_TZ" if value.is_empty() => self.zone = Ok(self.options.zone.clone()),
            "CRON_TZ" => {
                let unknown = |error| format!("CRON_TZ={value} is {error}");
                self.zone = super::zone(&value).map_err(unknown);
            }
            "SHELL" => self.shell = value,
            "MAILTO" | "MAILFROM" => {
                if !value.is_empty() {
                    self.remark(format!(
                        "{name}={value}: no mail is sent; the output is kept with each run, and \
                         failures are seen with `evenkeel job conditions`"
                    ));
                }
            }
            "RANDOM_DELAY" => self.remark(format!(
                "{name}={value}: start times are not randomized; `\"exact\": false` spreads a job's \
                 times over a minute"
            )),
            _ => {
                if name == "HOME" {
                    self.home = Some(value.clone()).filter(|home| home.starts_with('/'));
                }
                self.env.insert(name.into(), value.into());
            }
        }
    }

    fn remark(&mut self, remark: String) {
        if !self.plan.remarks.contains(&remark) {
            self.plan.remarks.push(remark);
        }
    }

    fn entry(
        &self,
        line: u64,
        name: String,
        comments: &[String],
        expression: &str,
        user: Option<&str>,
        command: &Command,
    ) -> Planned {
        let was = Some(expression.to_owned());
        let for_review = |code, why: String| Planned {
            was: was.clone(),
            ..Planned::for_review(line, name.clone(), code, why)
        };
        if expression == AT_BOOT {
            let why = "it runs when the machine starts, which a schedule cannot express; use the \
                       machine's service manager";
            return for_review("at_boot", why.into());
        }
        if command.script.is_empty() {
            return for_review("no_command", "the entry has no command".into());
        }
        let zone = match &self.zone {
            Ok(zone) => zone,
            Err(why) => {
                return for_review("unknown_zone", format!("{why}, so its times are unknown"));
            }
        };
        if let Some(placeholder) = command.placeholder() {
            let why = format!(
                "its command holds {{{{{placeholder}}}}}, which a shell job would fill in; put the command \
                 into a script and run that"
            );
            return for_review("placeholder", why);
        }
        let fixed = random::with_h(expression);
        let expression = fixed.as_deref().unwrap_or(expression);
        if let Err(error) = read_cron(expression) {
            let why = error.of("", expression).message;
            return for_review("unreadable_schedule", format!("{why}; rewrite the schedule"));
        }
        let mut notes = Vec::new();
        if let Some(user) = user {
            notes.push(format!(
                "it runs as {user}: the server must run as root, with --shell-users {user} (or \
                 --shell-user {user}, for all jobs); otherwise it refuses the job"
            ));
        }
        if fixed.is_some() {
            notes.push(
                "~ becomes H: the time is drawn when the job is made, and stays; cron draws it \
                 whenever it reads the crontab"
                    .into(),
            );
        }
        if command.input.is_some() {
            notes.push("the text after % is its standard input".into());
        }
        let document = self.document(&name, comments, expression, zone, user, command);
        let planned = Planned {
            disposition: Disposition::Cron,
            code: "cron",
            why: "a crontab follows the clocks of its zone".into(),
            was,
            becomes: Some(format!("{expression} ({zone})")),
            notes,
            document: Some(document),
            ..Planned::for_review(line, name, "", "")
        };
        planned.checked(self.options.executors)
    }

    /// Builds a job that behaves like the crontab entry: no retries, no catch-up of missed runs,
    /// and overlapping runs are allowed.
    fn document(
        &self,
        name: &str,
        comments: &[String],
        expression: &str,
        zone: &Zone,
        user: Option<&str>,
        command: &Command,
    ) -> Value {
        // HOME, LOGNAME and USER are left out, because the server sets them for the user that runs
        // the program.
        let mut env = Object::new();
        env.insert("PATH".into(), CRON_PATH.into());
        env.extend(self.env.clone());
        env.insert("SHELL".into(), self.shell.clone().into());
        let home = "~".to_owned();
        let cwd = self.home.as_ref().or(self.options.cwd.as_ref()).unwrap_or(&home);
        let mut config = json!({
            "argv": [self.shell, "-c", command.script],
            "cwd": cwd,
            "env": env,
            "stdin": if command.input.is_some() { "text" } else { "none" },
        });
        if let Some(user) = user {
            config["user"] = user.into();
        }
        let mut document = json!({
            "name": name,
            "schedule": {"kind": "cron", "expression": expression},
            "timezone": zone.name(),
            "executor_type": "shell",
            "executor_config": config,
            "max_retries": 0,
            "misfire": "skip",
            "overlap": "allow",
            "timeout_sec": TIMEOUT_SECONDS_MAX,
        });
        if let Some(input) = &command.input {
            document["payload"] = input.clone().into();
        }
        if let (true, Some(user)) = (self.options.system, user) {
            document["metadata"] = json!({"crontab_user": user});
        }
        if comments.len() > 1 {
            document["description"] = comments.join("\n").into();
        }
        document
    }

    /// Returns a name for the job: the comment above the entry, or the name of the program, with a
    /// number if the name is taken.
    fn name(&self, comments: &[String], command: &Command) -> String {
        let comment = comments.last().map(|comment| comment.trim());
        let comment = comment.filter(|text| lines::is_a_name(text)).map(String::from);
        let name = comment.unwrap_or_else(|| command.program());
        let name: String = name.chars().take(NAME_CHARS_MAX - 10).collect();
        let numbered = (2..).map(|n| format!("{name} {n}"));
        let free = |name: &String| !self.names.contains(name);
        std::iter::once(name.clone()).chain(numbered).find(free).unwrap_or_default()
    }

    fn finish(mut self) -> CrontabPlan {
        let made = self.plan.entries.iter().filter(|entry| entry.document.is_some());
        let script = |entry: &Planned| {
            let argv = &entry.document.as_ref()?["executor_config"]["argv"];
            argv[2].as_str().map(String::from)
        };
        let scripts: Vec<String> = made.filter_map(script).collect();
        if scripts.is_empty() {
            return self.plan;
        }
        if !self.options.system && scripts.iter().all(|script| script.starts_with("root ")) {
            self.remark(
                "every command begins with \"root\": if this is a crontab of the system, which names \
                 a user in each entry, use --system"
                    .into(),
            );
        }
        if !self.options.system && self.options.user.is_none() {
            self.remark(
                "cron ran these commands as the crontab's owner; here they run as the user that the \
                 server runs programs as (nobody, if it runs as root): --user names another one"
                    .into(),
            );
        }
        self.plan
    }
}
