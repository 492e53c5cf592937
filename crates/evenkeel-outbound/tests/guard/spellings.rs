use evenkeel_outbound::reqwest::{Method, Request, Url};
use evenkeel_outbound::{CallError, Outbound, OutboundSettings};

use crate::corpus;
use crate::trap::Trap;

#[tokio::test]
async fn ten_thousand_private_urls_make_no_connection() {
    let trap = Trap::set().await;
    let outbound = Outbound::new(OutboundSettings::default()).unwrap();
    let urls = corpus::urls(trap.port);
    let (mut refused, mut invalid) = (0, 0);
    for text in &urls {
        let Ok(url) = text.parse::<Url>() else {
            invalid += 1;
            continue;
        };
        match outbound.send(Request::new(Method::GET, url)).await {
            Err(CallError::Refused(_)) => refused += 1,
            other => panic!("{text:?} was not refused: {other:?}"),
        }
    }
    println!("{} URLs: {refused} refused, {invalid} invalid", urls.len());
    assert!(refused > 10_000, "{refused}");
    assert!(invalid < urls.len() / 20, "{invalid}");
    assert_eq!(trap.visitors().await, 0);
}

#[tokio::test]
async fn trap_counts_connections() {
    let trap = Trap::set().await;
    let allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    let settings = OutboundSettings { allow_networks, ..OutboundSettings::default() };
    let outbound = Outbound::new(settings).unwrap();
    let url = format!("http://0x7f.1:{}/", trap.port).parse().unwrap();
    let call = outbound.send(Request::new(Method::GET, url)).await;
    assert!(matches!(call, Err(CallError::Failed(_))), "{call:?}");
    assert_eq!(trap.visitors().await, 1);
}
