//! How much memory a JSON text takes once it is parsed, estimated from the text alone.
//!
//! A parsed value can be a hundred times as large as its text: `{"":0}` is 6 bytes of text and
//! 632 bytes of memory. Limits on the length of a body therefore don't bound memory; this does.

/// Memory that one document may take once it is parsed.
pub(crate) const DOCUMENT_WEIGHT_MAX: usize = 16 * 1024 * 1024;
/// Lists and objects may lie this deep in each other. The parser itself refuses more.
pub(crate) const DEPTH_MAX: usize = 128;

/// The first node of a map: room for eleven entries, also if there is only one.
const OBJECT: usize = 640;
/// The least room of a list that is not empty: four values.
const LIST: usize = 128;
/// A value, in a list that doubled its room to hold it.
const ITEM: usize = 64;
/// An entry of a map whose nodes are half full, on top of its value.
const ENTRY: usize = 64;
/// The least allocation of a text.
const TEXT: usize = 32;

/// What a text of JSON becomes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Weight {
    /// Bytes of memory, about, and rather too many than too few.
    pub bytes: usize,
    /// How deep lists and objects lie in each other.
    pub depth: usize,
}

impl Weight {
    /// Weighs a text, which need not be valid JSON, in one pass and without allocating.
    pub(crate) fn of(text: &[u8]) -> Self {
        let (mut bytes, mut depth, mut deepest) = (text.len(), 0_usize, 0);
        let mut before = b' ';
        let mut rest = text.iter();
        while let Some(byte) = rest.next() {
            match byte {
                b'"' => {
                    bytes += TEXT;
                    skip_text(&mut rest);
                }
                b'{' | b'[' => {
                    bytes += if *byte == b'{' { OBJECT } else { LIST };
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                b'}' | b']' => {
                    // Empty ones allocate nothing.
                    match before {
                        b'{' => bytes -= OBJECT,
                        b'[' => bytes -= LIST,
                        _ => {}
                    }
                    depth = depth.saturating_sub(1);
                }
                b',' => bytes += ITEM,
                b':' => bytes += ENTRY,
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                before = *byte;
            }
        }
        Self { bytes, depth: deepest }
    }

    /// Memory to reserve for a document: none if it is refused for its weight.
    pub(crate) const fn reserved(self) -> usize {
        if self.bytes > DOCUMENT_WEIGHT_MAX { 0 } else { self.bytes }
    }
}

/// Skips the rest of a text, up to and with its closing quote.
fn skip_text(rest: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(rest.next()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    #[test]
    fn weight_tells_dense_texts_from_plain_ones() {
        let recount_load = |text: &str| Weight::of(text.as_bytes()).bytes;
        assert_eq!(recount_load("\"{[,:\\\"{[\""), 10 + TEXT, "what is quoted is text");
        assert_eq!(recount_load("[ ]"), 3, "empty lists allocate nothing");
        assert_eq!(recount_load("{\"a\":{}}"), 8 + TEXT + OBJECT + ENTRY);
        let plain = format!("\"{}\"", "x".repeat(1_000_000));
        assert!(recount_load(&plain) < 1_100_000);
        let dense = format!("[{}0]", "{\"\":0},".repeat(100_000));
        assert!(recount_load(&dense) > 64_000_000);
    }

    #[test]
    fn weight_knows_the_depth() {
        assert_eq!(Weight::of(b"[{\"a\": [1]}, [[]]]").depth, 3);
        assert_eq!(Weight::of(b"]]]][").depth, 1, "also of what is not JSON");
    }

    /// The bytes that a value allocates, counted from the sizes of its parts.
    fn allocated(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len(),
            Value::Array(items) => {
                let own = items.capacity() * size_of::<Value>();
                own + items.iter().map(allocated).sum::<usize>()
            }
            Value::Object(map) => map_bytes(map),
            _ => 0,
        }
    }

    fn map_bytes(map: &Map<String, Value>) -> usize {
        // Each node but the root has at least five entries and room for eleven.
        let nodes = if map.is_empty() { 0 } else { 1 + map.len() / 6 };
        let node = 11 * (size_of::<String>() + size_of::<Value>()) + 16;
        let inner = map.iter().map(|(key, value)| key.len() + allocated(value));
        nodes * node + inner.sum::<usize>()
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<u32>().prop_map(Value::from),
            "[a\\\\\"{\\[,:]{0,9}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 200, 20, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..20).prop_map(Value::from),
                prop::collection::hash_map("[a-z\"]{0,4}", inner, 0..20)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn weight_is_never_less_than_what_is_allocated(value in values()) {
            let text = value.to_string();
            let parsed: Value = serde_json::from_str(&text).unwrap();
            prop_assert!(Weight::of(text.as_bytes()).bytes >= allocated(&parsed));
        }
    }
}
