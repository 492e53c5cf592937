//! Reads server-sent event streams.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

/// A server-sent event stream that a test reads.
pub struct Stream {
    body: Body,
    text: String,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    pub event: String,
    pub id: Option<String>,
    pub data: Value,
    pub comment: String,
}

impl Stream {
    pub async fn open(router: &Router, request: Request<Body>) -> Self {
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        Self { body: response.into_body(), text: String::new() }
    }

    /// Returns the next event or comment; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some((text, rest)) = self.text.split_once("\n\n") {
                let message = read(text);
                self.text = rest.to_owned();
                return Some(message);
            }
            let frame = tokio::time::timeout(Duration::from_secs(7200), self.body.frame());
            let frame = frame.await.expect("the stream goes on")?;
            let data = frame.unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    /// Returns the next event that is not a comment.
    pub async fn event(&mut self) -> Message {
        loop {
            let message = self.next().await.expect("the stream goes on");
            if message.data != Value::Null {
                return message;
            }
        }
    }
}

fn read(text: &str) -> Message {
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    };
    let data = field("data:").map(|data| serde_json::from_str(&data).unwrap());
    Message {
        event: field("event:").unwrap_or_default(),
        id: field("id:"),
        data: data.unwrap_or_default(),
        comment: field(":").unwrap_or_default(),
    }
}
