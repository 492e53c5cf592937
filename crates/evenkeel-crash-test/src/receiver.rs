//! The HTTP server that HTTP jobs call. The receiver records every HTTP call, and refuses calls
//! with an old fence.
//!
//! A server that was suspended in the middle of an HTTP call sends the rest of the call when it
//! continues. Only the receiver can refuse an HTTP call that arrives late. A refused HTTP call does
//! not count as a start of an attempt.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::clock::{Moment, pass};
use crate::record::{Kind, Record};
use crate::timestamp;

/// Accepts HTTP calls until the process ends.
#[derive(Clone, Debug)]
pub struct Receiver {
    pub address: SocketAddr,
    /// Duration of each HTTP call, or `None` for random durations.
    takes: Option<Duration>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    records: Vec<Record>,
    fences: HashMap<(String, u32), u32>,
    /// Descriptions of HTTP calls with missing or wrong headers.
    faults: Vec<String>,
}

impl Receiver {
    pub fn start(takes: Option<Duration>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("the receiver cannot listen")?;
        let receiver = Self { address: listener.local_addr()?, takes, seen: Arc::default() };
        let taking = receiver.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let receiver = taking.clone();
                thread::spawn(move || receiver.serve(stream));
            }
        });
        Ok(receiver)
    }

    /// Returns the records of the HTTP calls, and descriptions of the faulty calls, received so
    /// far.
    pub fn received(&self) -> (Vec<Record>, Vec<String>) {
        let seen = self.lock();
        (seen.records.clone(), seen.faults.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers the HTTP calls of one connection until the client closes the connection.
    fn serve(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        while let Ok(Some(head)) = read_call(&mut stream) {
            let status = match read_record(&head) {
                Ok(record) => self.handle(record),
                Err(error) => {
                    self.lock().faults.push(format!("a call was not readable: {error:#}"));
                    "400 Bad Request"
                }
            };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            if stream.get_mut().write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn handle(&self, start: Record) -> &'static str {
        let varied = || Duration::from_millis(40 + start.at.mono_ns / 1000 % 80);
        let took = self.takes.unwrap_or_else(varied);
        {
            let mut seen = self.lock();
            let highest = seen.fences.entry((start.run.clone(), start.attempt)).or_default();
            if start.fence < *highest {
                seen.records.push(Record { kind: Kind::Refused, ..start });
                return "409 Conflict";
            }
            *highest = start.fence;
            seen.records.push(start.clone());
        }
        pass(took);
        self.lock().records.push(Record { kind: Kind::End, at: Moment::now(), ..start });
        "200 OK"
    }
}

/// Reads the request line and headers of an HTTP call. Returns `None` at the end of the connection.
fn read_call(stream: &mut BufReader<TcpStream>) -> Result<Option<Vec<String>>> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line.trim_end().is_empty() {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    let length = header(&head, "content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok(Some(head))
}

fn read_record(head: &[String]) -> Result<Record> {
    let at = Moment::now();
    let path = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    let required = |name| header(head, name).with_context(|| format!("there is no {name}"));
    let run = required("x-evenkeel-run-id")?;
    ensure!(required("idempotency-key")? == run, "the idempotency key is not the run's id");
    let scheduled = required("x-evenkeel-scheduled-at")?;
    Ok(Record {
        kind: Kind::Start,
        job: path.trim_start_matches('/').to_owned(),
        run: run.to_owned(),
        attempt: required("x-evenkeel-attempt")?.parse()?,
        fence: required("x-evenkeel-fence")?.parse()?,
        scheduled_us: timestamp::parse(scheduled).context("the scheduled time is not a time")?,
        node_pid: 0,
        at,
    })
}

fn header<'a>(head: &'a [String], name: &str) -> Option<&'a str> {
    let values = head.iter().filter_map(|line| line.split_once(':'));
    let mut found = values.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(stream: &mut TcpStream, fence: u32) -> String {
        write!(
            stream,
            "POST /job HTTP/1.1\r\nIdempotency-Key: r\r\nX-Evenkeel-Run-Id: r\r\n\
             X-Evenkeel-Attempt: 0\r\nX-Evenkeel-Fence: {fence}\r\n\
             X-Evenkeel-Scheduled-At: 2026-01-01T00:00:00.000000Z\r\nContent-Length: 2\r\n\r\n{{}}"
        )
        .unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        let mut rest = [0; 256];
        let _ = stream.read(&mut rest).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn call_is_recorded_and_a_call_with_an_old_fence_is_refused() {
        let receiver = Receiver::start(None).unwrap();
        let mut stream = TcpStream::connect(receiver.address).unwrap();
        assert!(call(&mut stream, 2).ends_with("200"));
        assert!(call(&mut stream, 1).ends_with("409"));
        let (records, faults) = receiver.received();
        let kinds: Vec<Kind> = records.iter().map(|record| record.kind).collect();
        assert_eq!(kinds, [Kind::Start, Kind::End, Kind::Refused]);
        assert_eq!(records[0].job, "job");
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn call_without_headers_is_a_fault() {
        let receiver = Receiver::start(None).unwrap();
        let mut stream = TcpStream::connect(receiver.address).unwrap();
        write!(stream, "POST /job HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(receiver.received().1.len(), 1);
    }
}
