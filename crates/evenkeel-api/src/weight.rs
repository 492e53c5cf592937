//! Estimates the memory that a JSON text will need once parsed, without parsing it.
//!
//! A parsed value can be a hundred times as large as its text: `{"":0}` is 6 bytes of text and 632
//! bytes of memory. A limit on the length of a body therefore does not limit memory; a limit on the
//! estimated memory does.

/// Maximum memory of one parsed document, in bytes.
pub(crate) const DOCUMENT_WEIGHT_MAX: usize = 16 * 1024 * 1024;
/// Maximum nesting of lists and objects, the same as in the JSON parser.
pub(crate) const DEPTH_MAX: usize = 128;

/// Bytes of the first node of a map, which has space for eleven entries even if only one is used.
const OBJECT: usize = 640;
/// Bytes of the smallest non-empty list, which has space for four values.
const LIST: usize = 128;
/// Bytes per value in a list whose capacity was just doubled.
const ITEM: usize = 64;
/// Bytes per entry of a half-full map, in addition to its value.
const ENTRY: usize = 64;
/// Bytes of the smallest allocation for a string.
const TEXT: usize = 32;

/// The estimated size of a parsed JSON text.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Weight {
    /// Estimated bytes of memory, rounded up.
    pub bytes: usize,
    /// Nesting depth of lists and objects.
    pub depth: usize,
}

impl Weight {
    /// Estimates the memory of a JSON text in one pass and without allocating; the text may be
    /// invalid JSON.
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
                    // Empty lists and objects allocate nothing.
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

    /// Returns the memory to reserve for a document, in bytes; 0 if the document is too large and
    /// will be refused.
    pub(crate) const fn reserved(self) -> usize {
        if self.bytes > DOCUMENT_WEIGHT_MAX { 0 } else { self.bytes }
    }
}

/// Skips the rest of a string and its closing quote.
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
    fn weight_distinguishes_dense_from_plain_texts() {
        let bytes = |text: &str| Weight::of(text.as_bytes()).bytes;
        assert_eq!(bytes("\"{[,:\\\"{[\""), 10 + TEXT, "quoted text counts as text");
        assert_eq!(bytes("[ ]"), 3, "empty lists allocate nothing");
        assert_eq!(bytes("{\"a\":{}}"), 8 + TEXT + OBJECT + ENTRY);
        let plain = format!("\"{}\"", "x".repeat(1_000_000));
        assert!(bytes(&plain) < 1_100_000);
        let dense = format!("[{}0]", "{\"\":0},".repeat(100_000));
        assert!(bytes(&dense) > 64_000_000);
    }

    #[test]
    fn weight_measures_the_nesting_depth() {
        assert_eq!(Weight::of(b"[{\"a\": [1]}, [[]]]").depth, 3);
        assert_eq!(Weight::of(b"]]]][").depth, 1, "also for text that is not JSON");
    }

    /// Counts the bytes that a value allocates.
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
        // Each node of the map except the root has at least five entries and space for eleven.
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
        fn weight_is_an_upper_bound_of_the_allocated_memory(value in values()) {
            let text = value.to_string();
            let parsed: Value = serde_json::from_str(&text).unwrap();
            prop_assert!(Weight::of(text.as_bytes()).bytes >= allocated(&parsed));
        }
    }
}
