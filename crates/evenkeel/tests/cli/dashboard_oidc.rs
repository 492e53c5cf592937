//! Signing in to the dashboard at an identity provider.

use serde_json::{Value, json};

use crate::dashboard::{Answer, Browser};
use crate::identity_provider::{IdentityProvider, PUBLIC_URL};
use crate::support::{Server, run, wait_for};

fn server_of(provider: &IdentityProvider) -> Server {
    let arguments = provider.arguments();
    Server::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Begins a sign-in. Returns the address to which the browser is sent.
fn begin(browser: &mut Browser<'_>, next: &str) -> String {
    let answer = browser.get(&format!("/sign-in/oidc?next={next}"));
    assert_eq!(answer.status, 303, "{}", answer.body);
    let cookie = answer.header("set-cookie").unwrap();
    for part in ["Path=/sign-in;", "HttpOnly", "SameSite=Lax", "Max-Age=600"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    browser.cookie = cookie.split(';').next().unwrap().to_owned();
    answer.header("location").unwrap().to_owned()
}

/// Comes back from the provider with an answer.
fn come_back(browser: &Browser<'_>, answer: &str) -> Answer {
    browser.get(&format!("/sign-in/callback?{answer}"))
}

/// Signs in as a user with these claims.
fn sign_in(browser: &mut Browser<'_>, provider: &IdentityProvider, claims: &Value) -> Answer {
    let location = begin(browser, "%2Fjobs");
    let (state, code) = provider.sign_in(&location, claims);
    come_back(browser, &format!("state={state}&code={code}"))
}

fn cookies_set(answer: &Answer) -> Vec<&str> {
    let lines = answer.head.lines().filter_map(|line| line.split_once(": "));
    let set = lines.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    set.map(|(_, value)| value).collect()
}

/// Asserts that no session began, and that the sign-in page contains each text.
fn assert_refused(answer: &Answer, status: u16, texts: &[&str]) {
    assert_eq!(answer.status, status, "{}", answer.body);
    let began = cookies_set(answer).iter().any(|cookie| !cookie.contains("Max-Age=0"));
    assert!(!began, "{}", answer.head);
    assert!(answer.body.contains("role=\"alert\""), "{}", answer.body);
    assert!(answer.body.contains("Sign in with Example ID"), "{}", answer.body);
    for text in texts {
        assert!(answer.body.contains(text), "{text}: {}", answer.body);
    }
}

#[test]
fn viewer_signs_in_at_the_identity_provider() {
    let provider = IdentityProvider::start();
    let server = server_of(&provider);
    let mut browser = Browser::new(&server);
    let asked = browser.get("/jobs?status=paused");
    let page = browser.get(asked.header("location").unwrap());
    assert_eq!(page.status, 200);
    assert!(page.head.contains("form-action 'self'"), "{}", page.head);
    let link = format!("{PUBLIC_URL}/sign-in/oidc?next=%2Fjobs%3Fstatus%3Dpaused");
    let at = |text: &str| page.body.find(text).unwrap_or_else(|| panic!("{text}: {}", page.body));
    assert!(at(&format!("href=\"{link}\"")) < at("<details"), "{}", page.body);
    assert!(at("<details") < at("name=\"credential\""), "{}", page.body);

    let location = begin(&mut browser, "%2Fjobs%3Fstatus%3Dpaused");
    let (state, code) = provider.sign_in(&location, &json!({}));
    let done = come_back(&browser, &format!("state={state}&code={code}"));
    assert_eq!((done.status, done.header("location")), (303, Some("/jobs?status=paused")));
    let cookies = cookies_set(&done);
    let [session, pending] = cookies[..] else { panic!("{}", done.head) };
    assert!(session.contains("; Path=/; HttpOnly; SameSite=Lax"), "{session}");
    assert!(pending.contains("Path=/sign-in;") && pending.contains("Max-Age=0"), "{pending}");

    browser.cookie = session.split(';').next().unwrap().to_owned();
    let page = browser.get("/jobs");
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.body.contains("ann · viewer · default"), "{}", page.body);
    let refused = browser.post("/ui/jobs/hello/pause", &[("token", &browser.form_token())]);
    assert_eq!(refused.status, 403);
    assert_eq!(browser.get("/api/v1/jobs").status, 401);
    assert!(!server.log().contains(&code), "the code is in the log");
}

#[test]
fn sign_in_of_another_browser_is_refused() {
    let provider = IdentityProvider::start();
    let server = server_of(&provider);
    let (mut attacker, mut victim) = (Browser::new(&server), Browser::new(&server));
    let (state, code) = provider.sign_in(&begin(&mut attacker, "%2F"), &json!({}));
    let link = format!("state={state}&code={code}");
    let sentence = ["did not begin in this browser", PUBLIC_URL];
    assert_refused(&come_back(&victim, &link), 400, &sentence);
    let own = provider.sign_in(&begin(&mut victim, "%2F"), &json!({}));
    assert_refused(&come_back(&victim, &link), 400, &sentence);
    assert_refused(&come_back(&victim, &format!("code={}", own.1)), 400, &sentence);
    assert_refused(&come_back(&victim, &format!("state=&code={}", own.1)), 400, &sentence);
    // With the state of the victim, the code of the attacker fails at the provider.
    let mixed = format!("state={}&code={code}", own.0);
    assert_refused(&come_back(&victim, &mixed), 401, &["Example ID did not accept this sign-in"]);
    let own = format!("state={}&code={}", own.0, own.1);
    assert_eq!(come_back(&victim, &own).status, 303);
}

#[test]
fn repeated_answers_of_the_provider_are_refused_audited_and_limited() {
    let provider = IdentityProvider::start();
    let server = server_of(&provider);
    let mut browser = Browser::new(&server);
    let (state, code) = provider.sign_in(&begin(&mut browser, "%2Fjobs"), &json!({}));
    let answer = format!("state={state}&code={code}");
    assert_eq!(come_back(&browser, &answer).status, 303);
    // A browser deletes the cookie of a finished sign-in; a copy of the cookie must not work.
    let visitor = Browser::new(&server);
    assert_refused(&come_back(&visitor, &answer), 400, &["did not begin in this browser"]);
    for _ in 0..10 {
        let refused = come_back(&browser, &answer);
        assert_refused(&refused, 401, &["used already or took too long", "Sign in again"]);
    }
    let limited = come_back(&browser, &answer);
    assert_refused(&limited, 429, &["too many invalid credentials"]);
    assert!(limited.header("retry-after").is_some(), "{}", limited.head);

    let entries = wait_for("the audit entries", || {
        let log = server.json(&["audit", "--denied"]);
        let entries = log["entries"].as_array().unwrap().iter();
        let entries = entries.filter(|entry| entry["action"] == "sign_in").cloned();
        let entries: Vec<Value> = entries.collect();
        (entries.len() == 12).then_some(entries)
    });
    let with = |status: u16| entries.iter().filter(|entry| entry["status"] == status).count();
    assert_eq!((with(400), with(401), with(429)), (1, 10, 1), "{entries:?}");
    assert!(entries.iter().all(|entry| entry["remote"] == "127.0.0.1"), "{entries:?}");
    // The limit does not lock out others behind the same address.
    assert_eq!(sign_in(&mut Browser::new(&server), &provider, &json!({})).status, 303);
}

#[test]
fn unsuitable_id_tokens_are_refused_with_advice() {
    let provider = IdentityProvider::start();
    let server = server_of(&provider);
    let mut browser = Browser::new(&server);
    let later_claims = [
        (json!({"nonce": "another"}), 401, "its nonce is not the one of this sign-in"),
        (json!({"nonce": null}), 401, "its nonce is not the one of this sign-in"),
        (json!({"aud": "evenkeel"}), 401, "another client than oidc_client_id"),
        (json!({"role": null}), 401, "&quot;role&quot; is missing. Ask an administrator to check"),
        (json!({"tenant": null}), 401, "&quot;tenant&quot; is missing. Ask an administrator"),
        (json!({"iss": "https://other.example"}), 401, "the issuer this server trusts"),
        (json!({"exp": 1_700_000_000}), 401, "has expired"),
        (json!({"groups": "x".repeat(3000)}), 422, "put fewer claims into the ID token"),
    ];
    for (claims, status, text) in later_claims {
        let answer = sign_in(&mut browser, &provider, &claims);
        assert_refused(&answer, status, &[text]);
        let again = format!("href=\"{PUBLIC_URL}/sign-in/oidc?next=%2Fjobs\"");
        assert!(answer.body.contains(&again), "{}", answer.body);
        assert!(cookies_set(&answer)[0].contains("Max-Age=0"), "{}", answer.head);
    }
}

#[test]
fn error_of_the_provider_is_shown_as_text() {
    let provider = IdentityProvider::start();
    let server = server_of(&provider);
    let mut browser = Browser::new(&server);
    let location = begin(&mut browser, "%2F");
    let (state, _) = provider.sign_in(&location, &json!({}));
    let hostile = "error=access_denied&error_description=%3Cscript%3Ealert(1)%3C%2Fscript%3E\
                   %22%20onload%3Dx%0D%0AX-Evil:%201";
    // A link of another site shows no text of its own on the page.
    let stranger = come_back(&browser, &format!("state=x&{hostile}"));
    assert_refused(&stranger, 400, &["did not begin in this browser"]);
    assert!(!stranger.body.contains("alert(1)"), "{}", stranger.body);
    let refused = come_back(&browser, &format!("state={state}&{hostile}"));
    let text =
        "Example ID refused the sign-in: access_denied, &lt;script&gt;alert(1)&lt;/script&gt;";
    assert_refused(&refused, 403, &[text, "ask an administrator of Example ID for access"]);
    assert!(!refused.body.contains("<script>") && !refused.head.contains("X-Evil"));

    let long = format!("state={state}&error={}", "x".repeat(5000));
    let page = come_back(&browser, &long).body;
    assert!(page.contains(&format!("{}…", "x".repeat(200))) && !page.contains(&"x".repeat(201)));
    let silent = come_back(&browser, &format!("state={state}"));
    assert_refused(&silent, 403, &["it gave no reason"]);
}

#[test]
fn unreachable_provider_and_wrong_client_secret_give_a_sentence() {
    let provider = IdentityProvider::start();
    std::fs::write(provider.secret_file(), "wrong").unwrap();
    let server = server_of(&provider);
    let mut browser = Browser::new(&server);
    let answer = sign_in(&mut browser, &provider, &json!({}));
    let sentence = "This server got no token from Example ID. Try again in a minute.";
    assert_refused(&answer, 502, &[sentence]);
    assert!(server.log().contains("401: invalid_client"), "{}", server.log());

    let location = begin(&mut browser, "%2F");
    let (state, code) = provider.sign_in(&location, &json!({}));
    provider.stop();
    let answer = come_back(&browser, &format!("state={state}&code={code}"));
    assert_refused(&answer, 502, &[sentence]);
    assert!(server.log().contains("identity provider returned no ID token"), "{}", server.log());
    assert!(!server.log().contains(&code), "the code is in the log");
}

#[test]
fn sign_in_leads_only_to_pages_of_this_server() {
    let provider = IdentityProvider::start();
    let server = server_of(&provider);
    for next in ["%2F%2Fevil.example", "https:%2F%2Fevil.example", "%2F%5Cevil.example", ""] {
        let mut browser = Browser::new(&server);
        let (state, code) = provider.sign_in(&begin(&mut browser, next), &json!({}));
        let done = come_back(&browser, &format!("state={state}&code={code}"));
        assert_eq!((done.status, done.header("location")), (303, Some("/")), "{next}");
        let page = browser.get(&format!("/sign-in?next={next}")).body;
        assert!(!page.contains("evil.example"), "{page}");
    }
}

#[test]
fn server_without_an_identity_provider_has_no_link_to_it() {
    let server = Server::start(&[]);
    let visitor = Browser::new(&server);
    let page = visitor.get("/sign-in").body;
    assert!(!page.contains("/sign-in/oidc") && !page.contains("<details"), "{page}");
    for path in ["/sign-in/oidc", "/sign-in/callback?state=&code=x"] {
        let answer = visitor.get(path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.body.contains("oidc_client_id"), "{}", answer.body);
    }
}

#[test]
fn incomplete_settings_are_refused_before_the_server_starts() {
    let provider = IdentityProvider::start();
    let folder = tempfile::tempdir().unwrap();
    let all = provider.arguments();
    for (left_out, text) in [
        ("--public-url", "public_url: is missing"),
        ("--jwt-issuer", "jwt_issuer"),
        ("--jwt-audience", "add \"dashboard\" to jwt_audience"),
        ("--oidc-client-id", "oidc_client_id: is missing"),
        ("--oidc-authorization-endpoint", "oidc_authorization_endpoint: is missing"),
        ("--oidc-token-endpoint", "oidc_token_endpoint: is missing"),
    ] {
        let others = all.chunks(2).filter(|pair| pair[0] != left_out).flatten();
        let others: Vec<&str> = others.map(String::as_str).collect();
        let result =
            run(folder.path(), &[&["serve", "--listen", "127.0.0.1:0"], &others[..]].concat());
        assert!(result.code == 2 && result.err.contains(text), "{left_out}: {result:?}");
        assert!(!folder.path().join("evenkeel-data").exists(), "nothing was started");
    }
}
