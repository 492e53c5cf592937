//! Signing in to the dashboard at an identity provider.

use std::path::Path;

use evenkeel_outbound::{Outbound, OutboundSettings};
use evenkeel_web::OidcSettings;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::secret_keys::read_private;
use crate::config::{ClientSecret, OidcConfig};
use crate::failure::Because as _;
use crate::{Failure, Result};

/// Reads the client secret, and sets up the calls of the token endpoint.
pub fn settings(config: &OidcConfig) -> Result<OidcSettings> {
    let client_secret = match &config.client_secret {
        ClientSecret::None => None,
        ClientSecret::Given(secret) => Some(secret.reveal().trim().to_owned()),
        ClientSecret::File(path) => Some(read(path)?),
    };
    // The operator chose the only URL that is called, and no user can change it, so the identity
    // provider may be in a private network. Users' jobs still can't call that network.
    let everywhere = vec![IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
    let outbound = OutboundSettings { allow_networks: everywhere, ..OutboundSettings::default() };
    Ok(OidcSettings {
        client_id: config.client_id.clone(),
        client_secret,
        authorization_endpoint: config.authorization_endpoint.clone(),
        token_endpoint: config.token_endpoint.clone(),
        scopes: config.scopes.clone(),
        name: config.name.clone(),
        public_url: config.public_url.clone(),
        outbound: Outbound::new(outbound).because("can't set up calls of the identity provider")?,
    })
}

fn read(path: &Path) -> Result<String> {
    let text = read_private(path, "the client secret")?;
    match text.trim() {
        "" => Err(Failure::usage(format!("{} is empty", path.display()))
            .or_else("write the client secret of your identity provider into it")),
        secret => Ok(secret.to_owned()),
    }
}
