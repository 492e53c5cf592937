//! The program a job's configuration describes.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::config::{ConfigFault, Fields};

/// What to run, and where.
#[derive(Debug)]
pub(super) struct ShellConfig {
    pub(super) argv: Vec<String>,
    pub(super) cwd: Option<PathBuf>,
    pub(super) env: Vec<(String, String)>,
}

/// What the body relies on to tell attempts apart.
const RESERVED: [&str; 5] = [
    "EVENKEEL_RUN_ID",
    "EVENKEEL_EXECUTION_ID",
    "EVENKEEL_ATTEMPT",
    "EVENKEEL_FENCE",
    "EVENKEEL_SCHEDULED_AT",
];

impl ShellConfig {
    pub(super) fn parse(config: &Value) -> Result<Self, ConfigFault> {
        let fields = Fields::read(config, &["argv", "cwd", "env"])?;
        Ok(Self { argv: parse_argv(&fields)?, cwd: parse_cwd(&fields)?, env: parse_env(&fields)? })
    }
}

fn parse_argv(fields: &Fields<'_>) -> Result<Vec<String>, ConfigFault> {
    let fault = || ConfigFault::new("argv", "must be a list of strings, the program first");
    let value = fields.get("argv").ok_or_else(|| ConfigFault::new("argv", "is required"))?;
    let argv: Vec<String> = value
        .as_array()
        .ok_or_else(fault)?
        .iter()
        .map(|arg| arg.as_str().map(String::from).ok_or_else(fault))
        .collect::<Result<_, _>>()?;
    if argv.first().is_none_or(String::is_empty) {
        return Err(fault());
    }
    match argv.iter().position(|arg| arg.contains('\0')) {
        Some(n) => Err(ConfigFault::new(&format!("argv[{n}]"), "must not hold a NUL")),
        None => Ok(argv),
    }
}

fn parse_cwd(fields: &Fields<'_>) -> Result<Option<PathBuf>, ConfigFault> {
    let Some(cwd) = fields.text("cwd")? else { return Ok(None) };
    if !Path::new(cwd).is_absolute() || cwd.contains('\0') {
        return Err(ConfigFault::new("cwd", "must be an absolute path"));
    }
    Ok(Some(cwd.into()))
}

fn parse_env(fields: &Fields<'_>) -> Result<Vec<(String, String)>, ConfigFault> {
    let env = fields.texts("env")?;
    for (name, value) in &env {
        let fault = |message| Err(ConfigFault::new(&format!("env.{name}"), message));
        if name.is_empty() || name.contains(['=', '\0']) {
            return fault("is not the name of a variable");
        }
        if RESERVED.contains(name) {
            return fault("is set by Evenkeel");
        }
        if value.contains('\0') {
            return fault("must not hold a NUL");
        }
    }
    Ok(env.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
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
            (json!({"argv": ["a"], "command": "b"}), "executor_config.command"),
            (json!({"argv": ["a"], "cwd": "tmp"}), "executor_config.cwd"),
            (json!({"argv": ["a"], "env": ["X=1"]}), "executor_config.env"),
            (json!({"argv": ["a"], "env": {"X": 1}}), "executor_config.env.X"),
            (json!({"argv": ["a"], "env": {"X=Y": "1"}}), "executor_config.env.X=Y"),
            (
                json!({"argv": ["a"], "env": {"EVENKEEL_FENCE": "1"}}),
                "executor_config.env.EVENKEEL_FENCE",
            ),
        ] {
            assert_eq!(ShellConfig::parse(&config).unwrap_err().field, field, "{config}");
        }
    }

    #[test]
    fn a_good_configuration_is_read() {
        let config = json!({"argv": ["a", ""], "cwd": "/tmp", "env": {"EVENKEEL_URL": "u"}});
        let config = ShellConfig::parse(&config).unwrap();
        assert_eq!(config.argv, ["a", ""]);
        assert_eq!(config.cwd.as_deref(), Some(Path::new("/tmp")));
        assert_eq!(config.env, [("EVENKEEL_URL".into(), "u".into())]);
    }
}
