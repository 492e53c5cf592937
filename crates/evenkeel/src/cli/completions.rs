//! `evenkeel completions`

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Context;
use crate::Result;

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel completions bash > /etc/bash_completion.d/evenkeel
  evenkeel completions zsh > ~/.zfunc/_evenkeel
  evenkeel completions fish > ~/.config/fish/completions/evenkeel.fish";

#[derive(Args, Clone)]
pub struct CompletionsArgs {
    /// Shell
    shell: Shell,
}

pub(super) fn run(context: &Context, args: &CompletionsArgs) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Args::command(), "evenkeel", &mut script);
    context.output.line(&String::from_utf8_lossy(&script))
}
