//! Reads SQL statements from files that contain several statements each.
//!
//! A file consists of sections. A section that begins with a line `-- :name claim_take` contains
//! one statement. A section that begins with `-- :fragment queue_columns` contains text that
//! statements of any file include as `{queue_columns}`.
//!
//! A section may list its parameters: `-- :name claim_take (node, limit)`. The statement uses the
//! listed parameters as `:node` and `:limit`, and the caller passes the values in the order of the
//! list. To add a parameter, append it to the list; the other parameters keep their numbers.

use std::collections::HashMap;

/// How a database writes a numbered parameter.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Placeholder {
    /// `$1`, as PostgreSQL does.
    Dollar,
    /// `?1`, as SQLite does.
    Question,
}

/// All SQL statements of one store, by name.
#[derive(Debug)]
pub struct Statements(HashMap<&'static str, String>);

struct Section {
    name: &'static str,
    parameters: Vec<&'static str>,
    text: &'static str,
    is_fragment: bool,
}

impl Statements {
    /// Reads the statements of `files`. Each `{name}` in a statement is replaced by the constant or
    /// else the fragment of that name; other braces are not changed. Constants such as
    /// `{attempt.running}` come from [`codes`](crate::codes).
    ///
    /// # Panics
    ///
    /// Panics if a file is malformed, a name occurs twice, or a statement uses a parameter that its
    /// section does not list or an unknown name in braces. The SQL files are compiled into the
    /// program, and a test of each store reads them.
    pub fn read(
        files: &[&'static str],
        placeholder: Placeholder,
        constants: &[(String, String)],
    ) -> Self {
        let sections: Vec<Section> = files.iter().flat_map(|file| sections_of(file)).collect();
        let mut included: HashMap<&str, &str> =
            constants.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        for fragment in sections.iter().filter(|section| section.is_fragment) {
            let text = without_comment(fragment.text).trim_end();
            assert!(included.insert(fragment.name, text).is_none(), "{} twice", fragment.name);
        }
        let mut statements = HashMap::new();
        for section in sections.iter().filter(|section| !section.is_fragment) {
            let text = include(section.text, &included, 0);
            let text = number_parameters(section, &text, placeholder);
            assert!(statements.insert(section.name, text).is_none(), "{} twice", section.name);
        }
        Self(statements)
    }

    /// Returns the statement called `name`.
    ///
    /// # Panics
    ///
    /// Panics if no statement has this name. A test of each store looks up every statement name
    /// that the store uses.
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_else(|| panic!("no SQL statement is called {name}"))
    }

    /// Returns the names of all statements, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }
}

fn sections_of(file: &'static str) -> Vec<Section> {
    let mut starts: Vec<usize> = file.match_indices("-- :").map(|(at, _)| at).collect();
    starts.retain(|&at| at == 0 || file.as_bytes()[at - 1] == b'\n');
    let ends = starts.iter().skip(1).copied().chain([file.len()]);
    starts.iter().zip(ends).map(|(&start, end)| section_of(&file[start..end])).collect()
}

fn section_of(text: &'static str) -> Section {
    let (head, body) = text.split_once('\n').unwrap_or((text, ""));
    let head = head.trim_start_matches("-- :");
    let (kind, rest) = head.split_once(' ').unwrap_or((head, ""));
    let is_fragment = match kind {
        "name" => false,
        "fragment" => true,
        _ => panic!("a section begins with `-- :name` or `-- :fragment`, not with `-- :{kind}`"),
    };
    // A long parameter list continues on the following comment lines up to the closing bracket.
    let (name, list, body) = match rest.split_once('(') {
        None => (rest.trim(), "", body),
        Some((name, list)) => match list.split_once(')') {
            Some((list, _)) => (name.trim(), list, body),
            None => {
                let from = text.find('(').map_or(0, |at| at + 1);
                let to = text.find(')').unwrap_or_else(|| panic!("{name} has an open bracket"));
                let body = text[to..].split_once('\n').map_or("", |(_, body)| body);
                (name.trim(), &text[from..to], body)
            }
        },
    };
    let parameters = list.split([',', '\n', ' ', '-']).filter(|word| !word.is_empty()).collect();
    Section { name, parameters, text: body, is_fragment }
}

/// Removes the comment lines at the start of a fragment.
fn without_comment(mut text: &str) -> &str {
    while text.starts_with("--") {
        text = text.split_once('\n').map_or("", |(_, rest)| rest);
    }
    text
}

/// Maximum nesting of fragments within fragments. Fragments that are nested deeper are reported as
/// a cycle.
const DEPTH_MAX: usize = 8;

fn include(text: &str, included: &HashMap<&str, &str>, depth: usize) -> String {
    assert!(depth < DEPTH_MAX, "fragments include each other in a cycle: {text}");
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        let value = rest.find('}').and_then(|close| Some((included.get(&rest[1..close])?, close)));
        match value {
            Some((value, close)) => {
                out.push_str(&include(value, included, depth + 1));
                rest = &rest[close + 1..];
            }
            None => {
                assert!(!is_name(rest), "no constant or fragment has the name in {rest}");
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns true if `text` starts with a name in braces such as `{attempt.running}` or
/// `{job_columns}`.
fn is_name(text: &str) -> bool {
    let name = text[1..].split_once('}').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == '.')
}

fn number_parameters(section: &Section, text: &str, placeholder: Placeholder) -> String {
    if section.parameters.is_empty() {
        return text.to_owned();
    }
    let mark = match placeholder {
        Placeholder::Dollar => '$',
        Placeholder::Question => '?',
    };
    replace_parameters(text, |name| {
        let number = section.parameters.iter().position(|known| *known == name);
        let number = number.unwrap_or_else(|| {
            panic!("statement {} does not list its parameter {name}", section.name)
        });
        format!("{mark}{}", number + 1)
    })
}

/// Numbers the parameters of an SQL statement that is built from sections without parameter lists.
/// `$1` is the first parameter name that occurs, `$2` the second, and so on. Also returns the
/// parameter names in the order of their numbers.
pub fn number_by_occurrence(text: &str) -> (String, Vec<String>) {
    let mut names: Vec<String> = Vec::new();
    let numbered = replace_parameters(text, |name| {
        let known = names.iter().position(|known| known == name);
        let number = known.unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        format!("${}", number + 1)
    });
    (numbered, names)
}

/// Replaces each parameter `:name`. SQL casts (`::int8`) and comments are not changed.
fn replace_parameters(text: &str, mut replacement: impl FnMut(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (code, comment) = line.split_at(line.find("--").unwrap_or(line.len()));
        let mut rest = code;
        while let Some(colon) = rest.find(':') {
            let (before, after) = (&rest[..colon], &rest[colon + 1..]);
            let length =
                after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            out.push_str(before);
            if let Some(cast) = after.strip_prefix(':') {
                out.push_str("::");
                rest = cast;
            } else if length == 0 || after.starts_with(|c: char| c.is_ascii_digit()) {
                out.push(':');
                rest = after;
            } else {
                out.push_str(&replacement(&after[..length]));
                rest = &after[length..];
            }
        }
        out.push_str(rest);
        out.push_str(comment);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "-- Everything about jobs.\n\n\
        -- :fragment columns\n-- Of one job.\njob_no, name\n\n\
        -- :name get (tenant, id)\n-- Finds one: by its id.\n\
        SELECT {columns}, '12:30' FROM job WHERE t = :tenant::int4 AND id = :id AND s = {deleted};\n\n\
        -- :name change (\n--   id, name,\n--   note\n-- )\nUPDATE job SET name = :name, note = :note WHERE id = :id;\n\n\
        -- :name plain\nSELECT $1, '{0.1, 1}';\n";

    fn read(placeholder: Placeholder) -> Statements {
        Statements::read(&[FILE], placeholder, &[("deleted".into(), "3".into())])
    }

    #[test]
    fn fragments_and_constants_are_included() {
        let statements = read(Placeholder::Dollar);
        let text = "-- Finds one: by its id.\n\
            SELECT job_no, name, '12:30' FROM job WHERE t = $1::int4 AND id = $2 AND s = 3;\n\n";
        assert_eq!(statements.get("get"), text);
    }

    #[test]
    fn parameters_are_numbered_in_the_order_of_their_list() {
        let statements = read(Placeholder::Question);
        assert_eq!(
            statements.get("change").trim(),
            "UPDATE job SET name = ?2, note = ?3 WHERE id = ?1;"
        );
    }

    #[test]
    fn a_statement_without_a_list_keeps_its_numbers_and_other_braces() {
        assert_eq!(read(Placeholder::Dollar).get("plain").trim(), "SELECT $1, '{0.1, 1}';");
    }

    #[test]
    #[should_panic(expected = "the name in {attempt.runing}")]
    fn a_misspelt_name_is_refused() {
        Statements::read(&["-- :name x\nSELECT {attempt.runing};\n"], Placeholder::Dollar, &[]);
    }

    #[test]
    #[should_panic(expected = "does not list its parameter b")]
    fn an_unlisted_parameter_is_refused() {
        Statements::read(&["-- :name x (a)\nSELECT :a, :b;\n"], Placeholder::Dollar, &[]);
    }

    #[test]
    fn parameters_without_a_list_are_numbered_by_occurrence() {
        let (text, names) = number_by_occurrence("SELECT :b::int8, :a -- not :c\n, :b, '12:30';");
        assert_eq!(text, "SELECT $1::int8, $2 -- not :c\n, $1, '12:30';");
        assert_eq!(names, ["b", "a"]);
    }
}
