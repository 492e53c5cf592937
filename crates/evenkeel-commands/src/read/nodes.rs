//! Nodes that a job stays away from.

use super::fields::Fields;
use super::limits::{NAME_CHARS_MAX, NODES_MAX};
use crate::fault::shown;

/// Their names, each once.
pub(super) fn read(fields: &mut Fields<'_>) -> Vec<String> {
    let name = "dont_run_on_nodes";
    let mut nodes: Vec<String> = Vec::new();
    for (index, item) in fields.items(name, NODES_MAX).iter().enumerate() {
        let wrong = match item.as_str() {
            None => "is not a text; put it in quotes",
            Some(node) if node.trim().is_empty() => "is blank",
            Some(node) if node.chars().count() > NAME_CHARS_MAX => "is longer than any node's name",
            Some(node) if node.contains(char::is_control) => "holds control characters",
            Some(node) => {
                if !nodes.iter().any(|known| known == node) {
                    nodes.push(node.into());
                }
                continue;
            }
        };
        fields.fault(&format!("{name}[{index}]"), format!("{} {wrong}", shown(item)));
    }
    nodes
}
