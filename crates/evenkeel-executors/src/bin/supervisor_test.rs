//! The supervisor as a program of its own, for this crate's tests.

fn main() -> std::process::ExitCode {
    evenkeel_executors::supervisor::main()
}
