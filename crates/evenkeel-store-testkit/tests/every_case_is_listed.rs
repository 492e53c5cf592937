//! A case that is written but not in the list would check nothing.

use std::fs;
use std::path::Path;

#[test]
fn every_case_is_in_the_list_once() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lists = [
        "list.rs",
        "list_access.rs",
        "list_balance.rs",
        "list_changes.rs",
        "list_control.rs",
        "list_dead.rs",
        "list_dedup.rs",
        "list_events.rs",
        "list_limits.rs",
        "list_lists.rs",
        "list_promises.rs",
        "list_queue.rs",
        "list_settle.rs",
        "list_targets.rs",
    ];
    let list = lists.map(|name| fs::read_to_string(source.join(name)).unwrap()).concat();
    let mut listed = 0;
    for entry in fs::read_dir(source.join("cases")).unwrap() {
        let file = entry.unwrap().path();
        let module = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&file).unwrap();
        let names = text.lines().filter_map(|line| line.strip_prefix("pub async fn "));
        let names: Vec<&str> = names.filter_map(|rest| rest.split('(').next()).collect();
        if names.is_empty() {
            continue;
        }
        let start = list.find(&format!("$open => {module}:")).unwrap_or_else(|| {
            panic!("module {module} is not in the list");
        });
        let part = &list[start..start + list[start..].find('}').unwrap()];
        for name in names {
            let times = part.lines().filter(|line| line.trim() == format!("{name},")).count();
            assert_eq!(times, 1, "{module}::{name}");
            listed += 1;
        }
    }
    assert_eq!(
        list.lines().filter(|line| line.starts_with("            ") && line.ends_with(',')).count(),
        listed
    );
}
