use std::sync::LazyLock;

use evenkeel_private_postgres::{Options, PrivatePostgres};

use crate::support::Server;

/// A PostgreSQL server for this process, used if no shared server is configured.
static SERVER: LazyLock<PrivatePostgres> =
    LazyLock::new(|| PrivatePostgres::start(Options::unit_test()).unwrap());

/// The store of a test server.
pub struct Database {
    store: Option<String>,
}

impl Database {
    /// A SQLite file in the server's folder.
    pub fn sqlite() -> Self {
        Self { store: None }
    }

    /// A new PostgreSQL database.
    pub fn postgres() -> Self {
        #[expect(clippy::disallowed_methods, reason = "tests have no config of their own")]
        let shared = std::env::var("EVENKEEL_TEST_POSTGRES");
        let url = shared.unwrap_or_else(|_| SERVER.url().to_owned());
        let name = format!("executors_{}", std::process::id());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            // The database may exist already, because an earlier process may have had the same
            // process id.
            let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            client.batch_execute(&drop).await.unwrap();
            client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
            drop_client(client, connection).await;
        });
        Self { store: Some(with_database(&url, &name)) }
    }

    /// The arguments that select this store.
    pub fn args(&self) -> Vec<&str> {
        self.store.iter().flat_map(|store| ["--store", store]).collect()
    }

    pub fn serve(&self, args: &[&str]) -> Server {
        Server::start(&[args, &self.args()].concat())
    }
}

async fn drop_client<T>(client: tokio_postgres::Client, connection: tokio::task::JoinHandle<T>) {
    drop(client);
    let _ = connection.await;
}

/// Returns the URL of another database of the same server.
fn with_database(url: &str, name: &str) -> String {
    let (before, query) = url.split_once('?').map_or((url, None), |(a, b)| (a, Some(b)));
    let scheme = before.find("://").unwrap() + 3;
    let authority = before[scheme..].find('/').map_or(before.len(), |at| scheme + at);
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    format!("{}/{name}{query}", &before[..authority])
}
