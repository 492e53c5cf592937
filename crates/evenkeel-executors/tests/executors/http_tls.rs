use std::net::SocketAddr;
use std::sync::Arc;

use evenkeel_core::TenantNo;
use evenkeel_core::attempt::Outcome;
use evenkeel_executors::{Executor, HttpExecutor, HttpSettings, Identities, Invocation, Report};
use evenkeel_outbound::Identity;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, pem::PemObject};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::http_support::{counting, local_settings};
use crate::support::invocation;

/// A certificate authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        Arc::new(roots)
    }

    fn certify(&self) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).unwrap();
        (params.signed_by(&key, &self.0).unwrap(), key)
    }

    fn identity_pem(&self) -> String {
        let (certificate, key) = self.certify();
        format!("{}{}", certificate.pem(), key.serialize_pem())
    }

    /// Starts a server that has a certificate of this authority and requests client certificates
    /// issued by `clients`.
    async fn serve(
        &self,
        clients: Option<&Self>,
        version: &'static SupportedProtocolVersion,
    ) -> Tls {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[version])
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(clients.roots(), provider)
                    .allow_unauthenticated()
                    .build()
                    .unwrap(),
            ),
        };
        let (certificate, key) = self.certify();
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        Tls::start(config).await
    }
}

/// A TLS server that responds with how many client certificates it got, or redirects to
/// `?LOCATION`.
struct Tls(SocketAddr);

impl Tls {
    async fn start(config: ServerConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let shown = stream.get_ref().1.peer_certificates().map_or(0, <[_]>::len);
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") {
                        let Ok(1..) = stream.read_buf(&mut request).await else { return };
                    }
                    let request = String::from_utf8(request).unwrap();
                    let target = request.split(' ').nth(1).unwrap();
                    let status = match target.split_once('?') {
                        None => "200 OK".to_owned(),
                        Some((_, location)) => format!("302 Found\r\nlocation: {location}"),
                    };
                    let body = format!("shown {shown}");
                    let length = body.len();
                    let answer = format!(
                        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
                    );
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self(address)
    }

    fn url(&self) -> String {
        format!("https://localhost:{}/", self.0.port())
    }
}

async fn get(executor: &HttpExecutor, url: &str, tls: Value) -> Report {
    let config = json!({"url": url, "method": "GET", "tls": tls});
    assert_eq!(executor.check(TenantNo(1), &config, &Value::Null), Ok(()));
    executor.run(invocation("http", config)).await
}

fn local() -> HttpExecutor {
    HttpExecutor::new(local_settings())
}

const TLS12: &SupportedProtocolVersion = &rustls::version::TLS12;
const TLS13: &SupportedProtocolVersion = &rustls::version::TLS13;

#[tokio::test]
async fn only_known_authorities_are_trusted() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = authority.serve(None, TLS13).await;
    let executor = local();
    let trusted = get(&executor, &server.url(), json!({"ca_pem": authority.pem()})).await;
    assert_eq!(trusted.outcome, Outcome::Completed, "{trusted:?}");
    for tls in [json!({"ca_pem": other.pem()}), json!({}), Value::Null] {
        let report = get(&executor, &server.url(), tls).await;
        assert_eq!(report.outcome, Outcome::Failed);
        let error = report.error.unwrap();
        assert!(error.contains("certificate") || error.contains("https can't"), "{error}");
    }
}

#[tokio::test]
async fn job_may_require_tls_1_3() {
    let authority = Authority::new();
    let (old, new) = (authority.serve(None, TLS12).await, authority.serve(None, TLS13).await);
    let executor = local();
    for (server, min_version, outcome) in [
        (&old, "1.2", Outcome::Completed),
        (&old, "1.3", Outcome::Failed),
        (&new, "1.2", Outcome::Completed),
        (&new, "1.3", Outcome::Completed),
    ] {
        let tls = json!({"ca_pem": authority.pem(), "min_version": min_version});
        let report = get(&executor, &server.url(), tls).await;
        assert_eq!(report.outcome, outcome, "{min_version}: {report:?}");
    }
}

