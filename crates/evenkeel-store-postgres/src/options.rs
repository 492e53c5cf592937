//! Address and settings of the database.

use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::error::OpenError;

/// PostgreSQL's default port.
const PORT: u16 = 5432;

#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database?sslmode=…`
    ///
    /// With `sslmode=prefer` (the default) the connection is encrypted if the server supports it,
    /// and the certificate is not checked. With `require` the connection is encrypted, and this
    /// machine must trust the certificate.
    pub url: String,
    /// Connections for firing, claiming, finishing and leases.
    pub hot_connections: usize,
    pub api_connections: usize,
    pub statement_timeout: Duration,
    /// The name of the program in `pg_stat_activity`.
    pub application_name: String,
    /// The schema of the tables, created if missing. `None` stands for the first schema of the
    /// search path.
    pub schema: Option<String>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    Hot,
    Api,
    Listen,
    Migrate,
}

impl PostgresOptions {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            hot_connections: 4,
            api_connections: 8,
            statement_timeout: Duration::from_secs(10),
            application_name: "evenkeel".into(),
            schema: None,
        }
    }

    /// Returns the shell command that creates the database on its server.
    pub fn create_command(&self) -> Option<String> {
        let config = Config::from_str(&self.url).ok()?;
        let mut words = vec!["createdb".to_owned()];
        let host = config.get_hosts().first().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(folder) => folder.display().to_string(),
        });
        words.extend(host.map(|host| format!("-h {}", shell_word(&host))));
        let port = config.get_ports().first().filter(|port| **port != PORT);
        words.extend(port.map(|port| format!("-p {port}")));
        words.extend(config.get_user().map(|user| format!("-U {}", shell_word(user))));
        // By default the database has the name of the user.
        words.push(shell_word(config.get_dbname().or(config.get_user())?));
        Some(words.join(" "))
    }

    /// The client gives up on a store method after this time; normally the server gives up earlier.
    pub(crate) fn verb_timeout(&self) -> Duration {
        self.statement_timeout + Duration::from_secs(2)
    }

    /// Returns the name of the notification channel that all nodes of this database share.
    pub(crate) fn channel(&self) -> String {
        format!("evenkeel_{}", self.schema.as_deref().unwrap_or("default"))
    }

    pub(crate) fn validate(&self) -> Result<(), OpenError> {
        if self.hot_connections < 2 || self.api_connections < 1 {
            return Err(OpenError::Options(
                "hot_connections must be at least 2 and api_connections at least 1".into(),
            ));
        }
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        match &self.schema {
            Some(schema)
                if schema.is_empty() || schema.len() > 48 || !schema.chars().all(legal) =>
            {
                Err(OpenError::Options(
                    "schema must have 1 to 48 characters from a-z, 0-9 and _".into(),
                ))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn config(&self, purpose: Purpose) -> Result<Config, OpenError> {
        let mut config =
            Config::from_str(&self.url).map_err(|error| OpenError::Options(error.into()))?;
        let timeout = self.statement_timeout.as_millis();
        let mut settings = vec![
            // A session that is idle in a transaction holds locks that other sessions wait for.
            format!("idle_in_transaction_session_timeout={timeout}"),
            format!("statement_timeout={}", if purpose == Purpose::Migrate { 0 } else { timeout }),
            format!("lock_timeout={}", if purpose == Purpose::Migrate { 60_000 } else { timeout }),
            "jit=off".into(),
            // A statement that has waited for a lock must see what was committed in the meantime.
            // The database or the role may have another default isolation level.
            "default_transaction_isolation=read\\ committed".into(),
        ];
        if let Some(schema) = &self.schema {
            settings.push(format!("search_path={schema}"));
        }
        if purpose == Purpose::Hot {
            // Batches are sorted, and a nested loop over a batch locks rows in that order, so that
            // two batches cannot deadlock. A nested loop is also the fastest plan at any table
            // size.
            settings.extend(
                ["enable_seqscan=off", "enable_hashjoin=off", "enable_mergejoin=off"]
                    .map(String::from),
            );
        }
        if purpose != Purpose::Migrate {
            // One query plan fits all parameters, and planning each time would cost more than
            // running the statement.
            settings.push("plan_cache_mode=force_generic_plan".into());
        }
        let mut text = config.get_options().unwrap_or_default().to_owned();
        for setting in settings {
            text.push_str(" -c ");
            text.push_str(&setting);
        }
        let connect_timeout = config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
        config
            .options(text.trim_start())
            .application_name(&self.application_name)
            .connect_timeout(connect_timeout)
            .tcp_user_timeout(self.verb_timeout())
            .keepalives(true)
            .keepalives_idle(Duration::from_secs(10))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3);
        Ok(config)
    }
}

pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_would_need_quoting_is_refused() {
        let with = |schema: &str| PostgresOptions {
            schema: Some(schema.into()),
            ..PostgresOptions::new("postgres://localhost")
        };
        assert!(with("test_1").validate().is_ok());
        assert!(with("Test").validate().is_err());
        assert!(with("a; drop").validate().is_err());
    }

    #[test]
    fn the_command_that_creates_a_database_names_it_and_its_server() {
        let command = |url: &str| PostgresOptions::new(url).create_command().unwrap();
        let whole = command("postgres://ann:secret@db.example:5433/jobs");
        assert_eq!(whole, "createdb -h db.example -p 5433 -U ann jobs");
        assert_eq!(command("postgres://ann@localhost"), "createdb -h localhost -U ann ann");
        let odd = command("postgres://ann@localhost/my%20job's");
        assert_eq!(odd, "createdb -h localhost -U ann 'my job'\\''s'");
    }

    #[test]
    fn options_of_the_url_are_kept() {
        let options = PostgresOptions::new("postgres://localhost?options=-c%20work_mem%3D8MB");
        let config = options.config(Purpose::Hot).unwrap();
        let text = config.get_options().unwrap();
        assert!(text.starts_with("-c work_mem=8MB -c idle"), "{text}");
        assert!(text.contains("enable_hashjoin=off"));
    }

    #[test]
    fn transactions_are_read_committed_whatever_the_defaults() {
        let strict =
            "postgres://localhost?options=-c%20default_transaction_isolation%3Dserializable";
        let config = PostgresOptions::new(strict).config(Purpose::Hot).unwrap();
        let text = config.get_options().unwrap();
        // If a setting occurs twice, the last value wins.
        let last = text.rsplit("default_transaction_isolation=").next().unwrap();
        assert!(last.starts_with("read\\ committed"), "{text}");
    }
}
