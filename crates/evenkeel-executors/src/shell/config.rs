//! The program a job's configuration describes.

use std::path::{Path, PathBuf};

use evenkeel_core::{JobNo, RunKey, Timestamp, lease::Fence};
use serde_json::Value;

use super::argv;
use super::exit_codes::ExitCodes;
use crate::config::{ConfigFault, Fields};
use crate::supervisor::Limits;
use crate::template::{Escape, Room, Template, Values};

/// What to run, where, as whom and within which bounds.
#[derive(Debug)]
pub(super) struct ShellConfig {
    pub(super) argv: Vec<Template>,
    pub(super) cwd: Option<PathBuf>,
    pub(super) env: Vec<(String, Template)>,
    pub(super) user: Option<String>,
    pub(super) limits: Limits,
    pub(super) gets_payload: bool,
    pub(super) exit_codes: ExitCodes,
}

const FIELDS: [&str; 7] = ["argv", "cwd", "env", "user", "limits", "stdin", "exit_codes"];

/// What the body relies on to tell attempts apart.
const RESERVED: [&str; 6] = [
    "EVENKEEL_RUN_ID",
    "EVENKEEL_EXECUTION_ID",
    "EVENKEEL_ATTEMPT",
    "EVENKEEL_FENCE",
    "EVENKEEL_SCHEDULED_AT",
    "EVENKEEL_CHECKPOINT",
];

/// Arguments and variables together: about as much as systems give to a program.
const FILLED_BYTES_MAX: usize = 1024 * 1024;

/// Each of them: Linux gives a program 128 KiB in one, its name and some of ours included.
const TEXT_BYTES_MAX: usize = 127 * 1024;

/// Below this, a program's own code hardly fits.
const MEMORY_MB_MIN: u64 = 16;

/// Its three standard streams, and a few to work with.
const OPEN_FILES_MIN: u64 = 8;

impl ShellConfig {
    pub(super) fn parse(config: &Value) -> Result<Self, ConfigFault> {
        let fields = Fields::read(config, &FIELDS)?;
        let argv = argv::parse(&fields)?;
        if parse_stdin(&fields)? && argv::runs_its_input(&argv) {
            return Err(ConfigFault::new(
                "argv",
                "is a shell that would run the payload, which is its standard input; name a \
                 script, or set stdin to \"none\"",
            ));
        }
        Ok(Self {
            argv,
            cwd: parse_cwd(&fields)?,
            env: parse_env(&fields)?,
            user: parse_user(&fields)?,
            limits: parse_limits(&fields)?,
            gets_payload: parse_stdin(&fields)?,
            exit_codes: ExitCodes::parse(&fields)?,
        })
    }

    /// Refuses a program that can't be started with this payload.
    pub(super) fn check(&self, payload: &Value) -> Result<(), ConfigFault> {
        // What a run brings is always legal, so any run will do to see the rest.
        let key = RunKey::regular(JobNo(0), Timestamp::MIN);
        self.fill(&Values { key, fence: Fence(0), payload }).map(drop)
    }

    /// The arguments and the variables with everything filled in.
    pub(super) fn fill(&self, values: &Values<'_>) -> Result<Filled, ConfigFault> {
        let mut texts = Vec::with_capacity(self.argv.len() + self.env.len());
        let mut room = Room::new(FILLED_BYTES_MAX);
        for (field, template) in self.templates() {
            let text = template
                .fill_within(values, Escape::None, &mut room)
                .map_err(|message| ConfigFault::new(&field, message))?;
            if text.contains('\0') {
                return Err(ConfigFault::new(
                    &field,
                    "is filled with a NUL, which no program can get",
                ));
            }
            if text.len() > TEXT_BYTES_MAX {
                let message = format!(
                    "is longer than {TEXT_BYTES_MAX} bytes once filled in; the program can read \
                     the payload from its standard input"
                );
                return Err(ConfigFault::new(&field, message));
            }
            texts.push(text);
        }
        let env = texts.split_off(self.argv.len());
        let names = self.env.iter().map(|(name, _)| name.clone());
        Ok(Filled { argv: texts, env: names.zip(env).collect() })
    }

    fn templates(&self) -> impl Iterator<Item = (String, &Template)> {
        let argv = self.argv.iter().enumerate().map(|(n, arg)| (format!("argv[{n}]"), arg));
        argv.chain(self.env.iter().map(|(name, value)| (format!("env.{name}"), value)))
    }
}

/// Arguments and variables as the body gets them.
pub(super) struct Filled {
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<(String, String)>,
}

fn parse_cwd(fields: &Fields<'_>) -> Result<Option<PathBuf>, ConfigFault> {
    let Some(cwd) = fields.text("cwd")? else { return Ok(None) };
    if !Path::new(cwd).is_absolute() || cwd.contains('\0') {
        return Err(ConfigFault::new("cwd", "must be an absolute path"));
    }
    Ok(Some(cwd.into()))
}

