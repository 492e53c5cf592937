//! Parses stored job definitions and keeps one copy of equal definitions.

use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::{Arc, Mutex, Weak};

use evenkeel_core::{Definition, JobNo};
use evenkeel_store::StoreError;
use rustc_hash::{FxHashMap, FxHasher};

use crate::sync::lock;

/// Cache of parsed job definitions. A million jobs with the same definition share one copy in
/// memory. Unused copies are dropped.
#[derive(Debug, Default)]
pub struct Definitions(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// Parsed definitions by the hash of their JSON text. The JSON text is compared as well, to
    /// detect hash collisions.
    read: FxHashMap<u64, (Box<str>, Weak<Definition>)>,
    prune_at: usize,
}

impl Definitions {
    pub fn read(&self, job: JobNo, text: &str) -> Result<Arc<Definition>, StoreError> {
        let hash = BuildHasherDefault::<FxHasher>::default().hash_one(text);
        let mut table = lock(&self.0);
        if let Some((known, shared)) = table.read.get(&hash)
            && **known == *text
            && let Some(definition) = shared.upgrade()
        {
            return Ok(definition);
        }
        let definition: Definition = serde_json::from_str(text)
            .map_err(|fault| StoreError::corrupt(format!("job {job}"), "definition", fault))?;
        let shared = Arc::new(definition);
        if table.read.len() >= table.prune_at {
            table.read.retain(|_, (_, shared)| shared.strong_count() > 0);
            table.prune_at = (table.read.len() * 2).max(1024);
        }
        table.read.insert(hash, (text.into(), Arc::downgrade(&shared)));
        Ok(shared)
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::schedule::{Once, Schedule};

    use super::*;

    #[test]
    fn equal_texts_share_a_definition_and_unused_definitions_are_dropped() {
        let definitions = Definitions::default();
        let once = Schedule::Once(Once::NOW);
        let text = serde_json::to_string(&Definition::noop(once)).unwrap();
        let first = definitions.read(JobNo(1), &text).unwrap();
        let second = definitions.read(JobNo(2), &text).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        let unused = Arc::downgrade(&first);
        drop((first, second));
        assert!(unused.upgrade().is_none());
    }

    #[test]
    fn error_of_an_unreadable_definition_names_its_job() {
        let fault = Definitions::default().read(JobNo(7), "{").unwrap_err();
        assert_eq!(fault.to_string(), "stored definition of job 7 is not readable");
    }
}
