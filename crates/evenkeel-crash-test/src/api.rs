//! A minimal HTTP client for the API of the servers, written without an HTTP library.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub struct Api {
    /// Host and port, such as `127.0.0.1:8060`.
    pub address: String,
    pub token: String,
}

impl Api {
    pub fn get(&self, path: &str) -> Result<Value> {
        self.send("GET", path, "")
    }

    /// Reads an API list page by page, and returns all its items.
    pub fn list(&self, path: &str, field: &str) -> Result<Vec<Value>> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let mut page = self.get(&format!("{path}?limit=1000{cursor}"))?;
            let Value::Array(items) = page[field].take() else { bail!("{path} has no {field}") };
            all.extend(items);
            match &page["next_cursor"] {
                Value::String(next) => cursor = format!("&cursor={next}"),
                _ => return Ok(all),
            }
        }
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send("POST", path, &body.to_string())
    }

    fn send(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let what = || format!("{method} {path}");
        let (status, answer) = self.exchange(method, path, body).with_context(what)?;
        let is_good = (200..300).contains(&status);
        ensure!(is_good, "{method} {path} was answered with {status}: {answer}");
        serde_json::from_str(&answer).with_context(what)
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (address, token, length) = (&self.address, &self.token, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) =
            answer.split_once("\r\n\r\n").context("the answer has no end of its head")?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok((status.context("the answer has no status")?, body.to_owned()))
    }
}
