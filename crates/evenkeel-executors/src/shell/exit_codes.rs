//! What a body says by its exit code.

use evenkeel_core::chain::Again;
use evenkeel_core::run::Outcome;
use serde_json::Value;

use crate::config::{ConfigFault, Fields};

/// Which exit codes mean what. All others, 75 (`EX_TEMPFAIL`) among them, are failures that are
/// tried again as the job says. So are 126 and 127, a program that can't be started: it may be on
/// another node, or be there again in a minute, when an update is through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ExitCodes {
    ok: Vec<u8>,
    partly_failed: Vec<u8>,
    give_up: Vec<u8>,
}

impl Default for ExitCodes {
    fn default() -> Self {
        // Not 101, by which programs in Rust panic.
        Self { ok: vec![0], partly_failed: vec![100], give_up: vec![102] }
    }
}

impl ExitCodes {
    pub(super) fn parse(config: &Fields<'_>) -> Result<Self, ConfigFault> {
        let Some(value) = config.get("exit_codes") else { return Ok(Self::default()) };
        let fields = value
            .as_object()
            .ok_or_else(|| ConfigFault::new("exit_codes", "must be an object of lists"))?;
        let mut codes = Self::default();
        for (name, value) in fields {
            let list = match name.as_str() {
                "ok" => &mut codes.ok,
                "partly_failed" => &mut codes.partly_failed,
                "give_up" => &mut codes.give_up,
                _ => {
                    let message = "is not one of ok, partly_failed, give_up";
                    return Err(ConfigFault::new(&format!("exit_codes.{name}"), message));
                }
            };
            *list = parse_list(name, value)?;
        }
        codes.refuse_doubles(fields.keys())?;
        Ok(codes)
    }

    /// A code has one meaning. One that is given takes it from the defaults.
    fn refuse_doubles<'a>(
        &mut self,
        given: impl Iterator<Item = &'a String> + Clone,
    ) -> Result<(), ConfigFault> {
        let is_given = |name: &str| given.clone().any(|given| given == name);
        let lists = [
            ("ok", is_given("ok"), self.ok.clone()),
            ("partly_failed", is_given("partly_failed"), self.partly_failed.clone()),
            ("give_up", is_given("give_up"), self.give_up.clone()),
        ];
        for (name, _, codes) in lists.iter().filter(|(_, given, _)| *given) {
            for (other, other_given, others) in lists.iter().filter(|(other, ..)| other != name) {
                let Some(code) = codes.iter().find(|code| others.contains(code)) else { continue };
                if *other_given {
                    let message = format!("has {code}, which {other} has too");
                    return Err(ConfigFault::new(&format!("exit_codes.{name}"), message));
                }
            }
            let mine = |code: &u8| codes.contains(code);
            if *name != "ok" {
                self.ok.retain(|code| !mine(code));
            }
            if *name != "partly_failed" {
                self.partly_failed.retain(|code| !mine(code));
            }
            if *name != "give_up" {
                self.give_up.retain(|code| !mine(code));
            }
        }
        Ok(())
    }

    /// What an exit code means.
    pub(super) fn meaning(&self, code: i32) -> (Outcome, Again) {
        let is_in = |list: &[u8]| u8::try_from(code).is_ok_and(|code| list.contains(&code));
        if is_in(&self.ok) {
            (Outcome::Completed, Again::AsUsual)
        } else if is_in(&self.partly_failed) {
            (Outcome::PartlyFailed, Again::AsUsual)
        } else if is_in(&self.give_up) {
            (Outcome::Failed, Again::Never)
        } else {
            (Outcome::Failed, Again::AsUsual)
        }
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
        ExitCodes::parse(&Fields::read(&config, &["exit_codes"]).unwrap())
    }

    #[test]
    fn codes_mean_what_the_job_says() {
        let usual = parse(&Value::Null).unwrap();
        assert_eq!(usual.meaning(0).0, Outcome::Completed);
        assert_eq!(usual.meaning(100).0, Outcome::PartlyFailed);
        assert_eq!(usual.meaning(102), (Outcome::Failed, Again::Never));
        for code in [1, 75, 101, 126, 127, 255, 256, -1] {
            assert_eq!(usual.meaning(code), (Outcome::Failed, Again::AsUsual), "{code}");
        }
        let own = parse(&json!({"ok": [0, 100], "give_up": [1, 78]})).unwrap();
        assert_eq!(own.meaning(100).0, Outcome::Completed);
        assert_eq!(own.meaning(78), (Outcome::Failed, Again::Never));
        assert_eq!(own.meaning(102), (Outcome::Failed, Again::AsUsual));
        // The code 0 itself can be given another meaning.
        assert_eq!(parse(&json!({"partly_failed": [0]})).unwrap().meaning(0).0, Outcome::PartlyFailed);
    }

    #[test]
    fn bad_codes_are_refused_by_name() {
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
