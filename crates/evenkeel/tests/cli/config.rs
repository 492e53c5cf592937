//! Flags, environment variables and the config file.

use crate::support::{Server, program, run};

fn refused(file: &str, args: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("evenkeel.toml"), file).unwrap();
    let said = run(folder.path(), &[&["serve", "--config", "evenkeel.toml"], args].concat());
    assert_eq!(said.code, 2, "{said:?}");
    assert!(!folder.path().join("evenkeel-data").exists(), "nothing was started");
    said.err
}

#[test]
fn a_bad_file_is_refused_with_the_place_and_the_way_out() {
    let said = refused("lisen = '127.0.0.1:1'", &[]);
    assert!(said.contains("\"lisen\"") && said.contains("did you mean listen?"), "{said}");
    let said = refused("workers = 4\nworkers = 5", &[]);
    assert!(said.contains("line 2"), "{said}");
    let said = refused("[engine]\nlease_seconds = 3", &[]);
    assert!(said.contains("ping_seconds") && said.contains("lease_seconds"), "{said}");
    let said = refused("", &["--roles", "api"]);
    assert!(said.contains("postgres://"), "{said}");
}

#[test]
fn an_address_that_others_can_reach_needs_a_word_more() {
    let said = refused("", &["--listen", "0.0.0.0:0"]);
    assert!(said.contains("--insecure-listen"), "{said}");
    let server = Server::start(&["--listen", "0.0.0.0:0", "--insecure-listen"]);
    assert!(server.url().starts_with("http://127.0.0.1:"), "{}", server.url());
    assert_eq!(server.run(&["job", "list"]).code, 0);
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("c.toml"), "data_dir = 'from-file'\njson = true").unwrap();
    let migrate = |args: &[&str], variable: Option<&str>| {
        let mut command = program(folder.path());
        command.args(["migrate", "--config", "c.toml"]).args(args);
        if let Some(value) = variable {
            command.env("EVENKEEL_DATA_DIR", value);
        }
        let output = command.output().unwrap();
        assert!(output.status.success());
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["store"].as_str().unwrap().to_owned()
    };
    assert_eq!(migrate(&[], None), "sqlite:from-file/evenkeel.db");
    assert_eq!(migrate(&[], Some("from-env")), "sqlite:from-env/evenkeel.db");
    let flag = ["--data-dir", "from-flag"];
    assert_eq!(migrate(&flag, Some("from-env")), "sqlite:from-flag/evenkeel.db");
}

#[test]
fn a_password_shows_up_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    for store in ["mysql://ann:s3cret@db/x", "postgres://ann:s3cret@127.0.0.1:bad/x"] {
        let output = program(folder.path())
            .env("EVENKEEL_STORE", store)
            .env("EVENKEEL_TOKEN", "s3cret")
            .args(["migrate"])
            .output()
            .unwrap();
        assert!(!output.status.success());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!said.contains("s3cret"), "{said}");
    }
    let output = program(folder.path())
        .env("EVENKEEL_STORE", "postgres://ann:s3cret@db/x")
        .env("EVENKEEL_TOKEN", "s3cret")
        .args(["serve", "--help"])
        .output()
        .unwrap();
    assert!(!String::from_utf8(output.stdout).unwrap().contains("s3cret"));
}
