//! Connections to databases that are not Evenkeel's.

use std::str::FromStr;

use tokio_postgres::{Client, Config};

use crate::error::OpenError;
use crate::options::CONNECT_TIMEOUT;
use crate::tls;

/// Connects to somebody else's database, encrypted as its address asks for. Every transaction of
/// the connection is read-only, unless it says otherwise.
pub async fn connect_elsewhere(url: &str, application_name: &str) -> Result<Client, OpenError> {
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
        // What breaks the connection is told to whoever uses it.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the connection to another database ended");
        }
    });
    Ok(client)
}
