//! Test servers that no HTTP call of a test may reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Listens on one port of every IP address of the machine, and counts connections.
pub struct Trap {
    pub port: u16,
    addresses: Vec<IpAddr>,
    connections: Arc<AtomicUsize>,
}

impl Trap {
    pub async fn set() -> Self {
        let v4 = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = v4.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        tokio::spawn(count(v4, Arc::clone(&connections)));
        let mut addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
        if let Some(v6) = listen_v6(port) {
            tokio::spawn(count(v6, Arc::clone(&connections)));
            addresses.push(IpAddr::V6(Ipv6Addr::LOCALHOST));
        }
        Self { port, addresses, connections }
    }

    /// Returns how many connections the tested HTTP calls have made. `visitors` connects to the
    /// trap itself and waits until its own connections are counted. All connections that the tested
    /// calls made earlier are then counted as well.
    pub async fn visitors(&self) -> usize {
        let mut own = Vec::new();
        let mut others = 0;
        for address in &self.addresses {
            let before = self.connections.load(Ordering::SeqCst);
            own.push(TcpStream::connect((*address, self.port)).await.unwrap());
            let seen = async {
                while self.connections.load(Ordering::SeqCst) == before {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(20), seen).await.expect("the trap is dead");
            others = self.connections.load(Ordering::SeqCst) - own.len();
        }
        others
    }
}

/// Returns `None` without IPv6, or if `[::]` includes IPv4, where the port is already in use.
fn listen_v6(port: u16) -> Option<TcpListener> {
    let socket = TcpSocket::new_v6().ok()?;
    socket.bind(SocketAddr::from(([0_u16; 8], port))).ok()?;
    socket.listen(64).ok()
}

pub async fn count(listener: TcpListener, connections: Arc<AtomicUsize>) {
    while listener.accept().await.is_ok() {
        connections.fetch_add(1, Ordering::SeqCst);
    }
}
