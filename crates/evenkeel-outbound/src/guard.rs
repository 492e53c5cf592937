//! Decides which IP addresses jobs may call, so that no job reaches the private network, such as
//! the cloud's metadata service or the admin port of a database.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::IpNet;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::Resolver;

/// The error for a URL whose host is an address that jobs may not call.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{host} is an address which is not public; --allow-network can open such a network")]
pub struct Refused {
    host: String,
}

/// The error for a host name without an address that jobs may call. The error message is the same
/// for host names that do not exist and for private addresses. With different error messages, a
/// client that can create jobs could find out which host names of the private network exist.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{host} has no address that jobs may call: it does not exist, or it is at one which is not public; \
     --allow-network can open such a network"
)]
pub struct NoAddress {
    host: String,
}

/// The rule that decides which IP addresses jobs may call.
#[derive(Clone, Debug)]
pub struct Guard(Arc<[IpNet]>);

impl Guard {
    /// Returns a guard that allows public IP addresses and `allow_networks`.
    pub fn new(allow_networks: Vec<IpNet>) -> Self {
        Self(allow_networks.into())
    }

    /// Checks a URL whose host is an IP address, because the resolver never sees such a host. The
    /// URL parser has already normalised decimal, octal and hexadecimal IP addresses. The HTTP
    /// client connects with the result of the same parser.
    pub fn check_literal(&self, url: &Url) -> Result<(), Refused> {
        let host = url.host_str().unwrap_or_default();
        match host.trim_matches(['[', ']']).parse() {
            Ok(address) if !self.allows(address) => Err(Refused { host: host.into() }),
            _ => Ok(()),
        }
    }

    fn allows(&self, address: IpAddr) -> bool {
        let meant = address.to_canonical();
        let allowed = |ip: &IpAddr| self.0.iter().any(|network| network.contains(ip));
        allowed(&address) || allowed(&meant) || is_public(meant)
    }
}

/// A resolver that checks all IP addresses of a host name before HTTP calls use them.
pub(crate) struct GuardedResolver {
    guard: Guard,
    resolver: Arc<dyn Resolver>,
}

impl GuardedResolver {
    pub(crate) fn new(guard: Guard, resolver: Arc<dyn Resolver>) -> Self {
        Self { guard, resolver }
    }
}

impl Resolve for GuardedResolver {
    /// Resolves a host name and checks its IP addresses. The HTTP client connects only to the
    /// checked addresses, so a later change in DNS has no effect. A host name with one forbidden
    /// address is refused, because such a name is likely an attack.
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.guard.clone();
        let found = self.resolver.resolve(name.as_str());
        Box::pin(async move {
            let host = name.as_str();
            let no_address = || NoAddress { host: host.into() };
            let mut addresses = found.await.map_err(|error| {
                tracing::debug!(
                    host,
                    error = &error as &dyn std::error::Error,
                    "host name could not be resolved"
                );
                no_address()
            })?;
            for address in &mut addresses {
                if !guard.allows(address.ip()) {
                    // Only the log contains the refused address, because only operators may see it.
                    tracing::info!(
                        host,
                        address = %address.ip(),
                        "blocked a request of a job, because its address is not public and --allow-network does not allow it"
                    );
                    return Err(no_address().into());
                }
                // The HTTP client would prefer a port from the resolver to the port in the URL.
                address.set_port(0);
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

/// True for IPv4 addresses that the IANA registry lists as globally reachable, except addresses
/// that cloud platforms use internally.
fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, d] = ip.octets();
    let special = match a {
        0 | 10 | 127 => true,
        100 => (64..128).contains(&b), // carrier-grade NAT, and a cloud's metadata service
        168 => (b, c, d) == (63, 129, 16), // a cloud's host agent, in public address space
        169 => b == 254,               // link-local, with most metadata services
        172 => (16..32).contains(&b),
        192 => matches!((b, c), (168, _) | (0, 0 | 2) | (88, 99)),
        198 => matches!((b, c), (18 | 19, _) | (51, 100)),
        203 => (b, c) == (0, 113),
        224.. => true, // multicast, reserved, broadcast
        _ => false,
    };
    !special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        // A NAT64 address is checked by the IPv4 address that it embeds.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false, // Teredo, documentation
        [0x2002, ..] => false,                                              // 6to4 hides any IPv4
        [0x3fff, second, ..] if second < 0x1000 => false,                   // documentation
        // ISATAP addresses are refused, because they can embed private IPv4 addresses.
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => false,
        // Loopback, mapped, link-local, ULA and multicast addresses are outside 2000::/3.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(guard: &Guard, address: &str) -> bool {
        guard.allows(address.parse().unwrap())
    }

    #[test]
    fn private_addresses_are_refused() {
        let guard = Guard::new(Vec::new());
        let addresses = "0.0.0.0 10.1.2.3 100.64.0.1 100.100.100.200 127.0.0.1 127.255.0.9 168.63.129.16 \
             169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 \
             192.168.1.1 198.18.0.1 198.19.9.9 198.51.100.7 203.0.113.5 224.0.0.1 240.0.0.1 \
             255.255.255.255 :: ::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::127.0.0.1 \
             64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1:: 3fff::1 \
             2606:4700::5efe:10.0.0.1 2606:4700::200:5efe:a00:1 5f00::1 fc00::1 fd00:ec2::254 \
             fe80::1 fec0::1 ff02::1";
        for address in addresses.split(' ') {
            assert!(!judge(&guard, address), "{address}");
        }
    }

    #[test]
    fn public_addresses_are_allowed() {
        let guard = Guard::new(Vec::new());
        let addresses = "1.1.1.1 8.8.8.8 100.63.0.1 100.128.0.1 168.63.129.17 172.15.0.1 172.32.0.1 192.0.1.1 \
             198.17.0.1 223.255.255.255 2606:4700::1111 2001:4860:4860::8888 2a00:1450::1 \
             ::ffff:8.8.8.8 64:ff9b::808:808";
        for address in addresses.split(' ') {
            assert!(judge(&guard, address), "{address}");
        }
    }

    #[test]
    fn allowed_network_covers_every_form_of_its_addresses() {
        let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
        assert!(judge(&guard, "127.0.0.1") && judge(&guard, "::ffff:127.0.0.1"));
        assert!(!judge(&guard, "::1") && !judge(&guard, "10.0.0.1"));
    }

    #[test]
    fn unusual_spellings_of_addresses_are_recognised() {
        let guard = Guard::new(Vec::new());
        for url in [
            "http://127.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/",
            "http://127.1/", "http://127.0.0.1./", "http://[::1]/", "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/", "http://１２７.0.0.1/", "http://0/",
        ] {
            assert!(guard.check_literal(&url.parse().unwrap()).is_err(), "{url}");
        }
        assert!(guard.check_literal(&"http://example.com/".parse().unwrap()).is_ok());
    }
}
