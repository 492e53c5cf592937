//! The command line and the environment variables of a program.
//!
//! Only variables of the run, such as `{{scheduled_at}}`, are filled into a command line. The
//! payload is never filled into a command line, because an interpreter could execute it, and no
//! list of interpreters is complete. The program gets the payload on standard input, and in
//! environment variables with a fixed prefix.

use evenkeel_core::executor::{ConfigFault, Fields};
use serde_json::Value;

use crate::template::Template;

/// Prefix of the environment variables that hold fields of the payload.
pub(super) const PAYLOAD_PREFIX: &str = "EVENKEEL_PAYLOAD_";

/// Environment variables that tell the program about its attempt; jobs cannot set these variables.
const RESERVED: [&str; 6] = [
    "EVENKEEL_RUN_ID", "EVENKEEL_EXECUTION_ID", "EVENKEEL_ATTEMPT", "EVENKEEL_FENCE",
    "EVENKEEL_SCHEDULED_AT", "EVENKEEL_CHECKPOINT",
];

/// Maximum number of bytes of a payload value that is passed as an environment variable. Longer
/// values are left out, because the kernel limits the size of a process's environment.
const VALUE_BYTES_MAX: usize = 8 * 1024;

/// Maximum number of bytes of all environment variables from the payload.
const VALUES_BYTES_MAX: usize = 128 * 1024;

/// Reads `argv`: the program, which may not contain template variables, and its arguments.
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
        argv.push(Template::of_run(text).map_err(fault)?);
    }
    if !argv[0].is_plain() {
        let message = "is the program, which a job has to name: nothing can be filled in here";
        return Err(ConfigFault::new("argv[0]", message));
    }
    Ok(argv)
}

pub(super) fn parse_env(fields: &Fields<'_>) -> Result<Vec<(String, Template)>, ConfigFault> {
    let mut env = Vec::new();
    for (name, value) in fields.texts("env")? {
        let fault = |message: String| ConfigFault::new(&format!("env.{name}"), message);
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(fault("is not the name of a variable".into()));
        }
        if RESERVED.contains(&name) || name.starts_with(PAYLOAD_PREFIX) {
            return Err(fault("is set by Evenkeel".into()));
        }
        if value.contains('\0') {
            return Err(fault("must not hold a NUL".into()));
        }
        env.push((name.into(), Template::of_run(value).map_err(fault)?));
    }
    Ok(env)
}

/// Returns the strings, numbers and booleans of the payload as environment variables. Fields whose
/// name is not valid or whose value is too long are left out.
pub(super) fn payload_variables(payload: &Value) -> impl Iterator<Item = (String, String)> {
    let fields = payload.as_object().into_iter().flatten();
    let mut available = VALUES_BYTES_MAX;
    fields.filter_map(move |(name, value)| {
        let is_name = (1..=64).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        let fits = value.len() <= VALUE_BYTES_MAX.min(available) && !value.contains('\0');
        if !is_name || !fits {
            return None;
        }
        available -= value.len();
        Some((format!("{PAYLOAD_PREFIX}{name}"), value))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Every command line in this test would execute the payload, or let the payload choose the
    /// program.
    #[test]
    fn payload_is_refused_in_arguments_and_variables() {
        for (config, field) in [
            (json!({"argv": ["sh", "-c", "echo {{payload.x}}"]}), "argv[2]"),
            (json!({"argv": ["xargs", "-I{}", "sh", "-c", "{{payload.x}}"]}), "argv[4]"),
            (json!({"argv": ["awk", "{{payload.x}}"]}), "argv[1]"),
            (json!({"argv": ["perl", "-e", "{{ payload.x }}"]}), "argv[2]"),
            (json!({"argv": ["echo", "{{payload}}"]}), "argv[1]"),
            (json!({"argv": ["a"], "env": {"BASH_ENV": "{{payload.x}}"}}), "env.BASH_ENV"),
            (
                json!({"argv": ["a"], "env": {"BASH_FUNC_ls%%": "() { {{payload.x}}; }"}}),
                "env.BASH_FUNC_ls%%",
            ),
        ] {
            let fields = Fields::read(&config, crate::shell::DECLARATION.fields).unwrap();
            let fault = parse(&fields).map(drop).and(parse_env(&fields).map(drop)).unwrap_err();
            assert_eq!(fault.field, format!("executor_config.{field}"), "{config}");
            assert!(fault.message.contains("standard input"), "{fault}");
        }
    }

    #[test]
    fn payload_fields_become_variables_with_a_fixed_prefix() {
        let payload = json!({
            "customer": "c 17", "n": 5, "full": true, "BASH_ENV": "/tmp/x", "none": null,
            "list": [1], "in": {"a": 1}, "not a name": 1, "x=y": 1, "": 1, "nul": "a\0b",
            "long": "x".repeat(VALUE_BYTES_MAX + 1),
        });
        let mut variables: Vec<_> =
            payload_variables(&payload).map(|(name, value)| format!("{name}={value}")).collect();
        variables.sort();
        assert_eq!(
            variables,
            [
                "EVENKEEL_PAYLOAD_BASH_ENV=/tmp/x", "EVENKEEL_PAYLOAD_customer=c 17",
                "EVENKEEL_PAYLOAD_full=true", "EVENKEEL_PAYLOAD_n=5",
            ]
        );
        let many: serde_json::Map<String, Value> =
            (0..100).map(|n| (format!("v{n}"), "x".repeat(VALUE_BYTES_MAX).into())).collect();
        let most = VALUES_BYTES_MAX / VALUE_BYTES_MAX;
        assert_eq!(payload_variables(&many.into()).count(), most);
        assert_eq!(payload_variables(&json!("text")).count(), 0);
    }
}
