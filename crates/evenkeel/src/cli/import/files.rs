//! Reads CSV and NDJSON exports of the jobs table of Evenkeel's predecessor.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::{Map, Value};

use super::source::{BATCH, NumberedRow};
use crate::failure::Because as _;
use crate::{Failure, Result};

/// Longest row, in bytes.
const ROW_BYTES_MAX: usize = 1 << 20;

fn open(path: &Path) -> Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin()));
    }
    match File::open(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(Failure::usage(format!("{} can't be read: {error}", path.display()))
            .or_else("give an existing file, or - for standard input")),
    }
}

/// A CSV file with a header.
pub(super) struct CsvRows {
    records: csv::Reader<Box<dyn Read>>,
    columns: Vec<String>,
    name: String,
}

impl CsvRows {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let mut records = csv::ReaderBuilder::new().flexible(true).from_reader(open(path)?);
        let header = records.headers().because(format!("the header of {name} can't be read"))?;
        let columns: Vec<String> = header.iter().map(|it| it.trim().to_lowercase()).collect();
        if !columns.iter().any(|column| column == "url") {
            let what = format!("{name} is not an export of jobs: its header names no column url");
            return Err(Failure::failed(what)
                .or_else("export it with a header: \\copy jobs TO jobs.csv CSV HEADER"));
        }
        Ok(Self { records, columns, name })
    }

    pub(super) fn next_rows(&mut self) -> Result<Vec<NumberedRow>> {
        let mut rows = Vec::new();
        let mut record = csv::ByteRecord::new();
        while rows.len() < BATCH {
            let read = self.records.read_byte_record(&mut record);
            if !read.because(format!("{} can't be read", self.name))? {
                break;
            }
            let line = record.position().map_or(0, csv::Position::line);
            rows.push((line, self.row(&record)));
        }
        Ok(rows)
    }

    fn row(&self, record: &csv::ByteRecord) -> Result<Map<String, Value>, String> {
        let (fields, columns) = (record.len(), self.columns.len());
        if fields != columns {
            return Err(format!("it has {fields} fields, but the header has {columns}"));
        }
        let fields = self.columns.iter().zip(record).map(|(name, field)| {
            let text = std::str::from_utf8(field).map_err(|_| "it is not UTF-8")?;
            Ok((name.clone(), text.into()))
        });
        fields.collect()
    }
}

/// An NDJSON file: one object per line.
pub(super) struct JsonRows {
    reader: BufReader<Box<dyn Read>>,
    name: String,
    line: u64,
}

impl JsonRows {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        Ok(Self { reader: BufReader::new(open(path)?), name, line: 0 })
    }

    pub(super) fn next_rows(&mut self) -> Result<Vec<NumberedRow>> {
        let mut rows = Vec::new();
        while rows.len() < BATCH {
            let Some(line) = self.next_line()? else { break };
            self.line += 1;
            match line {
                Ok(text) if text.trim().is_empty() => {}
                line => rows.push((self.line, line.and_then(|text| object(&text)))),
            }
        }
        Ok(rows)
    }

    /// Returns the next line, or the reason why it can't be read; `None` at the end of the file.
    fn next_line(&mut self) -> Result<Option<Result<String, String>>> {
        let what = format!("{} can't be read", self.name);
        let mut bytes = Vec::new();
        let mut reader = (&mut self.reader).take(ROW_BYTES_MAX as u64 + 1);
        if reader.read_until(b'\n', &mut bytes).because(&what)? == 0 {
            return Ok(None);
        }
        if bytes.len() > ROW_BYTES_MAX && bytes.last() != Some(&b'\n') {
            self.reader.skip_until(b'\n').because(what)?;
            return Ok(Some(Err(format!("it is longer than {ROW_BYTES_MAX} bytes"))));
        }
        Ok(Some(String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())))
    }
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(columns)) => Ok(columns),
        Ok(_) => Err("it is not an object".into()),
        Err(error) => Err(format!("it is not JSON: {error}")),
    }
}
