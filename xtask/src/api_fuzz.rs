//! `cargo xtask api-fuzz`: Schemathesis generates requests from the OpenAPI document, sends them to
//! real servers, and checks the responses against the document. A server error or an undocumented
//! response fails the task.

use crate::program::{answer, cargo, succeed};
use crate::{provision, python, workspace};
use anyhow::{Context, Result, bail};
use evenkeel_private_postgres::{Options as PostgresOptions, PrivatePostgres, bounded};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The environment variable that selects the store of the server and of client commands.
const STORE_VARIABLE: &str = "EVENKEEL_STORE";

const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);
const START_LIMIT: Duration = Duration::from_secs(60);
const FUZZ_LIMIT: Duration = Duration::from_secs(15 * 60);

/// The checks that must pass. Schemathesis does not know which generated jobs are valid, so no
/// check requires that the server accepts a request. Requests with invalid tokens are not sent,
/// because the rate limiter would soon reject all requests.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance,response_headers_conformance,\
                      unsupported_method";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Number of requests generated for each operation
    #[arg(long, default_value_t = 25)]
    examples: u32,
    /// Seed of the generated requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { examples: 25, seed: 1 }
    }
}

pub fn run(options: &Options) -> Result<()> {
    provision::postgres()?;
    let server = PrivatePostgres::start(PostgresOptions::unit_test())?;
    against_both(&server, &["build", "--package", "evenkeel"], options)
}

/// Fuzzes a server with SQLite and a server with PostgreSQL. `build` contains the arguments of
/// `cargo` that build the server. After a build of the whole workspace, building only the package
/// `evenkeel` would rebuild most dependencies with other features.
pub fn against_both(postgres: &PrivatePostgres, build: &[&str], options: &Options) -> Result<()> {
    let folder = workspace::target()?.join("schemathesis");
    let python = python::with_tool(&folder, "schemathesis")?;
    succeed(&mut cargo(build), BUILD_LIMIT)?;
    let binary = workspace::target()?.join("debug/evenkeel");
    let stores = [("sqlite", None), ("postgres", Some(postgres.create_database("api_fuzz")?))];
    for (name, store) in stores {
        println!("schemathesis against {name}");
        let server_dir = folder.join(name);
        if server_dir.exists() {
            fs::remove_dir_all(&server_dir)?;
        }
        fs::create_dir_all(&server_dir)?;
        let server = Server::start(&binary, &server_dir, store.as_deref())?;
        fuzz(&python, &server, options).with_context(|| {
            format!("against {name}; see the requests in {}", server_dir.join("report").display())
        })?;
    }
    Ok(())
}

fn fuzz(python: &Path, server: &Server, options: &Options) -> Result<()> {
    let token = server.evenkeel(&["token", "create", "--role", "admin"])?;
    fs::write(server.server_dir.join("schemathesis.toml"), server.known_ids()?)?;
    let document = format!("{}/api/openapi.json", server.url);
    let authorization = format!("Authorization: Bearer {}", token.trim());
    let (examples, seed) = (options.examples.to_string(), options.seed.to_string());
    let mut command = Command::new(python);
    command.args(["-m", "schemathesis.cli"]);
    command.args(["--config-file", "schemathesis.toml", "run", &document, "-H", &authorization]);
    command.args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing"]);
    command.args(["--max-examples", &examples, "--seed", &seed, "--workers", "1"]);
    // An event stream never ends.
    command.args(["--exclude-path", "/api/v1/events"]);
    command.args(["--continue-on-failure", "--warnings", "off"]);
    command.args(["--report", "ndjson", "--report-dir", "report"]);
    command.current_dir(&server.server_dir).stdin(Stdio::null());
    succeed(&mut command, FUZZ_LIMIT)
}

/// A server built from this source tree. It is killed on drop.
struct Server {
    binary: PathBuf,
    server_dir: PathBuf,
    store: Option<String>,
    url: String,
    child: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        // `kill` fails only if the server has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(binary: &Path, server_dir: &Path, store: Option<&str>) -> Result<Self> {
        let log = File::create(server_dir.join("server.log"))?;
        let mut command = Command::new(binary);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(server_dir.join("data"));
        command.envs(store.map(|url| (STORE_VARIABLE, url)));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
        let mut server = Self {
            binary: binary.into(),
            server_dir: server_dir.into(),
            store: store.map(str::to_owned),
            url: String::new(),
            child,
        };
        server.url = server.wait_for_url()?;
        Ok(server)
    }

    fn wait_for_url(&mut self) -> Result<String> {
        let server_json = self.server_dir.join("data/server.json");
        let url = bounded::poll(START_LIMIT, || {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status}; see {}", self.server_dir.display());
            }
            let server_json: Option<Value> =
                fs::read(&server_json).ok().and_then(|text| serde_json::from_slice(&text).ok());
            Ok(server_json.and_then(|server_json| server_json["url"].as_str().map(str::to_owned)))
        })?;
        url.with_context(|| format!("the server did not start within {START_LIMIT:?}"))
    }

    /// Runs a client command of the `evenkeel` program and returns its output.
    fn evenkeel(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.binary);
        command.args(arguments).arg("--data-dir").arg(self.server_dir.join("data"));
        command.envs(self.store.as_ref().map(|url| (STORE_VARIABLE, url)));
        Ok(String::from_utf8(answer(&mut command)?)?)
    }

    /// Returns a Schemathesis configuration with ids that exist, because requests with random ids
    /// would always get status 404.
    fn known_ids(&self) -> Result<String> {
        let job = self.evenkeel(&[
            "job", "create", "--noop", "--name", "fuzzed", "--every", "1h", "--json",
        ])?;
        let job: Value = serde_json::from_str(&job)?;
        let job = job["id"].as_str().context("the new job has no id")?;
        let run = self.evenkeel(&["job", "trigger", job, "--json"])?;
        let run: Value = serde_json::from_str(&run)?;
        let run = run["run_id"].as_str().context("the trigger response has no run_id")?;
        // Excludes the API operations that delete or cancel the job, because later requests need
        // the job.
        Ok(format!(
            "[[operations]]\ninclude-path-regex = \"/jobs/\"\nexclude-method = \"DELETE\"\n\
             exclude-path-regex = \"/cancel$\"\nparameters = {{ id = \"{job}\" }}\n\n\
             [[operations]]\ninclude-path-regex = \"/executions/\"\n\
             parameters = {{ id = \"{run}\" }}\n",
        ))
    }
}
