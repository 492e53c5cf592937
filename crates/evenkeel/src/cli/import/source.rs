//! Sources of the predecessor's rows.

use std::path::Path;

use clap::ValueEnum;
use serde_json::{Map, Value};

use super::files::{CsvRows, JsonRows};
use super::postgres::Table;
use crate::config::StoreChoice;
use crate::{Failure, Result};

/// A row and its number, counted from 1, or the reason why the row can't be read.
pub(super) type NumberedRow = (u64, Result<Map<String, Value>, String>);

/// Rows per batch.
pub(super) const BATCH: usize = 1000;

#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Format {
    /// CSV with a header that names the columns
    Csv,
    /// One object per line
    Ndjson,
}

/// Jobs of Evenkeel's predecessor, read in batches of rows. The import never writes to the source.
pub(super) struct Source {
    /// The name without secrets.
    pub(super) name: String,
    rows: Rows,
}

enum Rows {
    Csv(Box<CsvRows>),
    Json(JsonRows),
    Table(Table),
}

impl Source {
    /// Opens the database or file that `--from` names.
    pub(super) async fn open(from: &str, table: &str, format: Option<Format>) -> Result<Self> {
        if from.starts_with("postgres://") || from.starts_with("postgresql://") {
            // Without the password.
            let name = StoreChoice::Postgres(from.into()).to_string();
            let rows = Rows::Table(Table::open(from, &name, table).await?);
            return Ok(Self { name: format!("{table} of {name}"), rows });
        }
        let path = Path::new(from);
        let rows = match format.or_else(|| format_of_name(path)) {
            Some(Format::Csv) => Rows::Csv(Box::new(CsvRows::open(path)?)),
            Some(Format::Ndjson) => Rows::Json(JsonRows::open(path)?),
            None => {
                let what = "--from must be a postgres:// address, a .csv file or a .ndjson file";
                return Err(Failure::usage(what)
                    .or_else("name the format with --format csv or --format ndjson"));
            }
        };
        Ok(Self { name: shown(path), rows })
    }

    /// Returns the next batch of rows, or an empty list after the last row.
    pub(super) async fn next_rows(&mut self) -> Result<Vec<NumberedRow>> {
        match &mut self.rows {
            Rows::Csv(rows) => rows.next_rows(),
            Rows::Json(rows) => rows.next_rows(),
            Rows::Table(rows) => rows.next_rows().await,
        }
    }

    pub(super) async fn close(self) -> Result {
        match self.rows {
            Rows::Table(table) => table.close().await,
            Rows::Csv(_) | Rows::Json(_) => Ok(()),
        }
    }
}

fn format_of_name(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()?.to_lowercase().as_str() {
        "csv" => Some(Format::Csv),
        "ndjson" | "jsonl" => Some(Format::Ndjson),
        _ => None,
    }
}

/// Returns the name of a file for display.
pub(super) fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".into() } else { path.display().to_string() }
}
