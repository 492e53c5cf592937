//! The command line of a body, and why no shell reads what is filled in.

use serde_json::Value;

use crate::config::{ConfigFault, Fields};
use crate::template::Template;

/// Programs that read a script from an argument.
const SHELLS: [&str; 11] =
    ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash", "csh", "tcsh"];

/// Programs that give a shell what follows their option `-c`.
const WITH_COMMAND: [&str; 4] = ["flock", "runuser", "script", "su"];

/// Programs that give a shell all their arguments in one.
const JOINERS: [&str; 3] = ["parallel", "ssh", "watch"];

/// Programs that run another one, which may be a shell.
const WRAPPERS: [&str; 19] = [
    "busybox", "chroot", "chrt", "doas", "env", "find", "flock", "ionice", "nice", "nohup",
    "runuser", "setsid", "stdbuf", "su", "sudo", "taskset", "timeout", "unshare", "xargs",
];

/// How a shell calls its own standard input.
const INPUTS: [&str; 3] = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// Reads `argv`. The program is fixed; every other argument is a template, but for what a shell
/// would read as a script.
pub(super) fn parse(fields: &Fields<'_>) -> Result<Vec<Template>, ConfigFault> {
    let fault = || ConfigFault::new("argv", "must be a list of strings, the program first");
    let value = fields.get("argv").ok_or_else(|| ConfigFault::new("argv", "is required"))?;
    let texts: Vec<&str> = value
        .as_array()
        .ok_or_else(fault)?
        .iter()
        .map(|arg| Value::as_str(arg).ok_or_else(fault))
        .collect::<Result<_, _>>()?;
    if texts.first().is_none_or(|program| program.is_empty()) {
        return Err(fault());
    }
    let mut argv = Vec::with_capacity(texts.len());
    for (n, text) in texts.iter().enumerate() {
        let fault = |message: String| ConfigFault::new(&format!("argv[{n}]"), message);
        if text.contains('\0') {
            return Err(fault("must not hold a NUL".into()));
        }
        argv.push(Template::parse(text).map_err(fault)?);
    }
    if !argv[0].is_plain() {
        let message = "is the program, which a job has to name: nothing can be filled in here";
        return Err(ConfigFault::new("argv[0]", message));
    }
    match script_filled_in(&texts, &argv) {
        Some(n) => Err(ConfigFault::new(
            &format!("argv[{n}]"),
            "is read by a shell, or says what to run: what is filled in would be run; pass it as \
             a further argument and write \"$1\" in the script: \
             [\"sh\", \"-c\", \"echo \\\"$1\\\"\", \"sh\", \"{{payload.x}}\"]",
        )),
        None => Ok(argv),
    }
}

