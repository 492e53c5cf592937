//! Ports and URLs of a PostgreSQL server.

use crate::Error;
use std::collections::hash_map::RandomState;
use std::fmt::Write;
use std::hash::BuildHasher;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

/// Name of PostgreSQL's superuser and of the first database.
pub const NAME: &str = "evenkeel";

/// Ports below the system's range of ephemeral ports. The port of a stopped PostgreSQL server is
/// therefore still free when the server restarts.
const PORTS: std::ops::Range<u16> = 15_000..30_000;

pub fn free_port() -> Result<u16, Error> {
    let width = u64::from(PORTS.end - PORTS.start);
    (0..100u32)
        .filter_map(|attempt| {
            let offset = RandomState::new().hash_one(attempt) % width;
            u16::try_from(offset).ok().map(|offset| PORTS.start + offset)
        })
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .ok_or(Error::NoPort)
}

/// Returns a URL for the Unix socket in `folder`, in a form that tokio-postgres and libpq accept.
pub fn socket_url(folder: &Path, port: u16, database: &str) -> String {
    let folder = encode(folder.as_os_str().as_encoded_bytes());
    format!("postgres://{NAME}@{folder}:{port}/{}", encode(database.as_bytes()))
}

pub fn tcp_url(port: u16, database: &str) -> String {
    format!("postgres://{NAME}@127.0.0.1:{port}/{}", encode(database.as_bytes()))
}

fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                text.push(char::from(*byte));
            }
            _ => write!(text, "%{byte:02X}").expect("writing to a String cannot fail"),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_url_escapes_the_folder() {
        assert_eq!(
            socket_url(Path::new("/tmp/evenkeel-pg-x"), 5433, "a b"),
            "postgres://evenkeel@%2Ftmp%2Fevenkeel-pg-x:5433/a%20b"
        );
    }

    #[test]
    fn free_port_is_below_the_ephemeral_range() {
        assert!(PORTS.contains(&free_port().unwrap()));
    }
}
