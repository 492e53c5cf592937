//! Where the addresses of a name come from.

use std::fmt::Debug;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;

use tokio::sync::Semaphore;

/// The addresses of a name, when they are known. Their ports mean nothing.
pub type Found = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Finds the addresses of a name. Whatever it finds is judged by the guard before anything is
/// called, so one that lies can do no harm.
pub trait LookUp: Debug + Send + Sync + 'static {
    /// The addresses of `host`, which is never an address itself.
    fn look_up(&self, host: &str) -> Found;
}

/// Asks the machine, as every program does.
#[derive(Copy, Clone, Default, Debug)]
pub struct SystemLookUp;

/// So many names are looked up at once; others wait, which counts as connecting. Each takes a thread
/// for as long as the machine's resolver likes, whether anybody still waits for it or not, and there
/// are other uses for those.
static THREADS: Semaphore = Semaphore::const_new(64);

impl LookUp for SystemLookUp {
    fn look_up(&self, host: &str) -> Found {
        let host = host.to_owned();
        Box::pin(on_a_thread(&THREADS, move || Ok((host.as_str(), 0).to_socket_addrs()?.collect())))
    }
}

/// Does `work` where it may block, as soon as a thread may be taken. The permit stays with the work,
/// not with whoever waits for it.
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
    async fn a_look_up_that_nobody_waits_for_still_counts() {
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
    async fn the_machine_knows_its_own_name() {
        let found = SystemLookUp.look_up("localhost").await.unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback()) && !found.is_empty());
    }
}
