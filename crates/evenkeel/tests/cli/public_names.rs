//! Lists the names that client programs rely on, such as API paths and flags. A changed name breaks
//! client programs, so every name is listed in `docs/public-names.txt`. The diff of that file shows
//! every changed name.
//!
//! The test reads the names of the API, the command line, the configuration and the executors from
//! their definitions in the code. Codes, metrics, environment variables, headers, template
//! variables and log lines have no central definition, so the test finds their names as string
//! literals in the source files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args as _, Command, CommandFactory as _};
use evenkeel::config::raw::{RawClient, RawEngine, RawGlobal, RawServer, RawStore};
use evenkeel::config::{
    RawAccess, RawBalance, RawExecutors, RawLimits, RawQueue, RawShell, RawTargets,
};
use serde_json::Value;

/// Crates without public names, because they are not part of the product.
const TOOLS: [&str; 4] = [
    "evenkeel-bench", "evenkeel-crash-test", "evenkeel-private-postgres", "evenkeel-store-testkit",
];

/// Source text before a string literal that contains a public code, such as a reason code.
const CODE_PLACES: [&str; 5] = ["=> ", "=> (", "=> Some(", "Err(", "of("];

/// Prefixes of the log lines that the specification prescribes.
const LOG_LINES: [&str; 8] = [
    "bucket map rebuilt",
    "cleared stale lock",
    "distribution degraded, consider rebalancing",
    "executing job",
    "job completed",
    "job execution failed",
    "job skipped during rebalance",
    "placed ",
];

/// Update `docs/public-names.txt` with `UPDATE=1 cargo nextest run -p evenkeel public_names`.
#[test]
fn public_names_are_the_listed_ones() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut names = BTreeSet::new();
    add_api(&serde_json::to_value(evenkeel_api::openapi()).unwrap(), &mut names);
    add_command(&evenkeel::cli::Args::command(), "evenkeel", &mut names);
    add_configuration(&mut names);
    for executor in evenkeel_executors::CATALOG.iter() {
        let all = executor.aliases.iter().chain([&executor.kind]);
        names.extend(all.map(|name| format!("executor {name}")));
    }
    add_sources(&root.join("crates"), &mut names);
    let file = root.join("docs/public-names.txt");
    if std::env::var_os("UPDATE").is_some() {
        let lines: Vec<_> = names.iter().map(|name| format!("{name}\n")).collect();
        fs::write(&file, lines.concat()).unwrap();
    }
    let listed = fs::read_to_string(&file).unwrap_or_default();
    let listed: BTreeSet<String> = listed.lines().map(String::from).collect();
    let missing: Vec<_> = listed.difference(&names).collect();
    let new: Vec<_> = names.difference(&listed).collect();
    assert!(
        missing.is_empty() && new.is_empty(),
        "docs/public-names.txt lists names that no longer exist: {missing:#?}, and lacks {new:#?}"
    );
}

fn add_api(document: &Value, names: &mut BTreeSet<String>) {
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let endpoint = format!("api {} {path}", method.to_uppercase());
            names.insert(format!("{endpoint} id {}", operation["operationId"].as_str().unwrap()));
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let field = |name: &str| parameter[name].as_str().unwrap().to_owned();
                names.insert(format!("{endpoint} {} {}", field("in"), field("name")));
            }
            for (status, response) in operation["responses"].as_object().unwrap() {
                names.insert(format!("{endpoint} answers {status}"));
                for header in response["headers"].as_object().into_iter().flatten() {
                    names.insert(format!("{endpoint} answers {status} header {}", header.0));
                }
            }
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        names.insert(format!("schema {name}"));
        add_fields(schema, name, names);
    }
}

fn add_fields(schema: &Value, name: &str, names: &mut BTreeSet<String>) {
    for field in schema["properties"].as_object().into_iter().flatten() {
        names.insert(format!("schema {name} field {}", field.0));
        add_fields(field.1, name, names);
    }
    for value in schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        names.insert(format!("schema {name} value {value}"));
    }
    for part in ["allOf", "oneOf", "anyOf"] {
        for inner in schema[part].as_array().into_iter().flatten() {
            add_fields(inner, name, names);
        }
    }
}

fn add_command(command: &Command, path: &str, names: &mut BTreeSet<String>) {
    names.insert(format!("command {path}"));
    for argument in command.get_arguments() {
        if let Some(long) = argument.get_long() {
            names.insert(format!("command {path} --{long}"));
        } else if argument.is_positional() {
            names.insert(format!("command {path} [{}]", argument.get_id()));
        }
        if let Some(short) = argument.get_short() {
            names.insert(format!("command {path} -{short}"));
        }
    }
    for inner in command.get_subcommands() {
        add_command(inner, &format!("{path} {}", inner.get_name()), names);
    }
}

fn add_configuration(names: &mut BTreeSet<String>) {
    let top = RawGlobal::augment_args(Command::new(""));
    let top = RawServer::augment_args(RawStore::augment_args(RawClient::augment_args(top)));
    let executors = RawShell::augment_args(RawExecutors::augment_args(Command::new("")));
    for (table, command) in [
        ("", top),
        ("engine.", RawEngine::augment_args(Command::new(""))),
        ("executors.", executors),
        ("access.", RawAccess::augment_args(Command::new(""))),
        ("balance.", RawBalance::augment_args(Command::new(""))),
        ("queue.", RawQueue::augment_args(Command::new(""))),
        ("targets.", RawTargets::augment_args(Command::new(""))),
        ("limits.", RawLimits::augment_args(Command::new(""))),
    ] {
        for argument in command.get_arguments() {
            names.insert(format!("config {table}{}", argument.get_id()));
        }
    }
}

