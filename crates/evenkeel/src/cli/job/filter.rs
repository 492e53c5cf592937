//! Which jobs: the flags that all commands on many jobs share.

use clap::Args;

use crate::output::quoted;

/// Which jobs: those that pass all that is said.
#[derive(Args, Clone, Default)]
pub(super) struct FilterArgs {
    /// Only those in this state
    #[arg(long, value_name = "STATE")]
    #[arg(value_parser = [
        "pending", "scheduled", "running", "paused", "completed", "failed", "cancelled",
    ])]
    status: Option<String>,
    /// Only those in this condition: ok, warning or error
    #[arg(long, value_name = "LEVEL")]
    #[arg(value_parser = ["ok", "warning", "error"], ignore_case = true)]
    condition: Option<String>,
    /// Only those with this executor, such as http
    #[arg(long, value_name = "KIND")]
    executor: Option<String>,
    /// Only those in this lane: critical, standard or batch
    #[arg(long, value_name = "LANE", value_parser = ["critical", "standard", "batch"])]
    lane: Option<String>,
    /// Only those whose name starts with this
    #[arg(long, value_name = "TEXT")]
    name_prefix: Option<String>,
    /// Only those about this source
    #[arg(long, value_name = "ID")]
    source_id: Option<String>,
    /// Only those about a source whose id starts with this
    #[arg(long, value_name = "TEXT")]
    source_prefix: Option<String>,
    /// Only those that name this target
    #[arg(long, value_name = "N")]
    target: Option<String>,
    /// Only those whose metadata have this value at this key; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    metadata: Vec<(String, String)>,
    /// Only those whose next run is at this moment or later
    #[arg(long, value_name = "TIME")]
    next_run_after: Option<String>,
    /// Only those whose next run is before this moment
    #[arg(long, value_name = "TIME")]
    next_run_before: Option<String>,
}

impl FilterArgs {
    /// As parameters of the HTTP interface.
    pub(super) fn query(&self) -> Vec<(String, String)> {
        let mut query: Vec<(String, String)> = self
            .single()
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
            .collect();
        let labels = self.metadata.iter();
        query.extend(labels.map(|(key, value)| (format!("metadata.{key}"), value.clone())));
        query
    }

    /// As flags, with a space before each.
    pub(super) fn flags(&self) -> String {
        let mut flags = String::new();
        for (name, value) in self.single() {
            if let Some(value) = value {
                flags.push_str(&format!(" --{} {}", name.replace('_', "-"), quoted(value)));
            }
        }
        for (key, value) in &self.metadata {
            flags.push_str(&format!(" --metadata {}", quoted(&format!("{key}={value}"))));
        }
        flags
    }

    /// Is everything let through?
    pub(super) fn is_open(&self) -> bool {
        self.query().is_empty()
    }

    fn single(&self) -> [(&'static str, &Option<String>); 10] {
        [
            ("status", &self.status),
            ("condition", &self.condition),
            ("executor", &self.executor),
            ("lane", &self.lane),
            ("name_prefix", &self.name_prefix),
            ("source_id", &self.source_id),
            ("source_prefix", &self.source_prefix),
            ("target", &self.target),
            ("next_run_after", &self.next_run_after),
            ("next_run_before", &self.next_run_before),
        ]
    }
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("write it as KEY=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_reads_the_same_as_parameters_and_as_flags() {
        let filter = FilterArgs {
            status: Some("failed".into()),
            name_prefix: Some("news of ".into()),
            metadata: vec![key_and_value("team=red=ish").unwrap()],
            ..FilterArgs::default()
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            filter.query(),
            [
                pair("status", "failed"),
                pair("name_prefix", "news of "),
                pair("metadata.team", "red=ish")
            ]
        );
        assert_eq!(
            filter.flags(),
            " --status failed --name-prefix 'news of ' --metadata 'team=red=ish'"
        );
        assert!(!filter.is_open() && FilterArgs::default().is_open());
        assert!(key_and_value("team").is_err() && key_and_value("=red").is_err());
    }
}
