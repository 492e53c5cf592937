//! Reads the jobs table of Evenkeel's predecessor from its database.

use serde_json::Value;
use tokio_postgres::Client;

use super::source::{BATCH, NumberedRow};
use crate::failure::{Because as _, chain};
use crate::{Exit, Failure, Result};

/// A database table to import. One read-only transaction reads all rows, so that they are from the
/// same moment. The SQL cursor keeps only one batch of rows in memory.
pub(super) struct Table {
    client: Client,
    shown: String,
    read: u64,
}

impl Table {
    /// Opens `table` in the database at `url`. `shown` is the URL without its password.
    pub(super) async fn open(url: &str, shown: &str, table: &str) -> Result<Self> {
        let client = evenkeel_store_postgres::connect_external(url, "evenkeel import")
            .await
            .map_err(|error| {
                let what = format!("{shown} can't be opened: {}", chain(&error));
                Failure::new(Exit::Unreachable, what)
                    .or_else("check the address in --from, and that its user may read the table")
            })?;
        let opened = Self { client, shown: shown.into(), read: 0 };
        opened.begin(table).await?;
        Ok(opened)
    }

    async fn begin(&self, table: &str) -> Result {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        self.client.batch_execute(begin).await.because(self.failed())?;
        // PostgreSQL quotes the table name, so that a table name cannot inject SQL.
        let found = self.client.query_one("SELECT to_regclass($1)::text", &[&table]).await;
        let found = found.because(self.failed())?;
        let Some(found) = found.get::<_, Option<String>>(0) else {
            let what = format!("there is no table {table} in {}", self.shown);
            return Err(Failure::new(Exit::NotFound, what).or_else(
                "name it with --table, with its schema if necessary: --table crawler.jobs",
            ));
        };
        let columns = "SELECT attname::text FROM pg_attribute \
                       WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped";
        let columns = self.client.query(columns, &[&table]).await.because(self.failed())?;
        let has = |name: &str| columns.iter().any(|row| row.get::<_, &str>(0) == name);
        if !has("url") {
            let what =
                format!("{table} in {} is not a table of jobs: it has no column url", self.shown);
            return Err(Failure::failed(what).or_else("name the right table with --table"));
        }
        // The query sorts the rows, so that a repeated import reads jobs with the same name in the
        // same order.
        let order: Vec<&str> = ["created_at", "id"].into_iter().filter(|name| has(name)).collect();
        let order = match &order[..] {
            [] => String::new(),
            columns => format!(" ORDER BY {}", columns.join(", ")),
        };
        let declare = format!(
            "DECLARE evenkeel_import NO SCROLL CURSOR FOR SELECT row_to_json(t) FROM {found} t{order}"
        );
        self.client.batch_execute(&declare).await.because(self.failed())
    }

    pub(super) async fn next_rows(&mut self) -> Result<Vec<NumberedRow>> {
        let fetch = format!("FETCH {BATCH} FROM evenkeel_import");
        let rows = self.client.query(&fetch, &[]).await.because(self.failed())?;
        let mut numbered = Vec::with_capacity(rows.len());
        for row in rows {
            self.read += 1;
            let row = match row.try_get::<_, Value>(0) {
                Ok(Value::Object(columns)) => Ok(columns),
                Ok(_) => Err("is not a row".to_owned()),
                Err(error) => Err(error.to_string()),
            };
            numbered.push((self.read, row));
        }
        Ok(numbered)
    }

    /// Ends the read-only transaction.
    pub(super) async fn close(self) -> Result {
        self.client.batch_execute("ROLLBACK").await.because(self.failed())
    }

    fn failed(&self) -> String {
        format!("{} could not be read", self.shown)
    }
}
