//! Connections to databases that belong to users, for executors that run SQL.

use std::str::FromStr;

use tokio_postgres::{Client, Config};

use super::tls;
use crate::error::OpenError;
use crate::options::CONNECT_TIMEOUT;

/// Connects to a user's database, encrypted as `sslmode` in the URL requires. Transactions on this
/// connection are read-only by default.
pub async fn connect_external(url: &str, application_name: &str) -> Result<Client, OpenError> {
    let mut config = Config::from_str(url).map_err(|error| OpenError::Options(error.into()))?;
    let mut options = config.get_options().unwrap_or_default().to_owned();
    options.push_str(" -c default_transaction_read_only=on");
    let connect_timeout = config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
    config
        .options(options.trim_start())
        .application_name(application_name)
        .connect_timeout(connect_timeout);
    let encryption = tls::connector(config.get_ssl_mode())?;
    let (client, connection) =
        config.connect(encryption).await.map_err(|error| OpenError::Unavailable(error.into()))?;
    tokio::spawn(async move {
        // The client of this connection gets the same error.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "database connection of the import ended");
        }
    });
    Ok(client)
}
