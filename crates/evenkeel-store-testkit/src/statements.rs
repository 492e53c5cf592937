//! Checks the SQL files of a store.

use std::collections::BTreeSet;
use std::path::Path;

use evenkeel_store::LIST_SECTIONS;

/// Returns the names in all `sql!("name")` calls in the sources of the crate in `folder`, and the
/// names of the SQL sections for job lists.
pub fn used_statements(folder: &str) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = LIST_SECTIONS.map(str::to_owned).into();
    collect(&Path::new(folder).join("src"), &mut names);
    names
}

fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the source folder can be read") {
        let path = entry.expect("an entry of that folder").path();
        if path.is_dir() {
            collect(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            let uses = text.split("sql!(\"").skip(1);
            names.extend(
                uses.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name.to_owned()),
            );
        }
    }
}
