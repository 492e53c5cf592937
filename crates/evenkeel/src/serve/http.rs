//! Answers HTTP, within limits, and stops in order.

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

/// More than this many connections wait to be accepted.
const CONNECTIONS_MAX: usize = 4096;

/// A client that sends its request more slowly than this, or leaves a connection unused for so
/// long, is not worth waiting for.
const HEADER_TIME: Duration = Duration::from_secs(30);

/// A browser that has seen this host encrypted insists on it for a year.
const ONLY_ENCRYPTED: &str = "max-age=31536000";

/// After the word to stop, requests that are under way may go on for this long.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Answers until `stop`, then finishes what is under way.
///
/// Each request is answered by what `current` is at that moment.
pub async fn serve(
    listener: TcpListener,
    current: watch::Receiver<Router>,
    tls: Option<Arc<Tls>>,
    stop: watch::Receiver<bool>,
) {
    serve_within(HEADER_TIME, listener, current, tls, stop).await;
}

/// The same, with a client having `header_time` to send a request up to its body.
async fn serve_within(
    header_time: Duration,
    listener: TcpListener,
    current: watch::Receiver<Router>,
    tls: Option<Arc<Tls>>,
    mut stop: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let Accepted { stream, from, place } = accepted;
        let (watcher, tls) = (graceful.watcher(), tls.clone());
        let client = Client { current: current.clone(), from, header_time, watcher };
        tokio::spawn(async move {
            match tls {
                None => client.answer(stream, false).await,
                // Within the task: a slow client must not keep others from being accepted.
                Some(tls) => {
                    match tokio::time::timeout(header_time, tls.acceptor().accept(stream)).await {
                        Ok(Ok(stream)) => client.answer(stream, true).await,
                        Ok(Err(error)) => {
                            let source = &error as &dyn std::error::Error;
                            tracing::debug!(error = source, "a client and TLS did not agree");
                        }
                        Err(_) => tracing::debug!("a client was too slow for TLS"),
                    }
                }
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(LAST_ANSWERS, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were not answered to the end");
    }
}

/// The client at the other end of a connection.
struct Client {
    current: watch::Receiver<Router>,
    from: ClientAddress,
    header_time: Duration,
    watcher: Watcher,
}

impl Client {
    /// Answers what comes over the connection.
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
                    // Browsers ignore it on a connection that is not, by the standard.
                    let value = HeaderValue::from_static(ONLY_ENCRYPTED);
                    response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, value);
                }
                Ok::<_, Infallible>(response)
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(header_time)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        // How a connection ends is the client's business.
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "a connection broke");
        }
    }
}

/// A connection, whose it is, and its place among those that are open.
struct Accepted {
    stream: TcpStream,
    from: ClientAddress,
    place: Option<OwnedSemaphorePermit>,
}

/// The next connection.
async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> Accepted {
    // It is never closed, so there is always a permit in the end.
    let place = Arc::clone(room).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Small answers must not wait for company.
                let _ = stream.set_nodelay(true);
                // From one of its own addresses to itself: that is this machine, as loopback is.
                let own = stream.local_addr().is_ok_and(|own| own.ip() == peer.ip());
                let from = if own { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { peer.ip() };
                return Accepted { stream, from: ClientAddress(from), place };
            }
            Err(error) => {
                // Out of file descriptors, most likely. Trying at once would only burn the CPU.
                tracing::warn!(error = &error as &dyn std::error::Error, "accepting failed");
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

    /// What a server with a short time for headers says to these bytes until it closes the connection.
    async fn said_until_closed(router: Router, sent: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_answers, current) = watch::channel(router);
        let (_stopping, stop) = watch::channel(false);
        let time = Duration::from_millis(50);
        let serving = tokio::spawn(serve_within(time, listener, current, None, stop));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut said = Vec::new();
        // Should the server keep the connection, the test never ends and so fails.
        stream.read_to_end(&mut said).await.unwrap();
        serving.abort();
        String::from_utf8(said).unwrap()
    }

    #[tokio::test]
    async fn a_client_that_does_not_finish_its_headers_is_cut_off() {
        let said = said_until_closed(Router::new(), "GET / HTTP/1.1\r\nHost: x\r\n").await;
        assert!(!said.contains("200 OK"), "{said}");
    }

    #[tokio::test]
    async fn a_client_that_does_not_finish_its_body_is_cut_off_when_it_is_answered() {
        let late = || async { Problem::new(ProblemType::RequestTimeout, "late").into_response() };
        let refused = || async { Problem::new(ProblemType::Unauthorized, "no").into_response() };
        let router = Router::new().route("/late", post(late)).route("/refused", post(refused));
        for (path, status) in [("late", "408"), ("refused", "401")] {
            let sent = format!("POST /{path} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1234");
            let said = said_until_closed(router.clone(), &sent).await;
            assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{said}");
        }
    }
}