fn parse_env(fields: &Fields<'_>) -> Result<Vec<(String, Template)>, ConfigFault> {
    let mut env = Vec::new();
    for (name, value) in fields.texts("env")? {
        let fault = |message: String| ConfigFault::new(&format!("env.{name}"), message);
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(fault("is not the name of a variable".into()));
        }
        if RESERVED.contains(&name) {
            return Err(fault("is set by Evenkeel".into()));
        }
        if value.contains('\0') {
            return Err(fault("must not hold a NUL".into()));
        }
        env.push((name.into(), Template::parse(value).map_err(fault)?));
    }
    Ok(env)
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

fn parse_stdin(fields: &Fields<'_>) -> Result<bool, ConfigFault> {
    match fields.text("stdin")? {
        None | Some("payload") => Ok(true),
        Some("none") => Ok(false),
        Some(other) => {
            let message = format!("is {other:?}; it must be \"payload\" or \"none\"");
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
        // What a 32-bit number does not hold is no limit.
        let number = value.as_u64().filter(|n| (least..=u32::MAX.into()).contains(n));
        *limit = Some(number.ok_or_else(|| {
            let message = format!("is {value}; it must be a whole number, at least {least}");
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
    fn a_bad_configuration_names_the_field_to_blame() {
        for (config, field) in [
            (json!(null), "executor_config.argv"),
            (json!("true"), "executor_config"),
            (json!({"argv": []}), "executor_config.argv"),
            (json!({"argv": [""]}), "executor_config.argv"),
            (json!({"argv": "rm -rf /"}), "executor_config.argv"),
            (json!({"argv": ["a", 1]}), "executor_config.argv"),
            (json!({"argv": ["a", "b\0"]}), "executor_config.argv[1]"),
            (json!({"argv": ["a", "{{payload.x"]}), "executor_config.argv[1]"),
            (json!({"argv": ["a"], "command": "b"}), "executor_config.command"),
            (json!({"argv": ["a"], "cwd": "tmp"}), "executor_config.cwd"),
            (json!({"argv": ["a"], "env": ["X=1"]}), "executor_config.env"),
            (json!({"argv": ["a"], "env": {"X": 1}}), "executor_config.env.X"),
            (json!({"argv": ["a"], "env": {"X": "{{y}}"}}), "executor_config.env.X"),
            (json!({"argv": ["a"], "env": {"X=Y": "1"}}), "executor_config.env.X=Y"),
            (
                json!({"argv": ["a"], "env": {"EVENKEEL_FENCE": "1"}}),
                "executor_config.env.EVENKEEL_FENCE",
            ),
            (json!({"argv": ["sh", "-s"]}), "executor_config.argv"),
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
    fn a_good_configuration_is_read() {
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
        assert!(!config.gets_payload);
    }

    #[test]
    fn what_the_payload_lacks_is_refused() {
        let config = json!({"argv": ["a", "{{payload.x}}"], "env": {"Y": "{{payload.y}}"}});
        let config = ShellConfig::parse(&config).unwrap();
        let field = |payload: Value| config.check(&payload).err().map(|fault| fault.field);
        assert_eq!(field(json!({"x": 1})).as_deref(), Some("executor_config.env.Y"));
        assert_eq!(field(json!({"y": 1})).as_deref(), Some("executor_config.argv[1]"));
        assert_eq!(field(json!({"x": 1, "y": 1})), None);
    }

    #[test]
    fn what_no_program_can_get_is_refused() {
        let mut argv = vec!["{{payload}}"; 16];
        argv[0] = "a";
        let config = json!({"argv": argv, "env": {"Y": "{{payload}}"}});
        let config = ShellConfig::parse(&config).unwrap();
        let fault = |payload: Value| config.check(&payload).unwrap_err();
        assert_eq!(fault(json!("a\0b")).field, "executor_config.argv[1]");
        assert_eq!(fault(json!("x".repeat(TEXT_BYTES_MAX + 1))).field, "executor_config.argv[1]");
        let part = FILLED_BYTES_MAX / 16 - 1;
        assert_eq!(config.check(&json!("x".repeat(part))), Ok(()));
        // Each text would do by itself.
        let fault = fault(json!("x".repeat(part + 1)));
        assert_eq!(fault.field, "executor_config.env.Y");
        assert!(fault.message.contains("with what comes before it"), "{fault}");
    }

    #[test]
    fn a_shell_without_a_script_may_have_an_empty_input() {
        assert!(ShellConfig::parse(&json!({"argv": ["sh"], "stdin": "none"})).is_ok());
    }
}
