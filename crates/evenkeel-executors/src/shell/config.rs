//! The configuration of a job that runs a program.

use std::path::{Path, PathBuf};

use evenkeel_core::executor::{ConfigFault, Fields};
use serde_json::Value;

use super::DECLARATION;
use super::argv;
use super::exit_codes::ExitCodes;
use crate::supervisor::{HOME, Limits};
use crate::template::{Escape, Template, Values};

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Stdin {
    /// Standard input is the payload as JSON.
    Payload,
    /// Standard input is the payload as text; the payload must be a string.
    Text,
    None,
}

#[derive(Debug)]
pub(super) struct ShellConfig {
    pub(super) argv: Vec<Template>,
    pub(super) cwd: Option<PathBuf>,
    pub(super) env: Vec<(String, Template)>,
    pub(super) user: Option<String>,
    pub(super) limits: Limits,
    pub(super) stdin: Stdin,
    pub(super) exit_codes: ExitCodes,
}

/// Lowest memory limit in MiB that a job may set; the code of most programs needs more.
const MEMORY_MB_MIN: u64 = 16;

/// Lowest limit of open files that a job may set: the three standard streams, and a few more files.
const OPEN_FILES_MIN: u64 = 8;

impl ShellConfig {
    pub(super) fn parse(config: &Value) -> Result<Self, ConfigFault> {
        let fields = Fields::read(config, DECLARATION.fields)?;
        Ok(Self {
            argv: argv::parse(&fields)?,
            cwd: parse_cwd(&fields)?,
            env: argv::parse_env(&fields)?,
            user: parse_user(&fields)?,
            limits: parse_limits(&fields)?,
            stdin: parse_stdin(&fields)?,
            exit_codes: ExitCodes::parse(&fields)?,
        })
    }

    /// Returns the path or name of the program as the job states it.
    pub(super) fn program(&self) -> &str {
        self.argv.first().and_then(Template::plain).unwrap_or_default()
    }

    /// Refuses a payload that cannot be passed on standard input as the field `stdin` requires.
    pub(super) fn check(&self, payload: &Value) -> Result<(), ConfigFault> {
        match (self.stdin, payload) {
            (Stdin::Text, Value::String(_) | Value::Null) | (Stdin::Payload | Stdin::None, _) => {
                Ok(())
            }
            (Stdin::Text, _) => {
                let message = "is \"text\", so the payload must be a string; \"payload\" passes \
                               any payload as JSON";
                Err(ConfigFault::new("stdin", message))
            }
        }
    }

    pub(super) fn input(&self, payload: &Value) -> Option<String> {
        match (self.stdin, payload) {
            (Stdin::None, _) | (_, Value::Null) => None,
            (Stdin::Text, Value::String(text)) => Some(text.clone()),
            (Stdin::Text | Stdin::Payload, payload) => Some(payload.to_string()),
        }
    }

    /// Fills in the variables in arguments and environment variables. The filled-in texts need no
    /// size limit, because they are at most a few times as long as the configuration.
    pub(super) fn fill(&self, values: &Values<'_>) -> Result<Filled, ConfigFault> {
        let fill = |field: String, template: &Template| {
            template.fill(values, Escape::None).map_err(|message| ConfigFault::new(&field, message))
        };
        let argv = self.argv.iter().enumerate();
        let argv = argv.map(|(n, arg)| fill(format!("argv[{n}]"), arg));
        let env = self
            .env
            .iter()
            .map(|(name, value)| Ok((name.clone(), fill(format!("env.{name}"), value)?)));
        Ok(Filled { argv: argv.collect::<Result<_, _>>()?, env: env.collect::<Result<_, _>>()? })
    }
}

pub(super) struct Filled {
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<(String, String)>,
}

fn parse_cwd(fields: &Fields<'_>) -> Result<Option<PathBuf>, ConfigFault> {
    let Some(cwd) = fields.text("cwd")? else { return Ok(None) };
    if cwd != HOME && !Path::new(cwd).is_absolute() || cwd.contains('\0') {
        let message = "must be an absolute path, or \"~\" for the home of its user";
        return Err(ConfigFault::new("cwd", message));
    }
    Ok(Some(cwd.into()))
}

fn parse_user(fields: &Fields<'_>) -> Result<Option<String>, ConfigFault> {
    match fields.get("user") {
        None => Ok(None),
        Some(Value::String(name)) if !name.is_empty() => Ok(Some(name.clone())),
        Some(Value::Number(number)) if number.as_u64().is_some_and(|uid| uid < u32::MAX.into()) => {
            Ok(Some(number.to_string()))
        }
        Some(_) => Err(ConfigFault::new("user", "must be the name or the number of a user")),
    }
}

fn parse_stdin(fields: &Fields<'_>) -> Result<Stdin, ConfigFault> {
    match fields.text("stdin")? {
        None | Some("payload") => Ok(Stdin::Payload),
        Some("text") => Ok(Stdin::Text),
        Some("none") => Ok(Stdin::None),
        Some(other) => {
            let message = format!("is {other:?}; it must be \"payload\", \"text\" or \"none\"");
            Err(ConfigFault::new("stdin", message))
        }
    }
}

