//! Collects the conformance cases, so that a case is declared only where it is written.
//!
//! A conformance case is a function `pub async fn name(opened: Opened)` in `src/cases`. The
//! generated file contains a table of all cases and the macro `store_conformance!`, which makes one
//! test of each case. The tests of each store use the compiled cases in this table instead of
//! compiling the cases again.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src/cases");
    let mut files: Vec<_> = fs::read_dir("src/cases")?.collect::<io::Result<_>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    let (mut table, mut tests) = (String::new(), String::new());
    for file in files {
        let text = fs::read_to_string(file.path())?;
        let name = file.file_name();
        let module = name.to_string_lossy().trim_end_matches(".rs").to_owned();
        let mut of_module = String::new();
        for case in cases_of(&text) {
            let run = format!("|opened| Box::pin(cases::{module}::{case}(opened))");
            table += &format!("    Case {{ name: \"{module}::{case}\", run: {run} }},\n");
            let call = format!("$crate::run_case($open, \"{module}::{case}\")");
            of_module += &format!("            #[test]\n            fn {case}() {{ {call} }}\n");
        }
        if !of_module.is_empty() {
            tests += &format!(
                "        mod {module} {{\n            use super::*;\n{of_module}        }}\n"
            );
        }
    }
    let generated = format!(
        "static CASES: &[Case] = &[\n{table}];\n\n\
         /// Tests a store with `store_conformance!(open)`. Each conformance case becomes a test.\n\
         /// `open` is an `async fn() -> Opened` that creates an empty database.\n\
         #[macro_export]\nmacro_rules! store_conformance {{\n    ($open:path) => {{\n{tests}    }};\n}}\n"
    );
    let folder = env::var_os("OUT_DIR").unwrap_or_default();
    fs::write(Path::new(&folder).join("cases.rs"), generated)
}

fn cases_of(text: &str) -> impl Iterator<Item = &str> {
    let functions = text.lines().filter_map(|line| line.strip_prefix("pub async fn "));
    functions.filter_map(|rest| Some(rest.split_once("(opened: Opened)")?.0))
}
