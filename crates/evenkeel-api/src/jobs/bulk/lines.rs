//! Splits a streamed request body into lines, and the lines into batches.

use std::ops::Range;
use std::time::Duration;

use axum::body::{BodyDataStream, Bytes};
use evenkeel_commands::BULK_BATCH;
use futures::StreamExt as _;

use crate::body::BODY_BYTES_MAX;
use crate::memory::{Held, Memory};
use crate::weight::Weight;

/// Maximum bytes of a batch, so that a batch with long lines does not use too much memory.
pub(super) const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum estimated memory of a parsed batch in bytes, not counting its last line.
pub(super) const BATCH_WEIGHT_MAX: usize = 32 * 1024 * 1024;
/// Maximum time that a stream waits for other requests to release memory.
const MEMORY_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Line {
    /// Line number in the request body, counted from 1.
    pub number: u64,
    /// Position of the line within the batch's bytes; `None` if the line was too long.
    pub place: Option<Range<usize>>,
}

/// One batch: consecutive lines of the request body. The same body is always split into the same
/// batches.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub bytes: Vec<u8>,
    pub lines: Vec<Line>,
    /// Estimated memory of the batch's lines once parsed, in bytes.
    weight: usize,
    /// Memory reservation of the batch, released when the batch is dropped.
    held: Option<Held>,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.lines.len() >= BULK_BATCH
            || self.bytes.len() >= BATCH_BYTES_MAX
            || self.weight >= BATCH_WEIGHT_MAX
    }
}

/// Maximum time that a stream waits for new bytes from the client before it is closed.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(30);

/// Why a request body stopped before its end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Broken {
    /// The connection was lost, so no response can be sent.
    Off,
    /// No bytes arrived in time; `line` and all lines after it were not handled.
    Idle {
        /// First line of the incomplete batch.
        line: u64,
    },
    /// Other requests use all the memory; `line` and all lines after it were not handled.
    Busy {
        /// First line of the incomplete batch.
        line: u64,
    },
}

pub(super) struct Lines {
    body: BodyDataStream,
    memory: Memory,
    /// Received bytes that are not yet split into lines.
    rest: Bytes,
    number: u64,
}

impl Lines {
    pub(super) fn new(body: axum::body::Body, memory: Memory) -> Self {
        Self { body: body.into_data_stream(), memory, rest: Bytes::new(), number: 0 }
    }

    /// Returns the next batch; an empty batch marks the end of the request body. Blank lines count
    /// for the line numbers, but are not part of a batch.
    pub(super) async fn batch(&mut self) -> Result<Batch, Broken> {
        let mut batch = Batch::default();
        let mut held = self.memory.hold();
        let first = self.number + 1;
        let mut begin = 0;
        let mut too_long = false;
        // A batch always ends at the end of a line, so the split into batches does not depend on
        // network packets.
        while !batch.is_full() || begin < batch.bytes.len() || too_long {
            if self.rest.is_empty() {
                let piece = tokio::time::timeout(IDLE_MAX, self.body.next()).await;
                match piece.map_err(|_| Broken::Idle { line: first })? {
                    Some(Ok(bytes)) => self.rest = bytes,
                    Some(Err(_)) => return Err(Broken::Off),
                    None => {
                        // The last line of the request body needs no newline.
                        self.end_line(&mut batch, &mut begin, &mut too_long);
                        break;
                    }
                }
                continue;
            }
            let end = self.rest.iter().position(|byte| *byte == b'\n');
            let piece = self.rest.split_to(end.unwrap_or(self.rest.len()));
            if batch.bytes.len() - begin + piece.len() > BODY_BYTES_MAX {
                too_long = true;
                batch.bytes.truncate(begin);
            }
            if !too_long {
                batch.bytes.extend_from_slice(&piece);
            }
            if end.is_some() {
                drop(self.rest.split_to(1));
                self.end_line(&mut batch, &mut begin, &mut too_long);
            }
            let bytes = batch.bytes.len() + batch.weight;
            let reserved = held.wait_to_grow_to(bytes, MEMORY_PATIENCE).await;
            reserved.map_err(|_| Broken::Busy { line: first })?;
        }
        batch.held = Some(held);
        Ok(batch)
    }

