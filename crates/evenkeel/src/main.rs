//! The `evenkeel` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The command line is checked for supervisor mode first, because the server starts a supervisor
    // for each shell program, and the supervisor must start quickly.
    if std::env::args_os().nth(1).is_some_and(|command| command == evenkeel::SUPERVISE) {
        return evenkeel_executors::supervisor::main();
    }
    evenkeel::main()
}
