use jsonwebtoken::{EncodingKey, Header};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::json;

use super::*;

const NOW: u64 = 1_800_000_000;

/// Keys that exist only for these tests.
fn pem(name: &str) -> &'static [u8] {
    match name {
        "rs256.key" => include_bytes!("test_keys/rs256.key.pem"),
        "rs256.pub" => include_bytes!("test_keys/rs256.pub.pem"),
        "es256.key" => include_bytes!("test_keys/es256.key.pem"),
        "es256.pub" => include_bytes!("test_keys/es256.pub.pem"),
        "eddsa.key" => include_bytes!("test_keys/eddsa.key.pem"),
        "eddsa.pub" => include_bytes!("test_keys/eddsa.pub.pem"),
        "other.key" => include_bytes!("test_keys/other.key.pem"),
        "other.pub" => include_bytes!("test_keys/other.pub.pem"),
        "short.pub" => include_bytes!("test_keys/short.pub.pem"),
        name => panic!("there is no key {name}"),
    }
}

fn settings(algorithm: ExternalAlgorithm) -> ExternalSettings {
    ExternalSettings {
        algorithm,
        audience: vec!["evenkeel".into(), "others".into()],
        issuer: Some("https://id.example".into()),
        role_claim: "realm_access.roles".into(),
        tenant_claim: "https://example/tenant".into(),
    }
}

fn claims() -> Value {
    json!({
        "sub": "ann", "iss": "https://id.example", "aud": ["x", "evenkeel"],
        "iat": NOW, "exp": NOW + 60, "realm_access": {"roles": ["offline", "viewer", "operator"]},
        "https://example/tenant": "acme",
    })
}

/// The key with which a test signs tokens like an identity provider.
enum SigningKey {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    /// A text that is used as a shared secret.
    Secret(EncodingKey),
}

fn signing_key(algorithm: ExternalAlgorithm) -> SigningKey {
    match algorithm {
        ExternalAlgorithm::Rs256 => {
            let key = EncodingKey::from_rsa_pem(pem("rs256.key")).unwrap();
            SigningKey::Rsa(RsaKeyPair::from_der(key.as_bytes()).unwrap())
        }
        ExternalAlgorithm::Es256 => {
            let key = EncodingKey::from_ec_pem(pem("es256.key")).unwrap();
            let (curve, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
            SigningKey::Ec(EcdsaKeyPair::from_pkcs8(curve, key.as_bytes(), &random).unwrap())
        }
        ExternalAlgorithm::EdDsa => ed_key("eddsa.key"),
    }
}

fn ed_key(name: &str) -> SigningKey {
    let key = EncodingKey::from_ed_pem(pem(name)).unwrap();
    SigningKey::Ed(Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.as_bytes()).unwrap())
}

