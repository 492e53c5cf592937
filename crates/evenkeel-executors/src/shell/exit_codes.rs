//! The meaning of exit codes.

use std::collections::BTreeMap;

use evenkeel_core::after_attempt::RetryHint;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::executor::{ConfigFault, Fields};
use serde_json::Value;

/// What an exit code means for the attempt.
type Meaning = (Outcome, RetryHint);

/// The lists of exit codes that a job can set, each with its default exit code. Exit code 101 is in
/// no default list, because Rust programs that panic exit with 101.
const LISTS: [(&str, u8, Meaning); 3] = [
    ("ok", 0, (Outcome::Completed, RetryHint::ByPolicy)),
    ("partly_failed", 100, (Outcome::PartlyFailed, RetryHint::ByPolicy)),
    ("give_up", 102, (Outcome::Failed, RetryHint::Never)),
];

/// The exit codes that have a special meaning. All other exit codes, such as 75 (`EX_TEMPFAIL`),
/// are failures that may be retried. An attempt whose program cannot be started (exit code 126 or
/// 127) may be retried, because another node may have the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ExitCodes(BTreeMap<u8, Meaning>);

impl ExitCodes {
    pub(super) fn parse(config: &Fields<'_>) -> Result<Self, ConfigFault> {
        let none = serde_json::Map::new();
        let given = match config.get("exit_codes") {
            None => &none,
            Some(Value::Object(given)) => given,
            Some(_) => return Err(ConfigFault::new("exit_codes", "must be an object of lists")),
        };
        if let Some(name) = given.keys().find(|name| LISTS.iter().all(|(list, ..)| list != name)) {
            let message = "is not one of ok, partly_failed, give_up";
            return Err(ConfigFault::new(&format!("exit_codes.{name}"), message));
        }
        // A list of exit codes that the job sets replaces the default list of the same name. An
        // exit code in any list of the job loses its default meaning.
        let list = |name: &str| given.get(name).filter(|list| !list.is_null());
        let by_default = LISTS.iter().filter(|(name, ..)| list(name).is_none());
        let mut codes: BTreeMap<u8, Meaning> =
            by_default.map(|(_, code, meaning)| (*code, *meaning)).collect();
        let mut seen: BTreeMap<u8, &str> = BTreeMap::new();
        for (name, _, meaning) in LISTS {
            let Some(list) = list(name) else { continue };
            for code in parse_list(name, list)? {
                if let Some(other) = seen.insert(code, name).filter(|other| *other != name) {
                    let message = format!("has {code}, which {other} has too");
                    return Err(ConfigFault::new(&format!("exit_codes.{name}"), message));
                }
                codes.insert(code, meaning);
            }
        }
        Ok(Self(codes))
    }

    pub(super) fn meaning(&self, code: i32) -> (Outcome, RetryHint) {
        let special = u8::try_from(code).ok().and_then(|code| self.0.get(&code));
        *special.unwrap_or(&(Outcome::Failed, RetryHint::ByPolicy))
    }
}

fn parse_list(name: &str, value: &Value) -> Result<Vec<u8>, ConfigFault> {
    let code = |value: &Value| value.as_u64().and_then(|code| u8::try_from(code).ok());
    let list = value.as_array().map(|list| list.iter().map(code).collect::<Option<Vec<u8>>>());
    list.flatten().ok_or_else(|| {
        let message = "must be a list of exit codes from 0 to 255";
        ConfigFault::new(&format!("exit_codes.{name}"), message)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(codes: &Value) -> Result<ExitCodes, ConfigFault> {
        let config = json!({"exit_codes": codes});
        ExitCodes::parse(&Fields::read(&config, crate::shell::DECLARATION.fields).unwrap())
    }

    #[test]
    fn exit_codes_mean_what_the_job_says() {
        let usual = parse(&Value::Null).unwrap();
        assert_eq!(usual.meaning(0).0, Outcome::Completed);
        assert_eq!(usual.meaning(100).0, Outcome::PartlyFailed);
        assert_eq!(usual.meaning(102), (Outcome::Failed, RetryHint::Never));
        for code in [1, 75, 101, 126, 127, 255, 256, -1] {
            assert_eq!(usual.meaning(code), (Outcome::Failed, RetryHint::ByPolicy), "{code}");
        }
        let own = parse(&json!({"ok": [0, 100], "give_up": [1, 78]})).unwrap();
        assert_eq!(own.meaning(100).0, Outcome::Completed);
        assert_eq!(own.meaning(78), (Outcome::Failed, RetryHint::Never));
        assert_eq!(own.meaning(102), (Outcome::Failed, RetryHint::ByPolicy));
        assert_eq!(parse(&json!({"ok": null, "give_up": null})).unwrap(), usual);
        assert_eq!(
            parse(&json!({"partly_failed": [0]})).unwrap().meaning(0).0,
            Outcome::PartlyFailed
        );
    }

    #[test]
    fn bad_exit_codes_are_refused_with_their_field() {
        for (codes, field) in [
            (json!([0]), "exit_codes"),
            (json!({"okay": [0]}), "exit_codes.okay"),
            (json!({"ok": 0}), "exit_codes.ok"),
            (json!({"ok": [256]}), "exit_codes.ok"),
            (json!({"give_up": [-1]}), "exit_codes.give_up"),
            (json!({"give_up": [3], "partly_failed": [3]}), "exit_codes.give_up"),
        ] {
            let fault = parse(&codes).unwrap_err();
            assert_eq!(fault.field, format!("executor_config.{field}"), "{codes}");
        }
    }
}
