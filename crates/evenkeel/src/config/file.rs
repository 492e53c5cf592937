//! The config file.

use std::path::Path;

use clap::{Args as _, Command};
use serde::Deserialize;

use super::raw::{RawClient, RawEngine, RawGlobal, RawServer, RawStore};
use super::{
    ConfigError, RawAccess, RawBalance, RawExecutors, RawLimits, RawQueue, RawShell, RawTargets,
};

/// The contents of the config file, by table.
#[derive(Clone, Default)]
pub struct ConfigFile {
    pub global: RawGlobal,
    pub client: RawClient,
    pub store: RawStore,
    pub server: RawServer,
    pub engine: RawEngine,
    pub executors: RawExecutors,
    /// The keys of `[executors]` that configure shell jobs.
    pub shell: RawShell,
    pub access: RawAccess,
    pub balance: RawBalance,
    pub queue: RawQueue,
    pub targets: RawTargets,
    pub limits: RawLimits,
}

/// Reads the config file, if one is given.
pub fn read_file(path: Option<&Path>) -> Result<ConfigFile, ConfigError> {
    let Some(path) = path else { return Ok(ConfigFile::default()) };
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Unreadable { path: path.into(), source })?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<ConfigFile, ConfigError> {
    let malformed = |error: toml::de::Error| ConfigError::Malformed {
        path: path.into(),
        message: describe(&error, text),
    };
    let table: toml::Table = toml::from_str(text).map_err(malformed)?;
    let unknown = |key: String, known: &[String]| ConfigError::UnknownKey {
        path: path.into(),
        hint: hint(&key, known),
        key,
    };
    let (top, tables) = known_keys();
    for (key, value) in &table {
        let inner_keys = tables.iter().find(|(name, _)| name == key).map(|(_, keys)| keys);
        match (value, inner_keys) {
            (toml::Value::Table(inner), Some(known)) => {
                if let Some(key) = inner.keys().find(|key| !known.contains(key)) {
                    return Err(unknown(key.clone(), known));
                }
            }
            // A value that should be a table is refused later, with an error that contains the line
            // number.
            (_, Some(_)) => {}
            (_, None) if top.contains(key) => {}
            (_, None) => match tables.iter().find(|(_, keys)| keys.contains(key)) {
                Some((table, _)) => {
                    return Err(ConfigError::UnknownKey {
                        path: path.into(),
                        hint: format!("{key} belongs into the table [{table}]"),
                        key: key.clone(),
                    });
                }
                None => return Err(unknown(key.clone(), &top)),
            },
        }
    }
    // The text is parsed once per struct, and each struct ignores unknown keys. Parsing one
    // flattened struct would lose the line number of an error.
    Ok(ConfigFile {
        global: toml::from_str(text).map_err(malformed)?,
        client: toml::from_str(text).map_err(malformed)?,
        store: toml::from_str(text).map_err(malformed)?,
        server: toml::from_str(text).map_err(malformed)?,
        engine: toml::from_str::<EngineOnly>(text).map_err(malformed)?.engine,
        executors: toml::from_str::<ExecutorsOnly>(text).map_err(malformed)?.executors,
        shell: toml::from_str::<ShellOnly>(text).map_err(malformed)?.executors,
        access: toml::from_str::<AccessOnly>(text).map_err(malformed)?.access,
        balance: toml::from_str::<BalanceOnly>(text).map_err(malformed)?.balance,
        queue: toml::from_str::<QueueOnly>(text).map_err(malformed)?.queue,
        targets: toml::from_str::<TargetsOnly>(text).map_err(malformed)?.targets,
        limits: toml::from_str::<LimitsOnly>(text).map_err(malformed)?.limits,
    })
}

#[derive(Deserialize)]
struct EngineOnly {
    #[serde(default)]
    engine: RawEngine,
}

#[derive(Deserialize)]
struct ExecutorsOnly {
    #[serde(default)]
    executors: RawExecutors,
}

#[derive(Deserialize)]
struct ShellOnly {
    #[serde(default)]
    executors: RawShell,
}

#[derive(Deserialize)]
struct AccessOnly {
    #[serde(default)]
    access: RawAccess,
}

#[derive(Deserialize)]
struct BalanceOnly {
    #[serde(default)]
    balance: RawBalance,
}

#[derive(Deserialize)]
struct QueueOnly {
    #[serde(default)]
    queue: RawQueue,
}

#[derive(Deserialize)]
struct TargetsOnly {
    #[serde(default)]
    targets: RawTargets,
}

#[derive(Deserialize)]
struct LimitsOnly {
    #[serde(default)]
    limits: RawLimits,
}

/// Formats the error on one line, without the excerpt of the file, which may contain a password.
fn describe(error: &toml::de::Error, text: &str) -> String {
    let message = error.message().replace('\n', ", ");
    match error.span() {
        Some(span) => {
            let before = text.get(..span.start).unwrap_or_default();
            format!("line {}: {message}", before.matches('\n').count() + 1)
        }
        None => message,
    }
}