/// Creates a signed token like an identity provider. The production code can sign tokens only with
/// shared secrets.
fn encode(header: &Header, claims: &Value, key: &SigningKey) -> String {
    let part = |text: String| URL_SAFE_NO_PAD.encode(text);
    let header = part(serde_json::to_string(header).unwrap());
    let stem = format!("{header}.{}", part(claims.to_string()));
    let (message, random) = (stem.as_bytes(), SystemRandom::new());
    let signature = match key {
        SigningKey::Rsa(key) => {
            let mut signature = vec![0; key.public().modulus_len()];
            key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
            signature
        }
        SigningKey::Ec(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
        SigningKey::Ed(key) => key.sign(message).as_ref().to_vec(),
        SigningKey::Secret(key) => {
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key.as_bytes());
            ring::hmac::sign(&key, message).as_ref().to_vec()
        }
    };
    format!("{stem}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn public_key(algorithm: ExternalAlgorithm) -> &'static [u8] {
    match algorithm {
        ExternalAlgorithm::Rs256 => pem("rs256.pub"),
        ExternalAlgorithm::Es256 => pem("es256.pub"),
        ExternalAlgorithm::EdDsa => pem("eddsa.pub"),
    }
}

fn token_of(algorithm: ExternalAlgorithm, claims: &Value) -> String {
    encode(&Header::new(algorithm.algorithm()), claims, &signing_key(algorithm))
}

fn checker(algorithm: ExternalAlgorithm) -> ExternalTokens {
    let keys = ExternalKeys::from_pem(algorithm, public_key(algorithm)).unwrap();
    ExternalTokens::new(settings(algorithm), keys)
}

fn at(secs: u64) -> Timestamp {
    Timestamp::from_micros((secs * 1_000_000).cast_signed())
}

#[test]
fn each_algorithm_accepts_only_its_own_tokens() {
    for own in ExternalAlgorithm::ALL {
        for signed in ExternalAlgorithm::ALL {
            let who = checker(own).verify(&token_of(signed, &claims()), at(NOW));
            if own != signed {
                assert!(matches!(who, Err(TokenRefusal::Invalid(_))), "{own:?} {signed:?}");
                continue;
            }
            let who = who.unwrap();
            assert_eq!((who.subject.as_str(), who.tenant.as_str()), ("ann", "acme"));
            assert_eq!((who.role, who.expires_at), (Role::Operator, Some(at(NOW + 60))));
        }
    }
}

/// In a known attack, a forged token is signed with the provider's public key as a secret.
#[test]
fn public_key_is_never_used_as_a_secret() {
    for own in ExternalAlgorithm::ALL {
        let secret = SigningKey::Secret(EncodingKey::from_secret(public_key(own)));
        let token = encode(&Header::new(Algorithm::HS256), &claims(), &secret);
        assert!(matches!(checker(own).verify(&token, at(NOW)), Err(TokenRefusal::Invalid(_))));
    }
}

#[test]
fn token_must_be_signed_by_the_configured_key() {
    let checker = checker(ExternalAlgorithm::EdDsa);
    let other = ed_key("other.key");
    let mut header = Header::new(Algorithm::EdDSA);
    let forged = encode(&header, &claims(), &other);
    assert!(matches!(checker.verify(&forged, at(NOW)), Err(TokenRefusal::Invalid(_))));
    // The verifier ignores the URL of a key inside the token.
    header.jku = Some("https://evil.example/keys".into());
    header.kid = Some("../../other".into());
    let forged = encode(&header, &claims(), &other);
    assert!(matches!(checker.verify(&forged, at(NOW)), Err(TokenRefusal::Invalid(_))));
    let good = token_of(ExternalAlgorithm::EdDsa, &claims());
    let (stem, signature) = good.rsplit_once('.').unwrap();
    for tampered in [format!("{stem}."), format!("{stem}.AAAA"), format!("a{stem}.{signature}")] {
        assert!(checker.verify(&tampered, at(NOW)).is_err(), "{tampered}");
    }
}

#[test]
fn every_claim_is_checked() {
    let algorithm = ExternalAlgorithm::EdDsa;
    let checker = checker(algorithm);
    let verify = |change: &dyn Fn(&mut Map<String, Value>)| {
        let mut claims = claims();
        change(claims.as_object_mut().unwrap());
        checker.verify(&token_of(algorithm, &claims), at(NOW))
    };
    let set = |name: &'static str, value: Value| {
        verify(&move |claims| drop(claims.insert(name.into(), value.clone())))
    };
    let without = |name: &'static str| verify(&move |claims| drop(claims.remove(name)));
    let tenant = "https://example/tenant";
    for name in ["sub", "iss", "aud", "exp", "realm_access", tenant] {
        assert!(matches!(without(name), Err(TokenRefusal::Claim { .. })), "{name}");
    }
    for (name, value) in [
        ("exp", json!("never")),
        ("exp", json!(-1)),
        ("nbf", json!("soon")),
        ("iss", json!("https://id.example.evil")),
        ("iss", json!(["https://id.example"])),
        ("aud", json!("else")),
        ("aud", json!(["evenkeel2"])),
        ("aud", json!({"evenkeel": 1})),
        ("sub", json!("")),
        ("sub", json!("a\nb")),
        (tenant, json!(7)),
        (tenant, json!("x".repeat(256))),
        ("realm_access", json!({"roles": ["root"]})),
        ("realm_access", json!({"roles": "Admin"})),
        ("realm_access", json!("admin")),
    ] {
        let refused = matches!(set(name, value.clone()), Err(TokenRefusal::Claim { .. }));
        assert!(refused, "{name}: {value}");
    }
    assert!(matches!(set("exp", json!(NOW)), Err(TokenRefusal::Expired)));
    assert!(matches!(set("exp", json!(NOW - 30)), Err(TokenRefusal::Expired)));
    assert!(set("exp", json!(NOW as f64 + 0.5)).is_err());
    for name in ["iat", "nbf"] {
        assert!(set(name, json!(NOW + 60)).is_ok(), "{name}");
        assert!(matches!(set(name, json!(NOW + 61)), Err(TokenRefusal::Early)), "{name}");
    }
    assert!(without("iat").is_ok());
    assert!(set("aud", json!("others")).is_ok());
    let roles = set("realm_access", json!({"roles": "admin"})).unwrap();
    assert_eq!(roles.role, Role::Admin);
}

