//! The command line of a body, and why no shell reads what is filled in.

use serde_json::Value;

use crate::config::{ConfigFault, Fields};
use crate::template::Template;

/// Programs that read a script from an argument.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash"];

/// Programs that run another one, which may be a shell.
const WRAPPERS: [&str; 14] = [
    "busybox", "chroot", "chrt", "doas", "env", "ionice", "nice", "nohup", "setsid", "stdbuf",
    "sudo", "taskset", "timeout", "unshare",
];

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
            "is read by a shell, which would run what is filled in; pass it as a further argument \
             and write \"$1\" in the script: [\"sh\", \"-c\", \"echo \\\"$1\\\"\", \"sh\", \
             \"{{payload.x}}\"]",
        )),
        None => Ok(argv),
    }
}

/// The first argument with a place to be filled in that a shell would take for an option, or for
/// its script.
fn script_filled_in(texts: &[&str], argv: &[Template]) -> Option<usize> {
    let name = |n: usize| texts[n].rsplit('/').next().unwrap_or_default();
    let is_shell = |n: usize| SHELLS.contains(&name(n)) && argv[n].is_plain();
    let shell = if WRAPPERS.contains(&name(0)) {
        (1..texts.len()).find(|n| is_shell(*n))?
    } else {
        Some(0).filter(|n| is_shell(*n))?
    };
    let script = script(texts, shell);
    let scripts = (shell..texts.len()).filter(|n| {
        // Options may have values that look like a script; so what follows any `-c` is one, too.
        *n <= script || is_command_option(texts[n - 1]) && *n > shell + 1
    });
    scripts.into_iter().find(|n| !argv[*n].is_plain())
}

/// Where the script is: the first argument that is neither an option nor an option's value.
fn script(texts: &[&str], shell: usize) -> usize {
    let mut n = shell + 1;
    while let Some(text) = texts.get(n) {
        n += match *text {
            "--" => return n + 1,
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
        ] {
            assert_eq!(fault(&argv), None, "{argv}");
        }
    }
}
