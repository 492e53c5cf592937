//! Filter flags of `job list` and of commands for many jobs.

use clap::Args;
use serde_json::{Map, Value};

use crate::output::quoted;

#[derive(Args, Clone, Default)]
pub(super) struct FilterArgs {
    /// Only jobs in this state
    #[arg(long, help_heading = "Filters", value_name = "STATE")]
    #[arg(value_parser = [
        "pending", "scheduled", "running", "paused", "completed", "failed", "cancelled",
    ])]
    status: Option<String>,
    /// Only jobs in this condition: ok, warning or error
    #[arg(long, help_heading = "Filters", value_name = "LEVEL")]
    #[arg(value_parser = ["ok", "warning", "error"], ignore_case = true)]
    condition: Option<String>,
    /// Only jobs with this executor, such as http
    #[arg(long, help_heading = "Filters", value_name = "KIND")]
    executor: Option<String>,
    /// Only jobs in this lane: critical, standard or batch
    #[arg(long, help_heading = "Filters", value_name = "LANE", value_parser = ["critical", "standard", "batch"])]
    lane: Option<String>,
    /// Only jobs whose name starts with this text
    #[arg(long, help_heading = "Filters", value_name = "TEXT")]
    name_prefix: Option<String>,
    /// Only jobs of this source
    #[arg(long, help_heading = "Filters", value_name = "ID")]
    source_id: Option<String>,
    /// Only jobs whose source id starts with this text
    #[arg(long, help_heading = "Filters", value_name = "TEXT")]
    source_prefix: Option<String>,
    /// Only jobs of this target
    #[arg(long, help_heading = "Filters", value_name = "N")]
    target: Option<String>,
    /// Only jobs whose name, description, URL, source, target or metadata contain these words
    #[arg(short = 'q', long, help_heading = "Filters", value_name = "TEXT")]
    search: Option<String>,
    /// Only jobs with this metadata entry; repeatable
    #[arg(long, help_heading = "Filters", value_name = "KEY=VALUE", value_parser = key_and_value)]
    metadata: Vec<(String, String)>,
    /// Only jobs whose next run is at this time or later
    #[arg(long, help_heading = "Filters", value_name = "TIME")]
    next_run_after: Option<String>,
    /// Only jobs whose next run is before this time
    #[arg(long, help_heading = "Filters", value_name = "TIME")]
    next_run_before: Option<String>,
}

impl FilterArgs {
    /// Returns the filters as query parameters of a list request.
    pub(super) fn query(&self) -> Vec<(String, String)> {
        let single = self.single().into_iter();
        let single = single.filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        let labels = self.metadata.iter();
        let labels = labels.map(|(key, value)| (format!("metadata.{key}"), value.clone()));
        single.chain(labels).collect()
    }

    /// Returns the filters as command-line flags, each with a leading space.
    pub(super) fn flags(&self) -> String {
        let mut flags = String::new();
        for (name, value) in self.single() {
            if let Some(value) = value {
                let flag = if name == "q" { "search" } else { name };
                flags.push_str(&format!(" --{} {}", flag.replace('_', "-"), quoted(value)));
            }
        }
        for (key, value) in &self.metadata {
            flags.push_str(&format!(" --metadata {}", quoted(&format!("{key}={value}"))));
        }
        flags
    }

    pub(super) fn is_empty(&self) -> bool {
        self.query().is_empty()
    }

    /// Returns the filters as a JSON document for a command that changes many jobs.
    pub(super) fn document(&self) -> Value {
        let mut filter = Map::new();
        for (name, value) in self.single() {
            let Some(value) = value else { continue };
            let value = match name {
                "condition" => value.to_uppercase().into(),
                // A target that is not a number is sent as text, and the server refuses it.
                "target" => value.parse::<u64>().map_or_else(|_| value.clone().into(), Value::from),
                _ => value.clone().into(),
            };
            filter.insert(name.into(), value);
        }
        if !self.metadata.is_empty() {
            let labels =
                self.metadata.iter().map(|(key, value)| (key.clone(), value.clone().into()));
            filter.insert("metadata".into(), Value::Object(labels.collect()));
        }
        Value::Object(filter)
    }

    fn single(&self) -> [(&'static str, &Option<String>); 11] {
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
            ("q", &self.search),
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
    fn filters_become_parameters_and_flags() {
        let filter = FilterArgs {
            status: Some("failed".into()),
            name_prefix: Some("news of ".into()),
            search: Some("forum eu".into()),
            metadata: vec![key_and_value("team=red=ish").unwrap()],
            ..FilterArgs::default()
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            filter.query(),
            [
                pair("status", "failed"),
                pair("name_prefix", "news of "),
                pair("q", "forum eu"),
                pair("metadata.team", "red=ish")
            ]
        );
        assert_eq!(
            filter.flags(),
            " --status failed --name-prefix 'news of ' --search 'forum eu' --metadata 'team=red=ish'"
        );
        assert!(!filter.is_empty() && FilterArgs::default().is_empty());
        assert!(key_and_value("team").is_err() && key_and_value("=red").is_err());
    }
}
