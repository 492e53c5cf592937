//! The `evenkeel` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all, because a supervisor is started for every shell body and has to start quickly.
    if std::env::args_os().nth(1).is_some_and(|command| command == evenkeel::SUPERVISE) {
        return evenkeel_executors::supervisor::main();
    }
    evenkeel::main()
}
