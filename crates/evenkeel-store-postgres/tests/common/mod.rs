//! A database for each test.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use evenkeel_private_postgres::{Options, PrivatePostgres};
use evenkeel_store_postgres::{PostgresOptions, PostgresStore};
use tokio_postgres::{Client, NoTls};

/// A server for this test binary, unless there is one for all.
static SERVER: LazyLock<PrivatePostgres> =
    LazyLock::new(|| PrivatePostgres::start(Options::unit_test()).unwrap());

/// The server's address, for a superuser.
pub fn url() -> String {
    #[expect(clippy::disallowed_methods, reason = "tests have no config of their own")]
    let shared = std::env::var("EVENKEEL_TEST_POSTGRES");
    shared.unwrap_or_else(|_| SERVER.url().to_owned())
}

/// A connection beside the store's.
pub async fn onlooker(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Options for an empty schema at `url` that no other test uses.
pub async fn fresh_options(url: String) -> PostgresOptions {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nth = COUNT.fetch_add(1, Ordering::Relaxed);
    let schema = format!("test_{}_{nth}", std::process::id());
    let sql = format!("DROP SCHEMA IF EXISTS {schema} CASCADE");
    onlooker(&url).await.batch_execute(&sql).await.unwrap();
    PostgresOptions {
        application_name: schema.clone(),
        schema: Some(schema),
        statement_timeout: Duration::from_secs(10),
        ..PostgresOptions::new(url)
    }
}

/// An empty store.
pub async fn open() -> (PostgresStore, PostgresOptions) {
    let options = fresh_options(url()).await;
    let store = PostgresStore::connect(options.clone()).await.unwrap();
    (store, options)
}