#[test]
fn issuer_and_audience_are_checked_only_if_set() {
    let algorithm = ExternalAlgorithm::EdDsa;
    let keys = ExternalKeys::from_pem(algorithm, public_key(algorithm)).unwrap();
    let settings = ExternalSettings { issuer: None, audience: Vec::new(), ..settings(algorithm) };
    let checker = ExternalTokens::new(settings, keys);
    let mut claims = claims();
    for name in ["iss", "aud"] {
        claims.as_object_mut().unwrap().remove(name);
    }
    assert!(checker.verify(&token_of(algorithm, &claims), at(NOW)).is_ok());
}

#[test]
fn critical_headers_are_refused() {
    let algorithm = ExternalAlgorithm::EdDsa;
    let mut header = Header::new(Algorithm::EdDSA);
    header.crit = Some(vec!["b64".into()]);
    let token = encode(&header, &claims(), &signing_key(algorithm));
    assert!(matches!(checker(algorithm).verify(&token, at(NOW)), Err(TokenRefusal::Critical)));
}

fn jwk(algorithm: ExternalAlgorithm, kid: Option<&str>) -> Value {
    jwk_of(&signing_key(algorithm), kid)
}

fn other_jwk(kid: &str) -> Value {
    jwk_of(&ed_key("other.key"), Some(kid))
}

fn jwk_of(key: &SigningKey, kid: Option<&str>) -> Value {
    let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let mut jwk = match key {
        SigningKey::Rsa(key) => {
            let RsaPublicKeyComponents { n, e } =
                RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
            json!({"kty": "RSA", "alg": "RS256", "n": text(&n), "e": text(&e)})
        }
        SigningKey::Ec(key) => {
            // After its first byte, the public key consists of two coordinates with 32 bytes each.
            let (x, y) = key.public_key().as_ref()[1..].split_at(32);
            json!({"kty": "EC", "alg": "ES256", "crv": "P-256", "x": text(x), "y": text(y)})
        }
        SigningKey::Ed(key) => {
            let x = text(key.public_key().as_ref());
            json!({"kty": "OKP", "alg": "EdDSA", "crv": "Ed25519", "x": x})
        }
        SigningKey::Secret(_) => panic!("secrets are in no set"),
    };
    if let Some(kid) = kid {
        jwk["kid"] = json!(kid);
    }
    jwk
}

#[test]
fn token_names_its_key_among_several() {
    let algorithm = ExternalAlgorithm::EdDsa;
    let rsa = jwk(ExternalAlgorithm::Rs256, Some("new"));
    let secret = json!({"kty": "oct", "k": "AAAA", "kid": "shared", "alg": "HS256"});
    let set = json!({"keys": [rsa, secret, jwk(algorithm, Some("new")), other_jwk("old")]});
    let keys = ExternalKeys::from_jwks(algorithm, set.to_string().as_bytes()).unwrap();
    let checker = ExternalTokens::new(settings(algorithm), keys);
    let signed = |kid: Option<&str>| {
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = kid.map(String::from);
        encode(&header, &claims(), &signing_key(algorithm))
    };
    assert!(checker.verify(&signed(Some("new")), at(NOW)).is_ok());
    let verify = |kid| checker.verify(&signed(kid), at(NOW));
    assert!(matches!(verify(Some("old")), Err(TokenRefusal::Invalid(_))));
    for kid in [None, Some("shared"), Some("unknown")] {
        assert!(matches!(verify(kid), Err(TokenRefusal::UnknownKey)), "{kid:?}");
    }
    // After a key rotation, the old keys are no longer accepted.
    let set = json!({"keys": [other_jwk("new")]});
    checker.replace_keys(ExternalKeys::from_jwks(algorithm, set.to_string().as_bytes()).unwrap());
    assert!(checker.verify(&signed(Some("new")), at(NOW)).is_err());
}

