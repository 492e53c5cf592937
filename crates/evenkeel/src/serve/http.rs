//! The HTTP server, with limits for connections and a graceful shutdown.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use evenkeel_api::ClientAddress;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, STRICT_TRANSPORT_SECURITY};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::ServiceExt as _;

use super::tls::Tls;

/// Maximum number of open connections. Further clients wait until an open connection is closed.
const CONNECTIONS_MAX: usize = 4096;

/// The usual `header_time` of [`serve`].
pub const HEADER_TIME: Duration = Duration::from_secs(30);

/// `Strict-Transport-Security` for one year.
const STRICT_TRANSPORT_SECURITY_VALUE: &str = "max-age=31536000";

/// Time limit for running requests to finish after a stop signal.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Serves requests until `stop`, then waits for running requests to finish.
///
/// Each request uses the router that `current` contains when the request arrives. `header_time` is
/// the time limit for request headers and for idle connections.
pub async fn serve(
    header_time: Duration,
    listener: TcpListener,
    current: watch::Receiver<Router>,
    tls: Option<Arc<Tls>>,
    mut stop: watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    loop {
        let (stream, from, permit) = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        let (watcher, tls) = (graceful.watcher(), tls.clone());
        let client = Client { current: current.clone(), from, header_time, watcher };
        tokio::spawn(async move {
            match tls {
                None => client.answer(stream, false).await,
                // The TLS handshake runs in the task of the connection, so that a slow client does
                // not block new connections.
                Some(tls) => {
                    match tokio::time::timeout(header_time, tls.acceptor().accept(stream)).await {
                        Ok(Ok(stream)) => client.answer(stream, true).await,
                        Ok(Err(error)) => {
                            let source = &error as &dyn std::error::Error;
                            tracing::debug!(
                                error = source,
                                "TLS handshake failed; closing the connection"
                            );
                        }
                        Err(_) => {
                            tracing::debug!("TLS handshake took too long; closing the connection");
                        }
                    }
                }
            }
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(LAST_ANSWERS, graceful.shutdown()).await.is_err() {
        tracing::warn!(
            "some requests did not finish before the shutdown; closing their connections"
        );
    }
}

struct Client {
    current: watch::Receiver<Router>,
    from: ClientAddress,
    header_time: Duration,
    watcher: Watcher,
}

impl Client {
    /// Serves the requests of one connection.
    async fn answer(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        is_encrypted: bool,
    ) {
        let Self { current, from, header_time, watcher } = self;
        let service = tower::service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(from);
            let router = current.borrow().clone();
            async move {
                let mut response = router.oneshot(request).await?;
                if is_encrypted {
                    // `Strict-Transport-Security` is sent only with TLS, because browsers ignore it
                    // without TLS.
                    let value = HeaderValue::from_static(STRICT_TRANSPORT_SECURITY_VALUE);
                    response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, value);
                }
                Ok::<_, Infallible>(response)
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(header_time)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        // An error of a connection affects only its client, so it is logged at level debug.
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "HTTP connection closed with an error"
            );
        }
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> (TcpStream, ClientAddress, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed, so waiting for a permit cannot fail.
    let permit = Arc::clone(permits).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // With Nagle's algorithm, the operating system would delay small responses.
                let _ = stream.set_nodelay(true);
                // A connection from one of this machine's own addresses counts as local, like
                // loopback.
                let own = stream.local_addr().is_ok_and(|own| own.ip() == peer.ip());
                let from = if own { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { peer.ip() };
                return (stream, ClientAddress(from), permit);
            }
            Err(error) => {
                // The likely reason is that the process has no free file descriptors. The pause
                // before the next try avoids a busy loop.
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "accepting a connection failed; will retry"
                );
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;
    use axum::routing::post;
    use evenkeel_api::{Problem, ProblemType};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Sends a text to a server with a short time limit for headers. Returns all bytes that the
    /// server sends until it closes the connection.
    async fn received_until_closed(router: Router, sent: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_answers, current) = watch::channel(router);
        let (_stopping, stop) = watch::channel(false);
        let time = Duration::from_millis(50);
        let serving = tokio::spawn(serve(time, listener, current, None, stop));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut received = Vec::new();
        // If the server kept the connection open, this test would time out.
        stream.read_to_end(&mut received).await.unwrap();
        serving.abort();
        String::from_utf8(received).unwrap()
    }

    #[tokio::test]
    async fn client_with_unfinished_headers_is_disconnected() {
        let received = received_until_closed(Router::new(), "GET / HTTP/1.1\r\nHost: x\r\n").await;
        assert!(!received.contains("200 OK"), "{received}");
    }

    #[tokio::test]
    async fn client_with_an_unfinished_body_is_disconnected_after_the_response() {
        let late = || async { Problem::new(ProblemType::RequestTimeout, "late").into_response() };
        let refused = || async { Problem::new(ProblemType::Unauthorized, "no").into_response() };
        let router = Router::new().route("/late", post(late)).route("/refused", post(refused));
        for (path, status) in [("late", "408"), ("refused", "401")] {
            let sent = format!("POST /{path} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1234");
            let received = received_until_closed(router.clone(), &sent).await;
            assert!(received.starts_with(&format!("HTTP/1.1 {status}")), "{received}");
        }
    }
}
