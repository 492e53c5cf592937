/// Settings of a private server.
#[derive(Clone, Debug)]
pub struct Options {
    /// True if a commit must survive a crash of the machine. A durable server has `fsync`,
    /// `synchronous_commit`, `full_page_writes` and the WAL settings of a production server.
    pub durable: bool,
    pub shared_buffers_mb: u32,
    pub max_connections: u32,
    /// Additional settings of `postgresql.conf`, which override all other settings of this type.
    pub extra: Vec<(String, String)>,
}

impl Options {
    /// Fast, without durability.
    #[must_use]
    pub fn unit_test() -> Self {
        Self { durable: false, shared_buffers_mb: 128, max_connections: 200, extra: Vec::new() }
    }

    /// Returns settings that make commits as durable as on a production server.
    #[must_use]
    pub fn benchmark() -> Self {
        Self { durable: true, shared_buffers_mb: 2048, max_connections: 200, extra: Vec::new() }
    }

    /// Returns the lines of `postgresql.conf`. If a setting occurs twice, PostgreSQL uses the last
    /// value.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let switch = if self.durable { "on" } else { "off" };
        let mut settings = vec![
            ("shared_buffers", format!("{}MB", self.shared_buffers_mb)),
            ("max_connections", self.max_connections.to_string()),
            ("fsync", switch.to_owned()),
            ("synchronous_commit", switch.to_owned()),
            ("full_page_writes", switch.to_owned()),
            ("jit", "off".to_owned()),
            ("random_page_cost", "1.1".to_owned()),
        ];
        if self.durable {
            settings.extend([
                ("wal_buffers", "64MB".to_owned()),
                ("max_wal_size", "16GB".to_owned()),
                ("min_wal_size", "4GB".to_owned()),
                ("checkpoint_timeout", "15min".to_owned()),
                ("autovacuum_naptime", "10s".to_owned()),
            ]);
        }
        let own = settings.into_iter().map(|(name, value)| (name.to_owned(), value));
        own.chain(self.extra.iter().cloned()).collect()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::unit_test()
    }
}

pub(crate) fn line(name: &str, value: &str) -> String {
    format!("{name} = '{}'\n", value.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(options: &Options, name: &str) -> Option<String> {
        options.settings().into_iter().rfind(|(own, _)| own == name).map(|(_, value)| value)
    }

    #[test]
    fn only_a_durable_server_syncs() {
        assert_eq!(last(&Options::benchmark(), "fsync").as_deref(), Some("on"));
        assert_eq!(last(&Options::unit_test(), "fsync").as_deref(), Some("off"));
        assert_eq!(last(&Options::unit_test(), "max_wal_size"), None);
    }

    #[test]
    fn extra_settings_override_others() {
        let extra = vec![("jit".to_owned(), "on".to_owned())];
        let options = Options { extra, ..Options::unit_test() };
        assert_eq!(last(&options, "jit").as_deref(), Some("on"));
    }

    #[test]
    fn values_are_quoted() {
        assert_eq!(line("a", r"it's \n"), "a = 'it''s \\\\n'\n");
    }
}
