//! `evenkeel bench`: benchmarks on this machine.

use evenkeel_bench::BenchArgs;

use super::Context;
use crate::serve::executors::supervisor_command;
use crate::{Failure, Result};

pub(super) fn run(context: &Context, args: &BenchArgs) -> Result {
    let supervisor = supervisor_command();
    let runtime = context.multi_threaded_runtime()?;
    let report = runtime
        .block_on(evenkeel_bench::run(args, context.output.is_json(), supervisor))
        .map_err(|error| Failure::because("the measurement failed", error.as_ref()))?;
    match report {
        None => Ok(()),
        Some(report) => context.output.json_or_text(&report, &report.table()),
    }
}