fn add_sources(crates: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(crates).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !TOOLS.contains(&name.as_str()) {
            add_folder(&path.join("src"), &name, names);
        }
    }
}

fn add_folder(folder: &Path, krate: &str, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if stem == "tests" || stem.ends_with("_test") || stem.ends_with("_tests") {
            continue;
        }
        if path.is_dir() {
            add_folder(&path, krate, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let product = source.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
            add_literals(product, krate, stem, names);
            add_labels(product, names);
            if krate != "evenkeel" {
                add_variants(product, names);
            }
        }
    }
}

/// Adds string literals that are public names. The form of a literal or the source text before it
/// identifies a public name.
fn add_literals(source: &str, krate: &str, stem: &str, names: &mut BTreeSet<String>) {
    let has_codes = match krate {
        "evenkeel" | "evenkeel-store-sqlite" | "evenkeel-store-postgres" => false,
        // In `evenkeel-store`, only `events.rs` and `scope.rs` contain public codes.
        "evenkeel-store" => ["events", "scope"].contains(&stem),
        _ => true,
    };
    let has_variables = ["evenkeel", "evenkeel-executors"].contains(&krate);
    for line in source.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let pieces: Vec<_> = line.split('"').collect();
        for (before, literal) in pieces.iter().step_by(2).zip(pieces.iter().skip(1).step_by(2)) {
            let follows = |end: &str| before.ends_with(end);
            if has_codes && is_code(literal) && CODE_PLACES.iter().any(|it| follows(it)) {
                names.insert(format!("code {literal}"));
            }
            if has_variables && is_variable(literal) {
                names.insert(format!("env {literal}"));
            }
            if is_metric(literal) {
                names.insert(format!("metric {literal}"));
            }
            let lower = literal.to_lowercase();
            if (lower.starts_with("x-") && is_code(&lower)) || lower == "idempotency-key" {
                names.insert(format!("header {lower}"));
            }
            if LOG_LINES.iter().any(|start| literal.starts_with(start)) {
                names.insert(format!("log {literal}"));
            }
            if stem == "template" && is_code(literal) && line.contains(&format!("\"{literal}\" =>"))
            {
                names.insert(format!("template {{{{{literal}}}}}"));
            }
        }
    }
}

/// Adds the variants of enums that serde serialises in snake case.
fn add_variants(source: &str, names: &mut BTreeSet<String>) {
    for after in source.split("rename_all = \"snake_case\"").skip(1) {
        let body = after.split_once(" enum ").map_or("", |(_, body)| body);
        let mut lines = body.split("\n}").next().unwrap().lines().skip(1);
        while let Some(line) = lines.next().map(str::trim_start) {
            // The attribute `rename` contains the name of the next variant.
            if let Some((_, name)) = line.split_once("#[serde(rename = \"") {
                names.insert(format!("code {}", name.split('"').next().unwrap()));
                lines.next();
                continue;
            }
            if !line.starts_with(|first: char| first.is_ascii_uppercase()) {
                continue;
            }
            let mut code = String::new();
            for c in line.chars().take_while(char::is_ascii_alphanumeric) {
                if c.is_ascii_uppercase() && !code.is_empty() {
                    code.push('_');
                }
                code.push(c.to_ascii_lowercase());
            }
            names.insert(format!("code {code}"));
        }
    }
}

/// Adds the labels of each metric, read from the macro calls of the crate `metrics`.
fn add_labels(source: &str, names: &mut BTreeSet<String>) {
    for call in source.split("metrics::").skip(1) {
        let Some((kind, arguments)) = call.split_once("!(") else { continue };
        if !["counter", "gauge", "histogram"].contains(&kind) {
            continue;
        }
        let arguments = arguments.split(';').next().unwrap();
        let first = arguments.trim_start().split([',', ')']).next().unwrap();
        let name = match first.strip_prefix('"') {
            Some(literal) => literal.trim_end_matches('"').to_owned(),
            None => constant(source, first).unwrap_or_default(),
        };
        for (label, _) in arguments.split(" => ").zip(arguments.split(" => ").skip(1)) {
            let label = label.rsplit('"').nth(1).filter(|_| label.ends_with('"'));
            if let Some(label) = label.filter(|_| is_metric(&name)) {
                names.insert(format!("metric {name} label {label}"));
            }
        }
    }
}

fn constant(source: &str, name: &str) -> Option<String> {
    let (_, rest) = source.split_once(&format!("const {name}: &str = \""))?;
    rest.split('"').next().map(String::from)
}

fn is_code(text: &str) -> bool {
    text.len() > 2
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.ends_with(|last: char| last.is_ascii_lowercase() || last.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c))
}

fn is_metric(text: &str) -> bool {
    ["evenkeel_", "scheduler_"].iter().any(|start| text.starts_with(start)) && is_code(text)
}

fn is_variable(text: &str) -> bool {
    text.contains('_')
        && !text.starts_with("CARGO_")
        && text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}
