//! Sends requests to a server with an operator's token.

use serde_json::Value;

use crate::database::Database;
use crate::support::{Server, request, wait_for};

/// Creates an operator's token and returns the header that contains it.
pub(crate) fn operator_header(server: &Server, database: &Database) -> String {
    let token = [&["token", "create", "--role", "operator"], &database.args()[..]].concat();
    let result = server.run(&token);
    assert_eq!(result.code, 0, "{result:?}");
    format!("authorization: Bearer {}", result.out.trim())
}

/// Sends a request that must succeed. If `body` is null, the request has no body.
pub(crate) fn send(server: &Server, header: &str, method: &str, path: &str, body: &Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, answer) = request(&server.url(), method, path, header, &body);
    assert!(status < 300, "{method} {path}: {status} {answer}");
    serde_json::from_str(&answer).unwrap()
}

pub(crate) struct ApiClient {
    pub(crate) server: Server,
    header: String,
}

impl ApiClient {
    /// Starts a server whose HTTP jobs may call addresses of this machine.
    pub(crate) fn new(database: &Database) -> Self {
        Self::of(database.serve(&["--allow-network", "127.0.0.0/8"]), database)
    }

    pub(crate) fn of(server: Server, database: &Database) -> Self {
        let header = operator_header(&server, database);
        Self { server, header }
    }

    /// Sends a request and checks the status of the response.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value, status: u16) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (found, answer) = request(&self.server.url(), method, path, &self.header, &body);
        assert_eq!(found, status, "{method} {path}: {answer}");
        serde_json::from_str(&answer).unwrap()
    }

    /// Sends a request that must succeed.
    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        send(&self.server, &self.header, method, path, body)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.ask("GET", path, &Value::Null, 200)
    }

    pub(crate) fn post(&self, path: &str) -> Value {
        self.ask("POST", path, &Value::Null, 200)
    }

    pub(crate) fn create(&self, job: &Value) -> Value {
        self.ask("POST", "/api/v1/jobs", job, 201)
    }

    pub(crate) fn wait_until(&self, job: &str, status: &str) -> Value {
        wait_for(&format!("a job that is {status}"), || {
            let job = self.get(job);
            (job["status"] == status).then_some(job)
        })
    }
}
