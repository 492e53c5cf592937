//! A test resolver that gives wrong and changing answers.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel_outbound::{ResolvedAddresses, Resolver};

/// A test resolver that returns a different address list on each call, and counts the calls.
#[derive(Debug, Default)]
pub struct LyingResolver {
    pub answers: HashMap<String, Vec<Vec<IpAddr>>>,
    pub asked: AtomicUsize,
}

impl Resolver for LyingResolver {
    fn resolve(&self, host: &str) -> ResolvedAddresses {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers.get(host).map(|lists| lists[turn % lists.len()].clone());
        Box::pin(async move {
            let addresses = answer.ok_or(std::io::ErrorKind::NotFound)?;
            // The HTTP call must ignore the port from the resolver.
            Ok(addresses.into_iter().map(|ip| SocketAddr::new(ip, 9)).collect())
        })
    }
}
