//! Where the predecessor's rows come from.

use std::path::Path;

use clap::ValueEnum;
use serde_json::{Map, Value};

use super::files::{CsvRows, JsonRows};
use super::postgres::Table;
use crate::Failure;
use crate::config::StoreChoice;

/// A row and its number, counted from 1; or why it can't be read.
pub(super) type NumberedRow = (u64, Result<Map<String, Value>, String>);

/// Rows read at once.
pub(super) const BATCH: usize = 1000;

/// What a file is.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Format {
    /// With a header that names the columns
    Csv,
    /// An object on each line
    Ndjson,
}

/// Rows of the predecessor, read a batch at a time and never written to.
pub(super) struct Source {
    name: String,
    rows: Rows,
}

enum Rows {
    Csv(Box<CsvRows>),
    Json(JsonRows),
    Table(Table),
}

impl Source {
    /// Opens what `--from` names.
    pub(super) async fn open(
        from: &str,
        table: &str,
        format: Option<Format>,
    ) -> Result<Self, Failure> {
        if from.starts_with("postgres://") || from.starts_with("postgresql://") {
            // Shown without its password.
            let name = StoreChoice::Postgres(from.into()).to_string();
            let rows = Rows::Table(Table::open(from, &name, table).await?);
            return Ok(Self { name: format!("{table} of {name}"), rows });
        }
        let path = Path::new(from);
        let rows = match format.or_else(|| told_by_name(path)) {
            Some(Format::Csv) => Rows::Csv(Box::new(CsvRows::open(path)?)),
            Some(Format::Ndjson) => Rows::Json(JsonRows::open(path)?),
            None => {
                let what = "--from must be a postgres:// address, a .csv file or a .ndjson file";
                return Err(Failure::usage(what)
                    .or_else("say what the file is with --format csv or --format ndjson"));
            }
        };
        Ok(Self { name: shown(path), rows })
    }

    /// What it is called, without its secrets.
    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    /// The next rows; none at the end.
    pub(super) async fn next_rows(&mut self) -> Result<Vec<NumberedRow>, Failure> {
        match &mut self.rows {
            Rows::Csv(rows) => rows.next_rows(),
            Rows::Json(rows) => rows.next_rows(),
            Rows::Table(rows) => rows.next_rows().await,
        }
    }

    /// Nothing more is read.
    pub(super) async fn close(self) -> Result<(), Failure> {
        match self.rows {
            Rows::Table(table) => table.close().await,
            Rows::Csv(_) | Rows::Json(_) => Ok(()),
        }
    }
}

fn told_by_name(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()?.to_lowercase().as_str() {
        "csv" => Some(Format::Csv),
        "ndjson" | "jsonl" => Some(Format::Ndjson),
        _ => None,
    }
}

/// What a file is called, for people.
pub(super) fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".into() } else { path.display().to_string() }
}
