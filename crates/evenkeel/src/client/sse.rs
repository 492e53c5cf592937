//! Reads server-sent events.

use std::collections::VecDeque;
use std::time::Duration;

/// An event stream without data for this time is broken, because the server sends a comment every
/// 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// Maximum number of bytes of a line, and of the data of an event.
const LINE_MAX: usize = 4 * 1024 * 1024;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Message {
    pub event: String,
    pub data: String,
    /// Position of the message in the event stream. A message without data only reports this
    /// position.
    pub id: Option<String>,
}

pub struct Stream {
    response: reqwest::Response,
    reader: Reader,
    ready: VecDeque<Message>,
}

impl Stream {
    pub(super) fn new(response: reqwest::Response) -> Self {
        Self { response, reader: Reader::default(), ready: VecDeque::new() }
    }

    /// Returns the next event; `None` when the stream has ended, is broken, or has sent nothing for
    /// 45 s.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let chunk = tokio::time::timeout(SILENCE_MAX, self.response.chunk()).await;
            let Ok(Ok(Some(bytes))) = chunk else { return None };
            if !self.reader.read(&bytes, &mut self.ready) {
                return None;
            }
        }
    }
}

/// Assembles events from chunks.
#[derive(Debug, Default)]
struct Reader {
    line: Vec<u8>,
    message: Message,
    has_anything: bool,
}

impl Reader {
    /// Parses received bytes. Returns false if a line or event exceeds `LINE_MAX`.
    fn read(&mut self, bytes: &[u8], ready: &mut VecDeque<Message>) -> bool {
        for byte in bytes {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                let line = String::from_utf8_lossy(&line);
                self.take_line(line.strip_suffix('\r').unwrap_or(&line), ready);
            } else {
                self.line.push(*byte);
            }
        }
        self.line.len() <= LINE_MAX && self.message.data.len() <= LINE_MAX
    }

    fn take_line(&mut self, line: &str, ready: &mut VecDeque<Message>) {
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            if std::mem::take(&mut self.has_anything) {
                ready.push_back(message);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.message.event = value.into(),
            "id" => self.message.id = Some(value.into()),
            "data" => {
                if !self.message.data.is_empty() {
                    self.message.data.push('\n');
                }
                self.message.data.push_str(value);
            }
            // Comments and the field `retry` of the event stream are ignored.
            _ => return,
        }
        self.has_anything = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_assembled_from_chunks() {
        let text = ": listening\nretry: 2000\nid: 7\n\n: alive\n\nevent: run.ended\r\nid: 8\r\n\
                    data: {\"a\":\r\ndata: \u{e9}}\r\n\r\nevent: gap\n";
        let message = |event: &str, data: &str, id: &str| Message {
            event: event.into(),
            data: data.into(),
            id: Some(id.into()),
        };
        for size in 1..text.len() {
            let (mut reader, mut ready) = (Reader::default(), VecDeque::new());
            for piece in text.as_bytes().chunks(size) {
                assert!(reader.read(piece, &mut ready));
            }
            let expected = [message("", "", "7"), message("run.ended", "{\"a\":\n\u{e9}}", "8")];
            assert_eq!(ready, expected, "{size}");
        }
    }

    #[test]
    fn endless_line_is_rejected() {
        let (mut reader, mut ready) = (Reader::default(), VecDeque::new());
        assert!(!reader.read(&vec![b'x'; LINE_MAX + 1], &mut ready));
    }
}
