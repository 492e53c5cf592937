//! The filters of the list of jobs, which bulk commands take as well.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::PAGE_ITEMS;
use super::lists::address;
use crate::backend::escape;

#[derive(Deserialize)]
pub(crate) struct Filter {
    #[serde(default)]
    pub(super) q: String,
    #[serde(default)]
    pub(super) status: String,
    #[serde(default)]
    pub(super) condition: String,
    #[serde(default)]
    pub(super) executor: String,
    #[serde(default)]
    pub(super) lane: String,
    #[serde(default)]
    pub(super) name_prefix: String,
    /// Number of a target.
    #[serde(default)]
    pub(super) target: String,
    /// Pairs like `team=red, tier=1`.
    #[serde(default)]
    pub(super) metadata: String,
}

impl Filter {
    pub(crate) fn fields(&self) -> [(&'static str, &str); 8] {
        [
            ("q", &self.q),
            ("status", &self.status),
            ("condition", &self.condition),
            ("executor", &self.executor),
            ("lane", &self.lane),
            ("name_prefix", &self.name_prefix),
            ("target", &self.target),
            ("metadata", &self.metadata),
        ]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields().iter().all(|(_, value)| value.is_empty())
    }

    /// The keys and values of the metadata. A text without `=` becomes a pair without a key, which
    /// the API refuses.
    fn pairs(&self) -> Vec<(String, String)> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for part in self.metadata.split(',').filter(|part| !part.trim().is_empty()) {
            match (part.split_once('='), pairs.last_mut()) {
                (Some((key, value)), _) => pairs.push((key.trim().into(), value.trim().into())),
                // The comma was a part of the value.
                (None, Some((_, value))) => value.push_str(&format!(",{part}")),
                (None, None) => pairs.push((String::new(), part.trim().into())),
            }
        }
        pairs
    }

    /// Returns the address of the list in the API.
    pub(super) fn list(&self) -> String {
        let known = self.fields();
        let known: Vec<_> = known.into_iter().filter(|(name, _)| *name != "metadata").collect();
        let mut list = address(&format!("/api/v1/jobs?limit={PAGE_ITEMS}"), &known);
        for (key, value) in self.pairs() {
            list.push_str(&format!("&{}={}", escape(&format!("metadata.{key}")), escape(&value)));
        }
        list
    }

    /// Returns the filter as the API expects it in the document of a bulk command.
    pub(crate) fn document(&self) -> Value {
        let given = self.fields().into_iter().filter(|(_, value)| !value.is_empty());
        let fields = given.map(|(name, value)| {
            let value = match name {
                "metadata" => {
                    self.pairs().into_iter().map(|(key, value)| (key, Value::from(value))).collect()
                }
                // The API refuses a text here.
                "target" => value.parse::<i64>().map_or_else(|_| Value::from(value), Value::from),
                _ => Value::from(value),
            };
            (name.to_owned(), value)
        });
        Value::Object(fields.collect::<Map<_, _>>())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filter(metadata: &str) -> Filter {
        serde_json::from_value(json!({"target": "40", "metadata": metadata})).unwrap()
    }

    #[test]
    fn metadata_are_filtered_by_pairs() {
        let filter = filter("team=red, note=a,b ,tier = 1");
        assert_eq!(
            filter.list(),
            "/api/v1/jobs?limit=50&target=40&metadata.team=red&metadata.note=a%2Cb%20&metadata.tier=1"
        );
        let document =
            json!({"target": 40, "metadata": {"team": "red", "note": "a,b ", "tier": "1"}});
        assert_eq!(filter.document(), document);
    }

    #[test]
    fn metadata_without_a_key_or_value_are_sent_and_not_ignored() {
        // A filter that were dropped would let a command change all jobs.
        assert!(filter("red").list().ends_with("&metadata.=red"));
        assert_eq!(filter("red").document()["metadata"], json!({"": "red"}));
        assert!(filter("team=").list().ends_with("&metadata.team="));
        assert!(filter(" , ").pairs().is_empty());
    }
}
