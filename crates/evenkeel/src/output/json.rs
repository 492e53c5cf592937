//! JSON output.

use serde::Serialize;

use super::Output;
use crate::Failure;

impl Output {
    /// Writes a value as JSON on one line.
    pub fn json(self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value)
            .map_err(|error| Failure::because("the answer could not be written", &error))?;
        self.line(&text)
    }
}
