//! Servers that nobody may reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Listens on every address of the machine, on one port, and counts who comes.
pub struct Trap {
    pub port: u16,
    doors: Vec<IpAddr>,
    connections: Arc<AtomicUsize>,
}

impl Trap {
    pub async fn set() -> Self {
        let v4 = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = v4.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        tokio::spawn(count(v4, Arc::clone(&connections)));
        let mut doors = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
        // A machine without IPv6 has nothing there to protect.
        if let Some(v6) = listen_v6(port) {
            tokio::spawn(count(v6, Arc::clone(&connections)));
            doors.push(IpAddr::V6(Ipv6Addr::LOCALHOST));
        }
        Self { port, doors, connections }
    }

    /// How many have come. It comes to every door itself and waits until that was seen: whoever
    /// came before was seen before.
    pub async fn visitors(&self) -> usize {
        let mut own = Vec::new();
        let mut others = 0;
        for door in &self.doors {
            let before = self.connections.load(Ordering::SeqCst);
            own.push(TcpStream::connect((*door, self.port)).await.unwrap());
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

/// On a machine where `[::]` takes IPv4 too, the port is taken already, and that is as good.
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
