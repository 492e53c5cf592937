//! A row of the job table of the scheduler that Evenkeel replaces, from a database or a file.

use evenkeel_core::Timestamp;
use serde_json::Value;

use crate::Object;

/// The columns of a row that the import uses. Numbers and booleans are also accepted as texts,
/// because files contain only texts. A missing column, null and an empty text have the same
/// meaning.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Row {
    pub id: Option<String>,
    pub source_id: Option<String>,
    pub source_name: Option<String>,
    pub url: Option<String>,
    pub status: Option<String>,
    pub schedule_time: Option<String>,
    pub schedule_enabled: Option<bool>,
    pub interval_minutes: Option<u64>,
    pub interval_type: Option<String>,
    pub next_run_at: Option<Timestamp>,
    pub is_paused: bool,
    pub is_cancelled: bool,
    pub max_retries: Option<u64>,
    pub retry_backoff_seconds: Option<u64>,
    pub metadata: Object,
}

impl Row {
    /// Reads a row. The error lists all invalid columns of the row.
    pub(super) fn read(columns: &Object) -> Result<Self, String> {
        let mut reader = Reader { columns, faults: Vec::new() };
        let row = Self {
            id: reader.text("id"),
            source_id: reader.text("source_id"),
            source_name: reader.text("source_name"),
            url: reader.text("url"),
            status: reader.text("status").map(|status| status.to_lowercase()),
            schedule_time: reader.text("schedule_time"),
            schedule_enabled: reader.flag("schedule_enabled"),
            interval_minutes: reader.number("interval_minutes"),
            interval_type: reader.text("interval_type"),
            next_run_at: reader.moment("next_run_at"),
            is_paused: reader.flag("is_paused").unwrap_or(false),
            is_cancelled: reader.text("cancelled_at").is_some(),
            max_retries: reader.number("max_retries"),
            retry_backoff_seconds: reader.number("retry_backoff_seconds"),
            metadata: reader.object("metadata"),
        };
        if reader.faults.is_empty() { Ok(row) } else { Err(reader.faults.join("; ")) }
    }

    /// Returns the name of the source, or else its id, or else its URL.
    pub(super) fn name(&self) -> Option<&str> {
        [&self.source_name, &self.source_id, &self.url].into_iter().find_map(|it| it.as_deref())
    }
}

struct Reader<'a> {
    columns: &'a Object,
    faults: Vec<String>,
}

impl Reader<'_> {
    fn value(&self, column: &str) -> Option<&Value> {
        let value = self.columns.get(column)?;
        match value {
            Value::Null => None,
            // The PostgreSQL command `COPY` writes `\N` for null.
            Value::String(text) if text.trim().is_empty() || text == "\\N" => None,
            value => Some(value),
        }
    }

    fn fault<T>(&mut self, column: &str, is_not: &str) -> Option<T> {
        let value = self.value(column).map(crate::fault::shown).unwrap_or_default();
        self.faults.push(format!("{column}: {value} is not {is_not}"));
        None
    }

    fn text(&mut self, column: &str) -> Option<String> {
        match self.value(column)? {
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(number) => Some(number.to_string()),
            _ => self.fault(column, "a text"),
        }
    }

    fn flag(&mut self, column: &str) -> Option<bool> {
        let text = match self.value(column)? {
            Value::Bool(flag) => return Some(*flag),
            Value::String(text) => text.trim().to_lowercase(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        match text.as_str() {
            "t" | "true" | "1" | "yes" | "y" | "on" => Some(true),
            "f" | "false" | "0" | "no" | "n" | "off" => Some(false),
            _ => self.fault(column, "true or false"),
        }
    }

    fn number(&mut self, column: &str) -> Option<u64> {
        let number = match self.value(column)? {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.or_else(|| self.fault(column, "a whole number from 0 on"))
    }

    fn moment(&mut self, column: &str) -> Option<Timestamp> {
        let moment = self.value(column)?.as_str().and_then(|text| text.trim().parse().ok());
        moment.or_else(|| self.fault(column, "a time like 2026-12-01T09:00:00Z"))
    }

    fn object(&mut self, column: &str) -> Object {
        let object = match self.value(column) {
            None => return Object::new(),
            Some(Value::Object(object)) => Some(object.clone()),
            Some(Value::String(text)) => serde_json::from_str(text).ok(),
            Some(_) => None,
        };
        object.or_else(|| self.fault(column, "an object")).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(columns: &Value) -> Result<Row, String> {
        Row::read(columns.as_object().unwrap())
    }

    #[test]
    fn rows_of_files_and_databases_read_alike() {
        let database = json!({
            "id": "5f0c", "source_id": null, "source_name": "example.com",
            "url": "https://example.com", "status": "scheduled", "interval_minutes": 6,
            "interval_type": "hours", "next_run_at": "2025-12-29T10:00:00+00:00",
            "is_paused": false, "max_retries": 3, "metadata": {"category": "news"},
            "schedule_time": null, "schedule_enabled": true, "lock_token": null,
        });
        let file = json!({
            "id": "5f0c", "source_id": "", "source_name": "example.com",
            "url": "https://example.com", "status": "scheduled", "interval_minutes": "6",
            "interval_type": "hours", "next_run_at": "2025-12-29 10:00:00+00",
            "is_paused": "f", "max_retries": "3", "metadata": "{\"category\": \"news\"}",
            "schedule_time": "\\N", "schedule_enabled": "t", "lock_token": "",
        });
        assert_eq!(read(&database).unwrap(), read(&file).unwrap());
    }

    #[test]
    fn rows_of_older_tables_have_fewer_columns() {
        let row = read(&json!({"url": "https://a.example", "schedule_time": "@daily"})).unwrap();
        assert_eq!((row.schedule_enabled, row.name()), (None, Some("https://a.example")));
    }

    #[test]
    fn all_faults_of_a_row_are_reported() {
        let columns = json!({"max_retries": -1, "is_paused": "perhaps", "metadata": "[1]",
                             "next_run_at": "soon", "url": {}});
        let faults = read(&columns).unwrap_err();
        for column in ["max_retries: -1", "is_paused:", "metadata:", "next_run_at:", "url:"] {
            assert!(faults.contains(column), "{faults}");
        }
    }
}
