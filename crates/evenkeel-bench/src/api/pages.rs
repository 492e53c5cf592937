//! The way into the depth of a list.

use super::load::{Ask, Connections};

/// The longest page there is.
const STRIDE: u64 = 1000;
/// Cursors that are remembered at the end of the way.
const CURSORS: usize = 50;

/// Walks `depth` jobs into the list. Says how far it came, and the last cursors on the way.
pub(super) async fn walk(
    connections: &Connections,
    depth: u64,
) -> anyhow::Result<(u64, Vec<String>)> {
    let mut cursors: Vec<String> = Vec::new();
    let mut walked = 0;
    while walked < depth {
        let limit = STRIDE.min(depth - walked);
        let after = cursors.last().map_or_else(String::new, |cursor| format!("&cursor={cursor}"));
        let page = connections.once(Ask::get(format!("/api/v1/jobs?limit={limit}{after}"))).await?;
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        walked += page["jobs"].as_array().map_or(0, Vec::len) as u64;
        if cursors.len() == CURSORS {
            cursors.remove(0);
        }
        cursors.push(cursor.into());
    }
    Ok((walked, cursors))
}