#[test]
fn token_must_name_even_a_single_key() {
    for algorithm in ExternalAlgorithm::ALL {
        let keys = |kid| {
            let set = json!({"keys": [jwk(algorithm, kid)]}).to_string();
            ExternalKeys::from_jwks(algorithm, set.as_bytes())
        };
        assert!(matches!(keys(None), Err(KeyFault::Nameless(_))), "{algorithm:?}");
        let checker = ExternalTokens::new(settings(algorithm), keys(Some("a")).unwrap());
        let verify = |kid: Option<&str>| {
            let mut header = Header::new(algorithm.algorithm());
            header.kid = kid.map(String::from);
            checker.verify(&encode(&header, &claims(), &signing_key(algorithm)), at(NOW))
        };
        assert!(verify(Some("a")).is_ok(), "{algorithm:?}");
        for kid in [None, Some(""), Some("b")] {
            assert!(matches!(verify(kid), Err(TokenRefusal::UnknownKey)), "{algorithm:?} {kid:?}");
        }
    }
}

#[test]
fn unusable_keys_are_refused_with_the_reason() {
    use ExternalAlgorithm::{EdDsa, Es256, Rs256};
    let of_pem = |algorithm, name| ExternalKeys::from_pem(algorithm, pem(name)).err().unwrap();
    assert!(matches!(of_pem(Rs256, "rs256.key"), KeyFault::Private));
    assert!(matches!(of_pem(Rs256, "short.pub"), KeyFault::Short));
    for (algorithm, name) in [(Rs256, "es256.pub"), (Es256, "eddsa.pub"), (EdDsa, "rs256.pub")] {
        assert!(matches!(of_pem(algorithm, name), KeyFault::NotPem(_)), "{algorithm:?} {name}");
    }
    assert!(ExternalKeys::from_pem(EdDsa, b"nonsense").is_err());
    let of_set = |algorithm, set: Value| {
        ExternalKeys::from_jwks(algorithm, set.to_string().as_bytes()).err().unwrap()
    };
    assert!(matches!(of_set(EdDsa, json!([])), KeyFault::NotJwks(_)));
    assert!(matches!(of_set(EdDsa, json!({"keys": []})), KeyFault::NoneFits(_)));
    let rsa = json!({"keys": [jwk(Rs256, Some("a"))]});
    assert!(matches!(of_set(EdDsa, rsa), KeyFault::NoneFits(_)));
    let nameless = json!({"keys": [jwk(EdDsa, None), other_jwk("a")]});
    assert!(matches!(of_set(EdDsa, nameless), KeyFault::Nameless(_)));
    let mut encrypting = jwk(EdDsa, Some("a"));
    encrypting["use"] = json!("enc");
    assert!(matches!(of_set(EdDsa, json!({"keys": [encrypting]})), KeyFault::NoneFits(_)));
}

#[test]
fn key_set_with_a_private_key_is_refused() {
    for algorithm in ExternalAlgorithm::ALL {
        let mut private = jwk(ExternalAlgorithm::Es256, Some("mine"));
        private["d"] = json!("AAAA");
        let refused = |keys: Value| {
            let set = json!({"keys": keys}).to_string();
            ExternalKeys::from_jwks(algorithm, set.as_bytes()).err().unwrap().to_string()
        };
        let said = refused(json!([jwk(algorithm, Some("good")), private]));
        assert!(said.contains("its key \"mine\" is a private one"), "{said}");
        private.as_object_mut().unwrap().remove("kid");
        let said = refused(json!([jwk(algorithm, Some("good")), private]));
        assert!(said.contains("its key number 2 is a private one"), "{said}");
    }
}
