//! Tests of flags, environment variables and the config file.

use crate::support::{Server, program, run};

fn refused(file: &str, args: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("evenkeel.toml"), file).unwrap();
    let result = run(folder.path(), &[&["serve", "--config", "evenkeel.toml"], args].concat());
    assert_eq!(result.code, 2, "{result:?}");
    assert!(!folder.path().join("evenkeel-data").exists(), "nothing was started");
    result.err
}

#[test]
fn bad_config_file_is_refused_with_its_line_and_advice() {
    let result = refused("lisen = '127.0.0.1:1'", &[]);
    assert!(result.contains("\"lisen\"") && result.contains("did you mean listen?"), "{result}");
    let result = refused("workers = 4\nworkers = 5", &[]);
    assert!(result.contains("line 2"), "{result}");
    let result = refused("[engine]\nlease_seconds = 3", &[]);
    assert!(result.contains("ping_seconds") && result.contains("lease_seconds"), "{result}");
    let result = refused("", &["--roles", "api"]);
    assert!(result.contains("postgres://"), "{result}");
}

#[test]
fn public_address_needs_insecure_listen() {
    let result = refused("", &["--listen", "0.0.0.0:0"]);
    assert!(result.contains("--insecure-listen"), "{result}");
    let server = Server::start(&["--listen", "0.0.0.0:0", "--insecure-listen"]);
    assert!(server.url().starts_with("http://127.0.0.1:"), "{}", server.url());
    assert_eq!(server.run(&["job", "list"]).code, 0);
}

#[test]
fn flags_override_variables_and_variables_override_the_file() {
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
fn password_is_never_printed() {
    let folder = tempfile::tempdir().unwrap();
    for store in ["mysql://ann:s3cret@db/x", "postgres://ann:s3cret@127.0.0.1:bad/x"] {
        let output = program(folder.path())
            .env("EVENKEEL_STORE", store)
            .env("EVENKEEL_TOKEN", "s3cret")
            .args(["migrate"])
            .output()
            .unwrap();
        assert!(!output.status.success());
        let result = String::from_utf8(output.stderr).unwrap();
        assert!(!result.contains("s3cret"), "{result}");
    }
    let output = program(folder.path())
        .env("EVENKEEL_STORE", "postgres://ann:s3cret@db/x")
        .env("EVENKEEL_TOKEN", "s3cret")
        .args(["serve", "--help"])
        .output()
        .unwrap();
    assert!(!String::from_utf8(output.stdout).unwrap().contains("s3cret"));
}
