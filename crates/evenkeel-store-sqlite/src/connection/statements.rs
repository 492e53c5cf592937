//! Runs statements and reads their rows. The connections of the PostgreSQL store have methods with
//! the same names.

use rusqlite::types::FromSql;
use rusqlite::{CachedStatement, Connection, Row, Rows, Statement};

use super::params::{Param as _, Params};
use crate::error::Answer;

/// Runs statements, each of which is prepared only once per connection.
pub(crate) trait RunSql {
    fn prepared(&self, sql: &str) -> Answer<CachedStatement<'_>>;

    fn run(&self, sql: &str, params: Params<'_>) -> Answer<()> {
        self.prepared(sql)?.run(params)
    }

    /// Returns how many rows the statement changed.
    fn change(&self, sql: &str, params: Params<'_>) -> Answer<u64> {
        self.prepared(sql)?.change(params)
    }

    fn has_row(&self, sql: &str, params: Params<'_>) -> Answer<bool> {
        self.prepared(sql)?.has_row(params)
    }

    /// Reads the first column of the only row.
    fn value<T: FromSql>(&self, sql: &str, params: Params<'_>) -> Answer<T> {
        self.prepared(sql)?.value(params)
    }

    fn maybe_value<T: FromSql>(&self, sql: &str, params: Params<'_>) -> Answer<Option<T>> {
        self.prepared(sql)?.maybe_value(params)
    }

    fn row<T, F>(&self, sql: &str, params: Params<'_>, read: F) -> Answer<T>
    where
        F: FnOnce(&Row<'_>) -> Answer<T>,
    {
        self.prepared(sql)?.row(params, read)
    }

    fn maybe_row<T, F>(&self, sql: &str, params: Params<'_>, read: F) -> Answer<Option<T>>
    where
        F: FnOnce(&Row<'_>) -> Answer<T>,
    {
        self.prepared(sql)?.maybe_row(params, read)
    }

    fn rows<T, F>(&self, sql: &str, params: Params<'_>, read: F) -> Answer<Vec<T>>
    where
        F: FnMut(&Row<'_>) -> Answer<T>,
    {
        self.prepared(sql)?.rows(params, read)
    }
}

impl RunSql for Connection {
    fn prepared(&self, sql: &str) -> Answer<CachedStatement<'_>> {
        Ok(self.prepare_cached(sql)?)
    }
}

/// Runs a prepared statement. A loop over many items prepares its statement once.
pub(crate) trait RunPrepared {
    fn change(&mut self, params: Params<'_>) -> Answer<u64>;

    fn select(&mut self, params: Params<'_>) -> Answer<Rows<'_>>;

    fn run(&mut self, params: Params<'_>) -> Answer<()> {
        self.change(params).map(drop)
    }

    fn has_row(&mut self, params: Params<'_>) -> Answer<bool> {
        Ok(self.select(params)?.next()?.is_some())
    }

    fn value<T: FromSql>(&mut self, params: Params<'_>) -> Answer<T> {
        self.row(params, |row| Ok(row.get(0)?))
    }

    fn maybe_value<T: FromSql>(&mut self, params: Params<'_>) -> Answer<Option<T>> {
        self.maybe_row(params, |row| Ok(row.get(0)?))
    }

    fn row<T>(
        &mut self,
        params: Params<'_>,
        read: impl FnOnce(&Row<'_>) -> Answer<T>,
    ) -> Answer<T> {
        Ok(self.maybe_row(params, read)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
    }

    fn maybe_row<T>(
        &mut self,
        params: Params<'_>,
        read: impl FnOnce(&Row<'_>) -> Answer<T>,
    ) -> Answer<Option<T>> {
        self.select(params)?.next()?.map(read).transpose()
    }

    fn rows<T>(
        &mut self,
        params: Params<'_>,
        mut read: impl FnMut(&Row<'_>) -> Answer<T>,
    ) -> Answer<Vec<T>> {
        let mut rows = self.select(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    }
}

impl RunPrepared for Statement<'_> {
    fn change(&mut self, params: Params<'_>) -> Answer<u64> {
        bind(self, params)?;
        Ok(self.raw_execute()? as u64)
    }

    fn select(&mut self, params: Params<'_>) -> Answer<Rows<'_>> {
        bind(self, params)?;
        Ok(self.raw_query())
    }
}

fn bind(statement: &mut Statement<'_>, params: Params<'_>) -> rusqlite::Result<()> {
    let bound = params.bind(statement, 1)? - 1;
    match statement.parameter_count() {
        expected if expected == bound => Ok(()),
        expected => Err(rusqlite::Error::InvalidParameterCount(bound, expected)),
    }
}
