//! Settings for the encryption keys of secrets: part of the table `[access]` of the config file.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

use super::Result;
use super::resolve::invalid;

/// A secret text that log lines and error messages never show.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(transparent)]
pub struct Hidden(String);

impl Hidden {
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Hidden {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden")
    }
}

/// Where the server reads the encryption keys of secrets from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SecretKeys {
    /// A file with one encryption key per line, the newest first.
    File(PathBuf),
    /// The keys, separated by commas.
    Given(Hidden),
    /// A program that prints one encryption key per line.
    Command(Vec<String>),
    /// No source is configured.
    Unset,
}

pub(super) fn resolve(
    file: Option<PathBuf>,
    given: Option<Hidden>,
    command: Option<Vec<String>>,
) -> Result<SecretKeys> {
    const WAY_OUT: &str =
        "give one of secret_key_file, secret_key_command and the variable EVENKEEL_SECRET_KEY";
    match (file, given, command) {
        (None, None, None) => Ok(SecretKeys::Unset),
        (Some(file), None, None) => Ok(SecretKeys::File(file)),
        (None, Some(given), None) => Ok(SecretKeys::Given(given)),
        (None, None, Some(command)) if command.first().is_some_and(|it| !it.is_empty()) => {
            Ok(SecretKeys::Command(command))
        }
        (None, None, Some(_)) => {
            let way_out = "write it like [\"/usr/bin/pass\", \"evenkeel\"]";
            Err(invalid("[access] secret_key_command", "names no program", way_out))
        }
        _ => {
            let message = "more than one source of keys for secrets is given";
            Err(invalid("[access] secret_key_file", message, WAY_OUT))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_one_source() {
        let key = || Some(Hidden::from("s3cret".to_owned()));
        assert_eq!(resolve(None, None, None).unwrap(), SecretKeys::Unset);
        assert!(resolve(Some("f".into()), None, None).is_ok());
        assert!(resolve(None, None, Some(vec!["pass".into()])).is_ok());
        assert!(resolve(None, None, Some(Vec::new())).is_err());
        let refused = resolve(Some("f".into()), key(), None).unwrap_err();
        assert!(!format!("{refused:?} {refused}").contains("s3cret"));
        assert!(!format!("{:?}", resolve(None, key(), None)).contains("s3cret"));
    }
}
