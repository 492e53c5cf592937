//! A schema for each test.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use evenkeel_private_postgres::{Options, PrivatePostgres};
use evenkeel_store_postgres::{PostgresOptions, PostgresStore};
use tokio_postgres::{Client, NoTls};

/// The PostgreSQL server of this test binary, unless all tests share a server.
static SERVER: LazyLock<PrivatePostgres> =
    LazyLock::new(|| PrivatePostgres::start(Options::unit_test()).unwrap());

/// Returns the URL with which a superuser connects to the server.
pub fn url() -> String {
    #[expect(clippy::disallowed_methods, reason = "tests have no config of their own")]
    let shared = std::env::var("EVENKEEL_TEST_POSTGRES");
    shared.unwrap_or_else(|_| own_url())
}

/// Returns the URL of a server that only this test binary uses.
pub fn own_url() -> String {
    SERVER.url().to_owned()
}

/// Opens a connection that does not belong to the store.
pub async fn observer(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Returns options for an empty schema that no other test uses.
pub async fn fresh_options(url: String) -> PostgresOptions {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nth = COUNT.fetch_add(1, Ordering::Relaxed);
    let schema = format!("test_{}_{nth}", std::process::id());
    let sql = format!("DROP SCHEMA IF EXISTS {schema} CASCADE");
    observer(&url).await.batch_execute(&sql).await.unwrap();
    PostgresOptions {
        application_name: schema.clone(),
        schema: Some(schema),
        statement_timeout: Duration::from_secs(10),
        ..PostgresOptions::new(url)
    }
}

pub async fn open() -> (PostgresStore, PostgresOptions) {
    let options = fresh_options(url()).await;
    let store = PostgresStore::connect(options.clone()).await.unwrap();
    (store, options)
}
