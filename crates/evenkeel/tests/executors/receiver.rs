//! A small web server with responses chosen by a test, one thread per connection.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

pub enum Reply {
    /// A response with a status, headers and a body. Each header ends with `\r\n`.
    Now(u16, &'static str, String),
    /// Sends no response. The connection stays open until the client closes it.
    Never,
}

impl Reply {
    pub fn ok(body: impl Into<String>) -> Self {
        Self::Now(200, "", body.into())
    }

    pub fn html(body: impl Into<String>) -> Self {
        Self::Now(200, "content-type: text/html; charset=utf-8\r\n", body.into())
    }
}

/// A web server that records the requests that it receives.
pub struct Receiver {
    pub url: String,
    got: Arc<Mutex<Vec<ReceivedRequest>>>,
    disconnected: Arc<Mutex<usize>>,
}

impl Receiver {
    /// Starts a server that responds with `reply(request, index)`; the first index is 0.
    pub fn start(reply: impl Fn(&ReceivedRequest, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (got, disconnected) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let (all, left, reply) = (Arc::clone(&got), Arc::clone(&disconnected), Arc::new(reply));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (all, left, reply) = (Arc::clone(&all), Arc::clone(&left), Arc::clone(&reply));
                std::thread::spawn(move || serve(stream, &all, &left, &*reply));
            }
        });
        Self { url, got, disconnected }
    }

    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.got.lock().unwrap().clone()
    }

    /// Number of clients that disconnected before they received a response.
    pub fn disconnected(&self) -> usize {
        *self.disconnected.lock().unwrap()
    }
}

fn serve(
    stream: TcpStream,
    all: &Mutex<Vec<ReceivedRequest>>,
    disconnected: &Mutex<usize>,
    reply: &(impl Fn(&ReceivedRequest, usize) -> Reply + ?Sized),
) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(got) = read(&mut reader) {
        let number = {
            let mut all = all.lock().unwrap();
            all.push(got.clone());
            all.len() - 1
        };
        match reply(&got, number) {
            Reply::Now(status, headers, body) => {
                let length = body.len();
                let body = if got.method == "HEAD" { "" } else { body.as_str() };
                let head =
                    format!("HTTP/1.1 {status} Reply\r\ncontent-length: {length}\r\n{headers}\r\n");
                if writer.write_all(format!("{head}{body}").as_bytes()).is_err() {
                    return;
                }
            }
            Reply::Never => {
                let _ = reader.read(&mut [0; 1]);
                *disconnected.lock().unwrap() += 1;
                return;
            }
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<ReceivedRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut parts = line.split(' ').map(String::from);
    let (method, path) = (parts.next()?, parts.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(ReceivedRequest { method, path, headers, body: String::from_utf8(body).ok()? })
}
