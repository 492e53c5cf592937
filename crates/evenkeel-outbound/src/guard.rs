//! Keeping calls away from the inside of the network: the cloud's metadata service, the
//! database's admin port and the neighbours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::IpNet;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::LookUp;

/// A call to an address that jobs may not reach. The URL itself names the address, so the text may.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{host} is an address which is not public; --allow-network can open such a network")]
pub struct Refused {
    host: String,
}

/// A name without an address that jobs may call. The text is the same whether the name does not exist
/// or lies inside: else whoever can create a job could ask for the names and addresses of the
/// network, one by one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{host} has no address that jobs may call: it does not exist, or it is at one which is not public; \
     --allow-network can open such a network"
)]
pub struct NoAddress {
    host: String,
}

/// Decides which addresses may be called. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Guard(Arc<[IpNet]>);

impl Guard {
    /// One that lets through public addresses and these networks.
    pub fn new(allow_networks: Vec<IpNet>) -> Self {
        Self(allow_networks.into())
    }

    /// Judges a URL whose host is an address: such a one is never looked up. The URL's parser has
    /// already turned decimal, octal and hexadecimal forms into the usual one, and the connector
    /// reads it as it is read here.
    pub fn judge_literal(&self, url: &Url) -> Result<(), Refused> {
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

/// A look-up whose answers are judged before anybody sees them.
pub(crate) struct Guarded {
    guard: Guard,
    look_up: Arc<dyn LookUp>,
}

impl Guarded {
    pub(crate) fn new(guard: Guard, look_up: Arc<dyn LookUp>) -> Self {
        Self { guard, look_up }
    }
}

impl Resolve for Guarded {
    /// The addresses that were judged are the ones connected to, so a name can't change its mind
    /// in between. One bad address refuses them all: a name with both is up to no good.
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.guard.clone();
        let found = self.look_up.look_up(name.as_str());
        Box::pin(async move {
            let host = name.as_str();
            let no_address = || NoAddress { host: host.into() };
            let mut addresses = found.await.map_err(|error| {
                tracing::debug!(host, error = &error as &dyn std::error::Error, "not looked up");
                no_address()
            })?;
            for address in &mut addresses {
                if !guard.allows(address.ip()) {
                    // For the operator alone.
                    tracing::info!(host, address = %address.ip(), "a job may not call this address");
                    return Err(no_address().into());
                }
                // The port is the URL's; any other would be taken for one of the look-up's own.
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

/// What the IANA registry of special addresses calls globally reachable, and not a cloud's inside.
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
        // NAT64: the address behind the translator is the one that counts.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false, // Teredo, documentation
        [0x2002, ..] => false,                                              // 6to4 hides any IPv4
        [0x3fff, second, ..] if second < 0x1000 => false,                   // documentation
        // ISATAP: an IPv4 of the inside, whatever the network before it.
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => false,
        // Global unicast is 2000::/3; loopback, mapped, link-local, ULA and multicast lie outside.
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
    fn inner_addresses_are_refused() {
        let guard = Guard::new(Vec::new());
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.0.9",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.9.9",
            "198.51.100.7",
            "203.0.113.5",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "2606:4700::5efe:10.0.0.1",
            "2606:4700::200:5efe:a00:1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!judge(&guard, address), "{address}");
        }
    }

    #[test]
    fn public_addresses_are_allowed() {
        let guard = Guard::new(Vec::new());
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "100.128.0.1",
            "168.63.129.17",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(judge(&guard, address), "{address}");
        }
    }

    #[test]
    fn an_allowed_network_is_open_in_every_form_of_its_addresses() {
        let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
        assert!(judge(&guard, "127.0.0.1") && judge(&guard, "::ffff:127.0.0.1"));
        assert!(!judge(&guard, "::1") && !judge(&guard, "10.0.0.1"));
    }

    #[test]
    fn addresses_in_odd_spellings_are_seen_through() {
        let guard = Guard::new(Vec::new());
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://127.0.0.1./",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://１２７.0.0.1/",
            "http://0/",
        ] {
            assert!(guard.judge_literal(&url.parse().unwrap()).is_err(), "{url}");
        }
        assert!(guard.judge_literal(&"http://example.com/".parse().unwrap()).is_ok());
    }
}
