//! `evenkeel bench` without the rest of the binary.
use clap::Parser;
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    bench: evenkeel_bench::BenchArgs,
}
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if let Some(report) = evenkeel_bench::run(&args.bench, true).await? {
        eprintln!("{}", serde_json::to_string_pretty(&report)?);
    }
    Ok(())
}
