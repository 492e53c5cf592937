//! Where the addresses of a name come from.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

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

impl LookUp for SystemLookUp {
    fn look_up(&self, host: &str) -> Found {
        let host = host.to_owned();
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.collect()) })
    }
}
