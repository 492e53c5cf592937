use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel_outbound::reqwest::{Method, Request};
use evenkeel_outbound::{CallError, Outbound, OutboundSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::corpus;
use crate::lying_resolver::LyingResolver;
use crate::trap::{Trap, count};

/// The only private address that these tests may call.
const ALLOWED: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn outbound(liar: &Arc<LyingResolver>) -> Outbound {
    let settings = OutboundSettings {
        allow_networks: vec![ALLOWED.into()],
        resolver: Arc::clone(liar) as _,
        ..OutboundSettings::default()
    };
    Outbound::new(settings).unwrap()
}

fn liar(answers: impl IntoIterator<Item = (String, Vec<Vec<IpAddr>>)>) -> Arc<LyingResolver> {
    Arc::new(LyingResolver { answers: answers.into_iter().collect(), ..LyingResolver::default() })
}

async fn get(outbound: &Outbound, url: String) -> Result<u16, CallError> {
    let request = Request::new(Method::GET, url.parse().unwrap());
    Ok(outbound.send(request).await?.status().as_u16())
}

#[tokio::test]
async fn name_with_one_private_address_is_refused() {
    let trap = Trap::set().await;
    let public: IpAddr = "203.0.112.1".parse().unwrap();
    let mut answers = Vec::new();
    for (n, ip) in corpus::inner_v4().into_iter().enumerate() {
        let mapped = IpAddr::V6(ip.to_ipv6_mapped());
        let nat64 = IpAddr::V6(Ipv6Addr::from(0x0064_ff9b_u128 << 96 | u128::from(u32::from(ip))));
        answers.push((format!("alone-{n}.test"), vec![vec![ip.into()]]));
        answers.push((format!("mapped-{n}.test"), vec![vec![mapped]]));
        answers.push((format!("nat64-{n}.test"), vec![vec![nat64]]));
        answers.push((format!("last-{n}.test"), vec![vec![public, ALLOWED, ip.into()]]));
        answers.push((format!("first-{n}.test"), vec![vec![ip.into(), public]]));
    }
    let hosts: Vec<String> = answers.iter().map(|(host, _)| host.clone()).collect();
    let liar = liar(answers);
    let outbound = outbound(&liar);
    for host in &hosts {
        for scheme in ["http", "https"] {
            let call = get(&outbound, format!("{scheme}://{host}:{}/", trap.port)).await;
            assert!(matches!(call, Err(CallError::NoAddress(_))), "{host}: {call:?}");
        }
    }
    assert_eq!(liar.asked.load(Ordering::SeqCst), 2 * hosts.len());
    assert_eq!(trap.visitors().await, 0);
}

/// Closes each connection after one request, so that the next call resolves the host name again.
async fn answer_once(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let _ = stream.read(&mut [0; 4096]).await;
        let answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
        let _ = stream.write_all(answer).await;
    }
}

/// Returns listeners on the same port of [`ALLOWED`] and [`LOOPBACK`].
async fn twins() -> (TcpListener, TcpListener) {
    for _ in 0..100 {
        let allowed = TcpListener::bind((ALLOWED, 0)).await.unwrap();
        let port = allowed.local_addr().unwrap().port();
        // Another process may already use this port of the loopback address.
        if let Ok(inner) = TcpListener::bind((LOOPBACK, port)).await {
            return (allowed, inner);
        }
    }
    panic!("no port is free on both");
}

#[tokio::test]
async fn name_that_changes_its_address_is_checked_every_time() {
    let (allowed, inner) = twins().await;
    let port = allowed.local_addr().unwrap().port();
    tokio::spawn(answer_once(allowed));
    let visits = Arc::new(AtomicUsize::new(0));
    tokio::spawn(count(inner, Arc::clone(&visits)));
    let liar = liar([("rebind.test".into(), vec![vec![ALLOWED], vec![LOOPBACK]])]);
    let outbound = outbound(&liar);
    for turn in 0..100 {
        let call = get(&outbound, format!("http://rebind.test:{port}/")).await;
        match turn % 2 {
            0 => assert_eq!(call.unwrap(), 204),
            _ => assert!(matches!(call, Err(CallError::NoAddress(_))), "{turn}: {call:?}"),
        }
    }
    // Each call resolved the host name once, so it connected to the address that the guard checked.
    assert_eq!(liar.asked.load(Ordering::SeqCst), 100);
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn private_name_looks_like_a_name_that_does_not_exist() {
    let liar = liar([("inner.test".into(), vec![vec![LOOPBACK]])]);
    let outbound = outbound(&liar);
    let error_of = async |host: &str| {
        let call = get(&outbound, format!("http://u:secret@{host}/?secret")).await;
        let Err(error @ CallError::NoAddress(_)) = call else { panic!("{call:?}") };
        error.to_string()
    };
    let inside = error_of("inner.test").await;
    assert_eq!(inside.replace("inner", "other"), error_of("other.test").await);
    assert!(!inside.contains("127.0.0.1") && !inside.contains("secret"), "{inside}");
    assert!(inside.contains("--allow-network"), "{inside}");
}

#[tokio::test]
async fn error_names_the_refused_address_and_the_flag() {
    let error = get(&outbound(&liar([])), "http://u:secret@127.1/?secret".into()).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "127.0.0.1 is an address which is not public; --allow-network can open such a network"
    );
}
