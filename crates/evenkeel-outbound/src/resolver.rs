//! Resolves host names to addresses.

use std::fmt::Debug;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;

use tokio::sync::Semaphore;

/// The IP addresses of a host name. The port of each `SocketAddr` is ignored.
pub type ResolvedAddresses = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Resolves host names. The guard checks all resolved IP addresses, so a wrong resolver cannot
/// cause a call to a forbidden address.
pub trait Resolver: Debug + Send + Sync + 'static {
    /// Resolves `host`, which is always a host name and never an IP address.
    fn resolve(&self, host: &str) -> ResolvedAddresses;
}

/// The resolver of the operating system.
#[derive(Copy, Clone, Default, Debug)]
pub struct SystemResolver;

/// Limits concurrent DNS look-ups; further look-ups wait, at most for the connection timeout. Each
/// DNS look-up occupies a thread until the system's resolver answers, even if the caller has given
/// up.
static THREADS: Semaphore = Semaphore::const_new(64);

impl Resolver for SystemResolver {
    fn resolve(&self, host: &str) -> ResolvedAddresses {
        let host = host.to_owned();
        Box::pin(on_a_thread(&THREADS, move || Ok((host.as_str(), 0).to_socket_addrs()?.collect())))
    }
}

/// Runs `work` on a thread that may block. The permit of `threads` is returned when `work`
/// finishes, even if the caller has given up.
async fn on_a_thread<T: Send + 'static>(
    threads: &'static Semaphore,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let permit = threads.acquire().await.map_err(io::Error::other)?;
    let work = move || {
        let _permit = permit;
        work()
    };
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    static ONE: Semaphore = Semaphore::const_new(1);

    #[tokio::test]
    async fn abandoned_look_up_keeps_its_permit_until_it_ends() {
        let (started, starts) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let stuck = tokio::spawn(on_a_thread(&ONE, move || {
            started.send(()).map_err(io::Error::other)?;
            released.recv().map_err(io::Error::other)
        }));
        tokio::task::spawn_blocking(move || starts.recv()).await.unwrap().unwrap();
        stuck.abort();
        assert!(stuck.await.unwrap_err().is_cancelled());
        assert_eq!(ONE.available_permits(), 0);
        let next = tokio::spawn(on_a_thread(&ONE, || Ok(5)));
        release.send(()).unwrap();
        assert_eq!(next.await.unwrap().unwrap(), 5);
    }

    #[tokio::test]
    async fn system_resolver_knows_localhost() {
        let found = SystemResolver.resolve("localhost").await.unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback()) && !found.is_empty());
    }
}