#[tokio::test]
async fn client_certificate_is_sent_to_the_first_origin_only() {
    let authority = Authority::new();
    let clients = Authority::new();
    let server = authority.serve(Some(&clients), TLS13).await;
    let elsewhere = authority.serve(Some(&clients), TLS13).await;
    let identity = Identity::from_pem(clients.identity_pem().as_bytes()).unwrap();
    let identities = Identities::from([((TenantNo(1), "crm".to_owned()), identity)]);
    let executor = HttpExecutor::new(HttpSettings { identities, ..local_settings() });
    let tls = json!({"ca_pem": authority.pem(), "identity": "crm"});
    let shown = get(&executor, &server.url(), tls.clone()).await;
    assert_eq!(shown.output.as_deref(), Some("shown 1"), "{shown:?}");
    let anonymous = get(&executor, &server.url(), json!({"ca_pem": authority.pem()})).await;
    assert_eq!(anonymous.output.as_deref(), Some("shown 0"), "{anonymous:?}");
    let config = json!({"url": server.url(), "method": "GET", "tls": tls.clone()});
    let fault = executor.check(TenantNo(2), &config, &Value::Null).unwrap_err();
    assert_eq!(fault.field, "executor_config.tls.identity");
    let other = Invocation { tenant: TenantNo(2), ..invocation("http", config) };
    let refused = executor.run(other).await.error.unwrap();
    assert!(refused.starts_with("executor_config.tls.identity: "), "{refused}");
    // A redirect to another origin uses neither the client certificate nor the certificate
    // authority of the job.
    let away = format!("{}?{}", server.url(), elsewhere.url());
    let report = get(&executor, &away, tls).await;
    assert_eq!(report.outcome, Outcome::Failed);
    let error = report.error.unwrap();
    let start = format!("after a redirect to {}: ", elsewhere.url().trim_end_matches('/'));
    assert!(error.starts_with(&start), "{error}");
}

#[tokio::test]
async fn unverified_servers_need_a_setting() {
    let server = Authority::new().serve(None, TLS13).await;
    let config = json!({"url": server.url(), "method": "GET", "tls": {"verify": false}});
    let fault = local().check(TenantNo(1), &config, &Value::Null).unwrap_err();
    assert_eq!(fault.field, "executor_config.tls.verify");
    // Each attempt checks the options again, because the setting may have changed since the job was
    // created.
    let report = local().run(invocation("http", config.clone())).await;
    assert!(report.error.unwrap().starts_with("executor_config.tls.verify: "));
    let settings = HttpSettings { allow_unverified_tls: true, ..local_settings() };
    let report = get(&HttpExecutor::new(settings), &server.url(), json!({"verify": false})).await;
    assert_eq!(report.outcome, Outcome::Completed, "{report:?}");
}

#[tokio::test]
async fn redirect_from_https_to_http_is_refused() {
    let authority = Authority::new();
    let server = authority.serve(None, TLS13).await;
    let (plain, calls) = counting().await;
    let url = format!("{}?http://{plain}/", server.url());
    let report = get(&local(), &url, json!({"ca_pem": authority.pem()})).await;
    let origin = server.url().trim_end_matches('/').to_owned();
    let error = format!("{origin} redirects from https to http://{plain}");
    assert_eq!(report.error, Some(error));
    assert_eq!(calls.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[test]
fn bad_certificates_and_unknown_identities_are_refused_at_creation() {
    let key = KeyPair::generate().unwrap().serialize_pem();
    let broken = Authority::new().pem().replacen('M', "!", 1);
    for (tls, field) in [
        (json!({"ca_pem": "nonsense"}), "executor_config.tls.ca_pem"),
        (json!({"ca_pem": key}), "executor_config.tls.ca_pem"),
        (json!({"ca_pem": broken}), "executor_config.tls.ca_pem"),
        (json!({"identity": "nobody"}), "executor_config.tls.identity"),
    ] {
        let config = json!({"url": "https://example.com/", "tls": tls});
        let fault = local().check(TenantNo(1), &config, &Value::Null).unwrap_err();
        assert_eq!(fault.field, field, "{fault}");
    }
}

#[test]
fn identity_needs_a_certificate_with_its_own_key() {
    let clients = Authority::new();
    assert!(Identity::from_pem(clients.identity_pem().as_bytes()).is_ok());
    let stranger = KeyPair::generate().unwrap().serialize_pem();
    let (certificate, _) = clients.certify();
    for pem in [certificate.pem(), stranger.clone(), format!("{}{stranger}", certificate.pem())] {
        assert!(Identity::from_pem(pem.as_bytes()).is_err(), "{pem}");
    }
}
