//! `cargo xtask screenshots`: takes pictures of all pages of the dashboard.

use crate::program::succeed;
use crate::{browser, workspace};
use anyhow::Result;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(15 * 60);
const FOLDER: &str = "screenshots";

/// Takes a picture of each page in light, dark and forced colours, and in a wide and a narrow window.
pub fn run() -> Result<()> {
    let python = browser::prepare()?;
    let name = "take_screenshots.py";
    succeed(&mut browser::script(python, &browser::BUILD_SERVER, name, FOLDER)?, LIMIT)?;
    println!("the pictures are in {}", workspace::target()?.join(FOLDER).display());
    Ok(())
}