/// The first argument with a place to be filled in that a shell would read, or that would choose
/// what is run.
fn script_filled_in(texts: &[&str], argv: &[Template]) -> Option<usize> {
    let has_place = |n: &usize| !argv[*n].is_plain();
    for n in programs(texts).filter(|n| !has_place(n)) {
        let (name, rest) = (name(texts[n]), n + 1..texts.len());
        if SHELLS.contains(&name) {
            let script = script(texts, n);
            // Options may have values that look like a script; so what follows any `-c` is one, too.
            let read = |m: &usize| *m <= script || is_command_option(texts[m - 1]) && *m > n + 1;
            return rest.filter(read).find(has_place);
        }
        if JOINERS.contains(&name) {
            return rest.into_iter().find(has_place);
        }
        let found = match name {
            "env" => chosen_by_env(texts, argv, n),
            _ if WITH_COMMAND.contains(&name) => rest
                .filter(|m| is_command_option(texts[m - 1]) || texts[*m].starts_with('-'))
                .find(has_place),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Where a program may be named: at the beginning, and anywhere after one that runs others.
fn programs(texts: &[&str]) -> impl Iterator<Item = usize> {
    let end = if WRAPPERS.contains(&name(texts[0])) { texts.len() } else { 1 };
    0..end
}

fn name(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or_default()
}

/// `env` takes words for options, then for variables, then for the program; and with `-S` it makes
/// several words of one.
fn chosen_by_env(texts: &[&str], argv: &[Template], env: usize) -> Option<usize> {
    let splits = |text: &str| match text.strip_prefix("--") {
        Some(long) => long.starts_with('s'),
        // What comes first of those that have a value takes the rest of the word for it.
        None => text.starts_with('-') && text.chars().find(|c| "aCSu".contains(*c)) == Some('S'),
    };
    for n in env + 1..texts.len() {
        let fixed = texts[n].split("{{").next().unwrap_or_default();
        if splits(fixed) {
            return (n..texts.len()).find(|n| !argv[*n].is_plain());
        }
        let is_variable = fixed.contains('=') && !fixed.starts_with('-');
        if !argv[n].is_plain() && !is_variable {
            return Some(n);
        }
        let is_value = ["-u", "--unset", "-C", "--chdir"].contains(&texts[n - 1]);
        if !is_variable && !fixed.starts_with('-') && !is_value {
            return None;
        }
    }
    None
}

/// Would a shell among these run what is on its standard input?
pub(super) fn runs_its_input(argv: &[Template]) -> bool {
    let texts: Vec<&str> = argv.iter().map(|arg| arg.plain().unwrap_or("{{}}")).collect();
    // It runs a shell of its own.
    if name(texts[0]) == "su" && !texts.iter().any(|text| is_command(text)) {
        return true;
    }
    let Some(shell) = programs(&texts).find(|n| SHELLS.contains(&name(texts[*n]))) else {
        return false;
    };
    let script = script(&texts, shell);
    let options = &texts[shell + 1..script.min(texts.len())];
    if options.iter().any(|text| is_command(text)) {
        return false;
    }
    let from_input = |text: &&str| {
        text.strip_prefix('-')
            .is_some_and(|letters| !letters.starts_with('-') && letters.contains('s'))
    };
    options.iter().any(from_input) || texts.get(script).is_none_or(|text| INPUTS.contains(text))
}

/// Where the script is: the first argument that is neither an option nor an option's value.
fn script(texts: &[&str], shell: usize) -> usize {
    let mut n = shell + 1;
    while let Some(text) = texts.get(n) {
        n += match *text {
            // Both say that no more options come.
            "--" | "-" => return n + 1,
            "--rcfile" | "--init-file" | "--init-command" | "--command" => 2,
            long if long.starts_with("--") => 1,
            // `-o pipefail`; and in fish, `-C command`.
            short if is_short(short) => 1 + usize::from(short.contains(['o', 'O', 'C'])),
            _ => return n,
        };
    }
    n
}

fn is_short(text: &str) -> bool {
    text.len() > 1 && text.starts_with(['-', '+'])
}

fn is_command(text: &str) -> bool {
    is_command_option(text) || text.starts_with("--command=")
}

fn is_command_option(text: &str) -> bool {
    text == "--command"
        || text.strip_prefix('-').is_some_and(|letters| {
            letters.contains('c') && letters.chars().all(|c| c.is_ascii_alphabetic())
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fault(argv: &Value) -> Option<String> {
        let config = json!({"argv": argv});
        let fields = Fields::read(&config, &["argv"]).unwrap();
        parse(&fields).err().map(|fault| fault.field)
    }

    #[test]
    fn nothing_is_filled_into_what_a_shell_reads() {
        for (argv, blamed) in [
            (json!(["sh", "-c", "echo {{payload.x}}"]), 2),
            (json!(["/bin/bash", "-ec", "{{payload.x}}"]), 2),
            (json!(["bash", "-e", "-c", "{{payload.x}}"]), 3),
            (json!(["bash", "-c", "-e", "{{payload.x}}"]), 3),
            (json!(["bash", "-o", "pipefail", "-c", "{{payload.x}}"]), 4),
            (json!(["bash", "{{payload.option}}", "{{payload.x}}"]), 1),
            (json!(["bash", "--rcfile", "{{payload.x}}", "-i"]), 2),
            (json!(["dash", "--", "{{payload.script}}"]), 2),
            (json!(["fish", "-d", "3", "-c", "{{payload.x}}"]), 4),
            (json!(["fish", "--command={{payload.x}}"]), 1),
            (json!(["env", "A=b", "sh", "-c", "{{payload.x}}"]), 4),
            (json!(["/usr/bin/timeout", "5", "bash", "-c", "{{run_id}}"]), 4),
            (json!(["busybox", "sh", "-c", "{{run_id}}"]), 3),
            (json!(["sh", "-c", "-", "{{payload.x}}"]), 3),
            (json!(["bash", "-", "{{payload.x}}"]), 2),
            (json!(["tcsh", "-c", "{{payload.x}}"]), 2),
            (json!(["env", "-S", "sh -c", "{{payload.x}}"]), 3),
            (json!(["env", "-iS{{payload.x}}"]), 1),
            (json!(["env", "--split-string={{payload.x}}"]), 1),
            (json!(["nice", "env", "-vS", "sh -c {{payload.x}}"]), 3),
            (json!(["env", "A=b", "{{payload.program}}"]), 2),
            (json!(["env", "A=b", "timeout", "5", "sh", "-c", "{{payload.x}}"]), 6),
            (json!(["flock", "/run/lock", "-c", "{{payload.x}}"]), 3),
            (json!(["flock", "/run/lock", "sh", "-c", "{{payload.x}}"]), 4),
            (json!(["su", "nobody", "--command={{payload.x}}"]), 2),
            (json!(["runuser", "-u", "nobody", "--", "sh", "-c", "{{payload.x}}"]), 6),
            (json!(["xargs", "sh", "-c", "{{payload.x}}"]), 3),
            (json!(["find", "/tmp", "-exec", "sh", "-c", "{{payload.x}}", ";"]), 5),
            (json!(["ssh", "host", "rm", "{{payload.x}}"]), 3),
            (json!(["timeout", "5", "ssh", "host", "rm", "{{payload.x}}"]), 5),
            (json!(["{{payload.program}}"]), 0),
        ] {
            let expected = format!("executor_config.argv[{blamed}]");
            assert_eq!(fault(&argv), Some(expected), "{argv}");
        }
    }

    #[test]
    fn arguments_are_filled_in_everywhere_else() {
        for argv in [
            json!(["sh", "-c", "echo \"$1\"", "sh", "{{payload.x}}"]),
            json!(["bash", "-o", "pipefail", "-ec", "echo $1", "_", "{{payload.x}}", "{{run_id}}"]),
            json!(["sh", "/opt/job.sh", "{{payload.x}}"]),
            json!(["sh", "/opt/job.sh", "-x", "{{payload.x}}"]),
            json!(["env", "X={{payload.x}}", "printenv"]),
            json!(["echo", "sh", "{{payload.x}}"]),
            json!(["curl", "-c", "{{payload.x}}"]),
            json!(["env", "-uSHELL", "-u", "HOME", "A=b", "printenv", "{{payload.x}}"]),
            json!(["timeout", "{{payload.seconds}}", "sleep", "9"]),
            json!(["timeout", "5", "sh", "-c", "ssh host", "sh", "{{payload.x}}"]),
            json!(["flock", "/run/{{payload.x}}", "true"]),
            json!(["find", "/tmp", "-name", "{{payload.x}}"]),
        ] {
            assert_eq!(fault(&argv), None, "{argv}");
        }
    }

    #[test]
    fn a_shell_that_reads_its_script_from_its_input_is_known() {
        let runs = |argv: Value| {
            let config = json!({"argv": argv});
            runs_its_input(&parse(&Fields::read(&config, &["argv"]).unwrap()).unwrap())
        };
        for argv in [
            json!(["sh"]),
            json!(["/bin/bash", "-e"]),
            json!(["sh", "-s"]),
            json!(["sh", "-es", "x"]),
            json!(["su", "nobody"]),
            json!(["bash", "-o", "pipefail"]),
            json!(["bash", "--norc", "-"]),
            json!(["sh", "/dev/stdin"]),
            json!(["timeout", "5", "env", "A=b", "dash"]),
        ] {
            assert!(runs(argv.clone()), "{argv}");
        }
        for argv in [
            json!(["cat"]),
            json!(["sh", "-c", "cat"]),
            json!(["sh", "-ec", "cat"]),
            json!(["bash", "--", "/opt/job.sh"]),
            json!(["sh", "/opt/job.sh", "-s"]),
            json!(["timeout", "5", "cat"]),
            json!(["su", "nobody", "-c", "cat"]),
        ] {
            assert!(!runs(argv.clone()), "{argv}");
        }
    }
}