    fn end_line(&mut self, batch: &mut Batch, begin: &mut usize, too_long: &mut bool) {
        self.number += 1;
        let place = *begin..batch.bytes.len();
        let is_blank = batch.bytes[place.clone()].trim_ascii().is_empty();
        if *too_long {
            batch.lines.push(Line { number: self.number, place: None });
        } else if is_blank {
            batch.bytes.truncate(*begin);
        } else {
            batch.weight += Weight::of(&batch.bytes[place.clone()]).reserved();
            batch.lines.push(Line { number: self.number, place: Some(place) });
        }
        *begin = batch.bytes.len();
        *too_long = false;
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures::stream;

    use super::*;

    /// Splits a request body that arrives in `pieces`; returns the line numbers and texts of each
    /// batch.
    async fn cut(pieces: Vec<Vec<u8>>) -> Vec<Vec<(u64, Option<Vec<u8>>)>> {
        let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
        let memory = Memory::new(256 * 1024 * 1024);
        let mut lines = Lines::new(Body::from_stream(stream::iter(pieces)), memory);
        let mut batches = Vec::new();
        loop {
            let batch = lines.batch().await.unwrap();
            if batch.lines.is_empty() {
                return batches;
            }
            let text = |line: &Line| line.place.clone().map(|place| batch.bytes[place].to_vec());
            batches.push(batch.lines.iter().map(|line| (line.number, text(line))).collect());
        }
    }

    #[tokio::test]
    async fn lines_do_not_depend_on_how_the_body_arrives() {
        let body = b"{\"a\": 1}\n\n  \r\n{\"b\": 2}\r\nlast";
        let expected = vec![vec![
            (1, Some(b"{\"a\": 1}".to_vec())),
            (4, Some(b"{\"b\": 2}\r".to_vec())),
            (5, Some(b"last".to_vec())),
        ]];
        assert_eq!(cut(vec![body.to_vec()]).await, expected);
        assert_eq!(cut(body.iter().map(|byte| vec![*byte]).collect()).await, expected);
    }

    #[tokio::test]
    async fn only_the_line_that_is_too_long_is_left_out() {
        let mut body = b"1\n".to_vec();
        body.extend(std::iter::repeat_n(b'x', BODY_BYTES_MAX + 1));
        body.extend(b"\n3\n");
        let expected = vec![vec![(1, Some(b"1".to_vec())), (2, None), (3, Some(b"3".to_vec()))]];
        for size in [usize::MAX, 65_536] {
            let pieces = body.chunks(size.min(body.len())).map(<[u8]>::to_vec).collect();
            assert_eq!(cut(pieces).await, expected);
        }
    }

    #[tokio::test]
    async fn batches_do_not_depend_on_how_the_body_arrives() {
        let body: Vec<u8> = (0..6250).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let whole = cut(vec![body.clone()]).await;
        assert_eq!(whole.iter().map(Vec::len).collect::<Vec<_>>(), [2500, 2500, 1250]);
        assert_eq!(cut(body.chunks(777).map(<[u8]>::to_vec).collect()).await, whole);
    }

    #[tokio::test]
    async fn batch_limit_in_bytes_splits_no_line() {
        // The body has lines of many lengths, including a blank line and a line that is too long;
        // it fills three batches.
        let mut body = Vec::new();
        for n in 0..60 {
            body.extend(format!("{n:02}").bytes());
            body.extend(std::iter::repeat_n(b'x', 250_000 + n * 6_007));
            body.push(b'\n');
            let more = if n == 18 { BODY_BYTES_MAX / 2 } else { 0 };
            body.extend(std::iter::repeat_n(b' ', more));
            let more = if n == 40 { BODY_BYTES_MAX + 9 } else { 0 };
            body.extend(std::iter::repeat_n(b'y', more));
            body.extend(b"\n");
        }
        let whole = cut(vec![body.clone()]).await;
        assert_eq!(whole.len(), 3);
        let lines: Vec<_> = whole.iter().flatten().collect();
        assert_eq!(lines.len(), 61);
        let are_whole = lines.iter().all(|(number, text)| {
            text.as_ref()
                .is_none_or(|text| text.starts_with(format!("{:02}", number / 2).as_bytes()))
        });
        assert!(are_whole);
        for size in [777, 65_537, 1_000_003] {
            let pieces = body.chunks(size).map(<[u8]>::to_vec).collect();
            // `assert_eq!` would print megabytes on failure.
            assert!(cut(pieces).await == whole, "in pieces of {size}");
        }
    }

    #[tokio::test]
    async fn lost_connection_yields_no_partial_batch() {
        let pieces = [Ok(b"1\n2\n".to_vec()), Err(std::io::Error::other("gone"))];
        let body = Body::from_stream(stream::iter(pieces));
        let mut lines = Lines::new(body, Memory::new(1024 * 1024));
        assert_eq!(lines.batch().await.unwrap_err(), Broken::Off);
    }

    #[tokio::test]
    async fn batch_ends_at_its_memory_limit() {
        let line = format!("[{}0]\n", "{\"\":0},".repeat(20_000));
        let whole = cut(vec![line.repeat(5).into_bytes()]).await;
        assert_eq!(whole.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn stream_ends_if_other_requests_use_all_memory() {
        let memory = Memory::new(4 * 1024 * 1024);
        let mut others = memory.hold();
        others.grow_to(3 * 1024 * 1024).unwrap();
        let line = format!("\"{}\"\n", "x".repeat(600_000));
        let mut lines = Lines::new(Body::from(line.repeat(5)), memory.clone());
        assert_eq!(lines.batch().await.unwrap_err(), Broken::Busy { line: 1 });
        drop(others);
        let mut lines = Lines::new(Body::from(line), memory.clone());
        let batch = lines.batch().await.unwrap();
        memory.hold().grow_to(2_500_000).unwrap_err();
        drop(batch);
        memory.hold().grow_to(2_500_000).unwrap();
    }
}
