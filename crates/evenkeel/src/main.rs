//! The `evenkeel` program.

use std::process::ExitCode;

/// The allocator of the C library makes the threads of the API wait for each other: with it, the API
/// answers a quarter fewer requests.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The command line is checked for supervisor mode first, because the server starts a supervisor
    // for each shell program, and the supervisor must start quickly.
    if std::env::args_os().nth(1).is_some_and(|command| command == evenkeel::SUPERVISE) {
        return evenkeel_executors::supervisor::main();
    }
    evenkeel::main()
}