/// Returns the top-level keys of the config file and the keys of each table. The keys are the names
/// of the flags.
fn known_keys() -> (Vec<String>, [(&'static str, Vec<String>); 7]) {
    let keys = |command: Command| -> Vec<String> {
        let arguments = command.get_arguments().map(|argument| argument.get_id().to_string());
        arguments.filter(|key| key != "config").collect()
    };
    let top = RawGlobal::augment_args(Command::new(""));
    let top = RawServer::augment_args(RawStore::augment_args(RawClient::augment_args(top)));
    let mut top = keys(top);
    top.sort();
    let engine = keys(RawEngine::augment_args(Command::new("")));
    let executors = RawShell::augment_args(RawExecutors::augment_args(Command::new("")));
    let executors = keys(executors);
    let access = keys(RawAccess::augment_args(Command::new("")));
    let balance = keys(RawBalance::augment_args(Command::new("")));
    let queue = keys(RawQueue::augment_args(Command::new("")));
    let targets = keys(RawTargets::augment_args(Command::new("")));
    let limits = keys(RawLimits::augment_args(Command::new("")));
    let tables = [
        ("engine", engine),
        ("executors", executors),
        ("access", access),
        ("balance", balance),
        ("queue", queue),
        ("targets", targets),
        ("limits", limits),
    ];
    (top, tables)
}

/// Suggests the most similar key.
fn hint(key: &str, known: &[String]) -> String {
    let near = known
        .iter()
        .map(|known| (distance(key, known), known))
        .min()
        .filter(|(steps, known)| *steps <= 2.max(known.len() / 4));
    match near {
        Some((_, known)) => format!("did you mean {known}?"),
        None => format!("the keys are {}", known.join(", ")),
    }
}

/// Returns the edit distance of two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, c) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let exchanged = diagonal + usize::from(c != *other);
            diagonal = row[j + 1];
            row[j + 1] = exchanged.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use evenkeel_core::Span;

    use super::*;
    use crate::Failure;

    fn read(text: &str) -> Result<ConfigFile, Failure> {
        parse(Path::new("evenkeel.toml"), text).map_err(Failure::from)
    }

    #[test]
    fn every_type_of_value_is_read() {
        let file = read(
            "listen = '127.0.0.1:0'\nroles = ['api', 'worker']\ndrain_grace = '5s'\n\
             enable_shell = true\nallow_network = ['127.0.0.0/8']\nstore = 'sqlite:x.db'\n\
             url = 'http://a'\n[engine]\nlease_seconds = 30\n\
             [executors]\nshell_env = ['TZ', 'LANG']\n\
             [balance]\nslot = '5m'\nalert_below = 0.5",
        )
        .unwrap();
        assert_eq!(file.server.listen.as_deref(), Some("127.0.0.1:0"));
        assert_eq!(file.server.roles.unwrap(), ["api", "worker"]);
        assert_eq!(file.server.drain_grace, Some(Span::from_secs(5)));
        assert_eq!(file.server.enable_shell, Some(true.into()));
        assert_eq!(file.server.allow_network.unwrap().len(), 1);
        assert_eq!(file.store.store.as_deref(), Some("sqlite:x.db"));
        assert_eq!(file.client.url.as_deref(), Some("http://a"));
        assert_eq!(file.engine.lease_seconds, Some(30));
        assert_eq!(file.shell.shell_env.unwrap(), ["TZ", "LANG"]);
        assert_eq!(file.balance.slot, Some(Span::from_secs(300)));
        assert_eq!(file.balance.alert_below, Some(0.5));
    }

    #[test]
    fn misspelt_key_is_refused_with_a_suggestion() {
        for (text, hint) in [
            ("lisen = 'x'", "did you mean listen?"),
            ("[engine]\nlease_second = 3", "did you mean lease_seconds?"),
            ("lease_seconds = 3", "lease_seconds belongs into the table [engine]"),
            ("alert_below = 0.5", "alert_below belongs into the table [balance]"),
            ("shell_env = ['A']", "shell_env belongs into the table [executors]"),
            ("config = 'x'", "the keys are allow_network, data_dir"),
        ] {
            let way_out = read(text).err().unwrap().way_out.unwrap();
            assert!(way_out.starts_with(hint), "{text}: {way_out}");
        }
    }

    #[test]
    fn wrong_value_is_refused_with_its_line() {
        for (text, message) in [
            ("workers = 3\ndrain_grace = 'soon'", "line 2: not a length of time"),
            ("\n\nworkers = 'many'", "line 3: invalid type"),
            ("store = 'mysql://ann:s3cret@db\n", "line 1:"),
            ("[engine]\nping_seconds = -1", "line 2:"),
            ("listen", "line 1:"),
        ] {
            let what = read(text).err().unwrap().what;
            assert!(what.contains(message), "{text}: {what}");
            assert!(!what.contains("s3cret"), "{what}");
        }
    }
}
