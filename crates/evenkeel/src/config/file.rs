//! The config file.

use std::path::Path;

use clap::{Args, Command};
use serde::Deserialize;

use super::raw::{RawClient, RawEngine, RawGlobal, RawServer, RawStore};
use super::{
    ConfigError, RawAccess, RawBalance, RawExecutors, RawLimits, RawQueue, RawShell, RawTargets,
    Result,
};

/// The tables of the config file.
#[derive(Args, Deserialize, Clone, Default)]
#[serde(default)]
pub struct RawTables {
    #[command(flatten)]
    pub engine: RawEngine,
    #[command(flatten)]
    pub executors: RawExecutors,
    // The keys of `[executors]` that configure shell jobs.
    #[command(flatten)]
    #[serde(skip)]
    pub shell: RawShell,
    #[command(flatten)]
    pub access: RawAccess,
    #[command(flatten)]
    pub balance: RawBalance,
    #[command(flatten)]
    pub queue: RawQueue,
    #[command(flatten)]
    pub targets: RawTargets,
    #[command(flatten)]
    pub limits: RawLimits,
}

impl RawTables {
    /// Uses the values of `other` for settings without a value.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            engine: self.engine.or(&other.engine),
            executors: self.executors.or(&other.executors),
            shell: self.shell.or(&other.shell),
            access: self.access.or_with_one_source(&other.access),
            balance: self.balance.or(&other.balance),
            queue: self.queue.or(&other.queue),
            targets: self.targets.or(&other.targets),
            limits: self.limits.or(&other.limits),
        }
    }
}

/// The contents of the config file.
#[derive(Clone, Default)]
pub struct ConfigFile {
    pub global: RawGlobal,
    pub client: RawClient,
    pub store: RawStore,
    pub server: RawServer,
    pub tables: RawTables,
}

pub fn read_file(path: Option<&Path>) -> Result<ConfigFile> {
    let Some(path) = path else { return Ok(ConfigFile::default()) };
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Unreadable { path: path.into(), source })?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<ConfigFile> {
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
            // For `engine = 1`, where a table is expected, the parser below returns an error with
            // the line number.
            (_, Some(_)) => {}
            (_, None) if top.contains(key) => {}
            (_, None) => match tables.iter().find(|(_, keys)| keys.contains(key)) {
                Some((table, _)) => {
                    return Err(ConfigError::UnknownKey {
                        path: path.into(),
                        hint: format!("{key} belongs in the table [{table}]"),
                        key: key.clone(),
                    });
                }
                None => return Err(unknown(key.clone(), &top)),
            },
        }
    }
    // Each settings struct is parsed separately and ignores the keys of the other structs. Parsing
    // the config file into one flattened struct would lose the line numbers of errors.
    Ok(ConfigFile {
        global: toml::from_str(text).map_err(malformed)?,
        client: toml::from_str(text).map_err(malformed)?,
        store: toml::from_str(text).map_err(malformed)?,
        server: toml::from_str(text).map_err(malformed)?,
        tables: RawTables {
            shell: toml::from_str::<ShellOnly>(text).map_err(malformed)?.executors,
            ..toml::from_str(text).map_err(malformed)?
        },
    })
}

#[derive(Deserialize)]
struct ShellOnly {
    #[serde(default)]
    executors: RawShell,
}

/// Formats a TOML error on one line, without the excerpt of the config file, which may contain a
/// password.
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

/// Returns the top-level keys of the config file and the keys of each table.
fn known_keys() -> (Vec<String>, [(&'static str, Vec<String>); 7]) {
    let mut top =
        [keys::<RawGlobal>(), keys::<RawClient>(), keys::<RawStore>(), keys::<RawServer>()]
            .concat();
    top.sort();
    let tables = [
        ("engine", keys::<RawEngine>()),
        ("executors", [keys::<RawExecutors>(), keys::<RawShell>()].concat()),
        ("access", keys::<RawAccess>()),
        ("balance", keys::<RawBalance>()),
        ("queue", keys::<RawQueue>()),
        ("targets", keys::<RawTargets>()),
        ("limits", keys::<RawLimits>()),
    ];
    (top, tables)
}

/// A configuration key has the name of its struct field.
fn keys<T: Args>() -> Vec<String> {
    let command = T::augment_args(Command::new(""));
    let keys = command.get_arguments().map(|argument| argument.get_id().to_string());
    keys.filter(|key| key != "config").collect()
}

/// Suggests the most similar key.
fn hint(key: &str, known: &[String]) -> String {
    let near = known
        .iter()
        .map(|known| (strsim::levenshtein(key, known), known))
        .min()
        .filter(|(steps, known)| *steps <= 2.max(known.len() / 4));
    match near {
        Some((_, known)) => format!("did you mean {known}?"),
        None => format!("the keys are {}", known.join(", ")),
    }
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
        assert_eq!(file.tables.engine.lease_seconds, Some(30));
        assert_eq!(file.tables.shell.shell_env.unwrap(), ["TZ", "LANG"]);
        assert_eq!(file.tables.balance.slot, Some(Span::from_secs(300)));
        assert_eq!(file.tables.balance.alert_below, Some(0.5));
    }

    #[test]
    fn misspelt_key_is_refused_with_a_suggestion() {
        for (text, hint) in [
            ("lisen = 'x'", "did you mean listen?"),
            ("[engine]\nlease_second = 3", "did you mean lease_seconds?"),
            ("lease_seconds = 3", "lease_seconds belongs in the table [engine]"),
            ("alert_below = 0.5", "alert_below belongs in the table [balance]"),
            ("shell_env = ['A']", "shell_env belongs in the table [executors]"),
            ("config = 'x'", "the keys are allow_network, dashboard_hosts, data_dir"),
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