fn parse_limits(fields: &Fields<'_>) -> Result<Limits, ConfigFault> {
    let mut limits = Limits::default();
    let Some(value) = fields.get("limits") else { return Ok(limits) };
    let given = value
        .as_object()
        .ok_or_else(|| ConfigFault::new("limits", "must be an object of numbers"))?;
    for (name, value) in given {
        let (limit, least) = match name.as_str() {
            "cpu_seconds" => (&mut limits.cpu_seconds, 1),
            "memory_mb" => (&mut limits.memory_mb, MEMORY_MB_MIN),
            "open_files" => (&mut limits.open_files, OPEN_FILES_MIN),
            "processes" => (&mut limits.processes, 1),
            "file_size_mb" => (&mut limits.file_size_mb, 1),
            _ => {
                let message = "is not one of cpu_seconds, memory_mb, open_files, processes, \
                               file_size_mb";
                return Err(ConfigFault::new(&format!("limits.{name}"), message));
            }
        };
        if value.is_null() {
            continue;
        }
        // The upper bound `u32::MAX` is Evenkeel's own choice; the kernel accepts higher limits.
        let number = value.as_u64().filter(|n| (least..=u32::MAX.into()).contains(n));
        *limit = Some(number.ok_or_else(|| {
            let message =
                format!("is {value}; it must be a whole number from {least} to {}", u32::MAX);
            ConfigFault::new(&format!("limits.{name}"), message)
        })?);
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bad_configuration_is_refused_with_its_field() {
        for (config, field) in [
            (json!(null), "executor_config.argv"),
            (json!("true"), "executor_config"),
            (json!({"argv": []}), "executor_config.argv"),
            (json!({"argv": [""]}), "executor_config.argv"),
            (json!({"argv": "rm -rf /"}), "executor_config.argv"),
            (json!({"argv": ["a", 1]}), "executor_config.argv"),
            (json!({"argv": ["a", "b\0"]}), "executor_config.argv[1]"),
            (json!({"argv": ["{{run_id}}"]}), "executor_config.argv[0]"),
            (json!({"argv": ["a", "{{payload.x}}"]}), "executor_config.argv[1]"),
            (json!({"argv": ["a"], "command": "b"}), "executor_config.command"),
            (json!({"argv": ["a"], "cwd": "tmp"}), "executor_config.cwd"),
            (json!({"argv": ["a"], "env": ["X=1"]}), "executor_config.env"),
            (json!({"argv": ["a"], "env": {"X": 1}}), "executor_config.env.X"),
            (json!({"argv": ["a"], "env": {"X": "{{payload}}"}}), "executor_config.env.X"),
            (json!({"argv": ["a"], "env": {"X=Y": "1"}}), "executor_config.env.X=Y"),
            (
                json!({"argv": ["a"], "env": {"EVENKEEL_FENCE": "1"}}),
                "executor_config.env.EVENKEEL_FENCE",
            ),
            (
                json!({"argv": ["a"], "env": {"EVENKEEL_PAYLOAD_X": "1"}}),
                "executor_config.env.EVENKEEL_PAYLOAD_X",
            ),
            (json!({"argv": ["a"], "user": ""}), "executor_config.user"),
            (json!({"argv": ["a"], "user": -1}), "executor_config.user"),
            (json!({"argv": ["a"], "user": 4_294_967_295_u64}), "executor_config.user"),
            (json!({"argv": ["a"], "stdin": "file"}), "executor_config.stdin"),
            (json!({"argv": ["a"], "limits": 5}), "executor_config.limits"),
            (json!({"argv": ["a"], "limits": {"ram": 5}}), "executor_config.limits.ram"),
            (
                json!({"argv": ["a"], "limits": {"memory_mb": 1}}),
                "executor_config.limits.memory_mb",
            ),
            (
                json!({"argv": ["a"], "limits": {"cpu_seconds": 0.5}}),
                "executor_config.limits.cpu_seconds",
            ),
            (json!({"argv": ["a"], "exit_codes": {"ok": 1}}), "executor_config.exit_codes.ok"),
        ] {
            assert_eq!(ShellConfig::parse(&config).unwrap_err().field, field, "{config}");
        }
    }

    #[test]
    fn good_configuration_is_read() {
        let config = json!({
            "argv": ["a", ""], "cwd": "/tmp", "env": {"EVENKEEL_URL": "u"}, "user": 1000,
            "limits": {"cpu_seconds": 5, "processes": 20, "memory_mb": null}, "stdin": "none",
        });
        let config = ShellConfig::parse(&config).unwrap();
        assert_eq!(config.argv.len(), 2);
        assert_eq!(config.cwd.as_deref(), Some(Path::new("/tmp")));
        assert_eq!(config.env[0].0, "EVENKEEL_URL");
        assert_eq!(config.user.as_deref(), Some("1000"));
        assert_eq!((config.limits.cpu_seconds, config.limits.processes), (Some(5), Some(20)));
        assert_eq!(config.limits.memory_mb, None);
        assert_eq!(config.stdin, Stdin::None);
    }

    #[test]
    fn stdin_text_needs_a_string_payload() {
        let config = ShellConfig::parse(&json!({"argv": ["cat"], "stdin": "text"})).unwrap();
        assert_eq!(config.check(&json!({"x": 1})).unwrap_err().field, "executor_config.stdin");
        for (payload, input) in [(json!("a\nb"), Some("a\nb")), (json!(null), None)] {
            assert_eq!(config.check(&payload), Ok(()));
            assert_eq!(config.input(&payload).as_deref(), input);
        }
        let config = ShellConfig::parse(&json!({"argv": ["cat"]})).unwrap();
        assert_eq!(config.input(&json!("a")).as_deref(), Some("\"a\""));
    }
}
