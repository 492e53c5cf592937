//! The `evenkeel` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The supervisor is handled first, because one is started for every shell program and must
    // start quickly.
    if std::env::args_os().nth(1).is_some_and(|command| command == evenkeel::SUPERVISE) {
        return evenkeel_executors::supervisor::main();
    }
    evenkeel::main()
}
