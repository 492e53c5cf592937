//! Tests authentication over real connections, with API keys, TLS and tokens of an identity
//! provider.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, SigningKey as _};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{CommandResult, Server, program, request, run, wait_for};

/// Runs a client command with the given token or API key.
fn run_as(server: &Server, credential: &str, args: &[&str]) -> CommandResult {
    let mut command = program(server.folder.path());
    CommandResult::new(command.args(args).env("EVENKEEL_TOKEN", credential).output().unwrap())
}

#[test]
fn api_key_is_created_used_audited_and_revoked() {
    let server = Server::start(&["--log", "debug"]);
    let result = server.run(&["api-key", "create", "ci", "--role", "operator", "--ttl", "90d"]);
    assert_eq!(result.code, 0, "{result:?}");
    let key = result.out.trim().to_owned();
    assert!(key.starts_with("ek_"), "{key}");
    let taken = server.run(&["api-key", "create", "ci", "--role", "viewer"]);
    assert_eq!(taken.code, 4, "{taken:?}");

    let create = ["job", "create", "--name", "mine", "--every", "1h", "--noop"];
    assert_eq!(run_as(&server, &key, &create).code, 0);
    let denied = run_as(&server, &key, &["api-key", "list"]);
    assert!(denied.code == 1 && denied.err.contains("needs the role admin"), "{denied:?}");

    let revoked = server.run(&["api-key", "revoke", "ci"]);
    assert_eq!((revoked.code, revoked.out.as_str()), (0, "Revoked ci.\n"));
    let refused = run_as(&server, &key, &["job", "list"]);
    assert!(refused.code == 1 && refused.err.contains("was revoked"), "{refused:?}");
    assert_eq!(server.run(&["api-key", "revoke", "ci"]).code, 3);
    let listed = server.run(&["api-key", "list"]);
    assert!(listed.out.contains("ci") && listed.out.contains("revoked"), "{}", listed.out);

    let log = server.json(&["audit", "--subject", "key:ci"]);
    let actions = |log: &Value| -> Vec<String> {
        let entries = log["entries"].as_array().unwrap().iter();
        entries.map(|entry| entry["action"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(actions(&log), ["list_api_keys", "create_job"]);
    assert_eq!(log["entries"][0]["denied"], true);
    let table = server.run(&["audit", "--denied"]);
    assert!(table.out.contains("127.0.0.1") && table.out.contains("403"), "{}", table.out);
    let all = actions(&server.json(&["audit"]));
    assert!(all.contains(&"revoke_api_key".to_owned()), "{all:?}");
    assert!(!server.log().contains(&key["ek_".len()..]), "the key is in the log");
}

/// Writes the key and a self-signed certificate for a host name that is not the server's.
fn write_certificate(folder: &Path) {
    let created = rcgen::generate_simple_self_signed(vec!["elsewhere.example".into()]).unwrap();
    std::fs::write(folder.join("cert.pem"), created.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), created.signing_key.serialize_pem()).unwrap();
}

#[test]
fn local_commands_trust_the_server_by_its_certificate() {
    let files = tempfile::tempdir().unwrap();
    write_certificate(files.path());
    let path = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
    let server = Server::start(&[
        "--listen",
        "0.0.0.0:0",
        "--tls-cert",
        &path("cert.pem"),
        "--tls-key",
        &path("key.pem"),
    ]);
    assert!(server.url().starts_with("https://127.0.0.1:"), "{}", server.url());
    let result = server.run(&["job", "list"]);
    assert_eq!(result.code, 0, "{result:?}");
    // A client that only knows the URL does not trust the self-signed certificate.
    let elsewhere = tempfile::tempdir().unwrap();
    let untrusted = run(elsewhere.path(), &["job", "--url", &server.url(), "--token", "x", "list"]);
    assert_eq!(untrusted.code, 5, "{untrusted:?}");

    let known = |server: &Server| {
        server
            .server_json()
            .and_then(|local| local["certificate_sha256"].as_str().map(String::from))
    };
    let before = known(&server).unwrap();
    write_certificate(files.path());
    server.signal(Signal::HUP);
    wait_for("the new certificate", || known(&server).filter(|now| *now != before));
    let result = server.run(&["job", "list"]);
    assert_eq!(result.code, 0, "{result:?}");
    // An invalid certificate file does not replace the certificate in use.
    std::fs::write(files.path().join("cert.pem"), "nonsense").unwrap();
    server.signal(Signal::HUP);
    wait_for("the log line about the failed reload", || {
        server.log().contains("the former certificate and keys stay in use").then_some(())
    });
    assert_eq!(server.run(&["job", "list"]).code, 0);
}

#[test]
fn invalid_certificate_files_are_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    write_certificate(folder.path());
    let serve =
        |args: &[&str]| run(folder.path(), &[&["serve", "--listen", "127.0.0.1:0"], args].concat());
    for (args, text) in [
        (&["--tls-cert", "none.pem", "--tls-key", "key.pem"][..], "none.pem can't be used"),
        (&["--tls-cert", "key.pem", "--tls-key", "key.pem"], "key.pem holds no certificate"),
        (&["--tls-cert", "cert.pem", "--tls-key", "cert.pem"], "the key of the certificate"),
        (&["--tls-cert", "cert.pem"], "tls_key: is missing"),
        (&["--jwt-algorithm", "RS256", "--jwt-key-file", "key.pem"], "private key"),
        (&["--jwt-algorithm", "ES256", "--jwt-jwks-file", "cert.pem"], "not a JSON Web Key Set"),
    ] {
        let result = serve(args);
        assert!(result.code == 2 && result.err.contains(text), "{args:?}: {result:?}");
    }
}

#[test]
fn identity_provider_tokens_are_accepted_besides_local_tokens() {
    let files = tempfile::tempdir().unwrap();
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let public = files.path().join("idp.pem");
    std::fs::write(&public, key.public_key_pem()).unwrap();
    let server = Server::start(&[
        "--jwt-algorithm",
        "EdDSA",
        "--jwt-key-file",
        public.to_str().unwrap(),
        "--jwt-audience",
        "evenkeel",
        "--jwt-role-claim",
        "realm_access.roles",
    ]);
    assert_eq!(server.run(&["job", "list"]).code, 0);
    let ask = |token: &str| {
        let header = format!("authorization: Bearer {token}");
        request(&server.url(), "GET", "/api/v1/jobs", &header, "").0
    };
    let token = |audience: &str| {
        let claims = json!({
            "sub": "ann", "aud": audience, "exp": 4_000_000_000_u64, "tenant": "acme",
            "realm_access": {"roles": ["offline_access", "viewer"]},
        });
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let stem = format!("{}.{}", part(json!({"alg": "EdDSA"})), part(claims));
        let signature = key.sign(stem.as_bytes()).unwrap();
        format!("{stem}.{}", URL_SAFE_NO_PAD.encode(signature))
    };
    assert_eq!(ask(&token("evenkeel")), 200);
    assert_eq!(ask(&token("others")), 401);
    // Tokens signed with the store's secret are rejected unless the operator allows them.
    let own = server.run(&["token", "create", "--role", "admin"]);
    assert_eq!(ask(own.out.trim()), 401);
}
