//! Parts that the pages with lists share: filters, addresses and confirmations.

use maud::{Markup, html};

use crate::backend::escape;
use crate::session::Session;

/// Names and values of the parameters of an address or a form.
pub(crate) type Fields<'a> = [(&'a str, &'a str)];

/// Returns an address with those parameters that have a value.
pub(crate) fn address(path: &str, fields: &Fields<'_>) -> String {
    let mut address = path.to_owned();
    let mut separator = if path.contains('?') { '&' } else { '?' };
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        address.push_str(&format!("{separator}{}={}", escape(name), escape(value)));
        separator = '&';
    }
    address
}

/// A filter that offers all values of a field: value and text.
pub(crate) fn choice(name: &str, label: &str, options: &[(&str, &str)], selected: &str) -> Markup {
    html! {
        div.pair {
            label for=(name) { (label) }
            select id=(name) name=(name) {
                option value="" { "all" }
                @for (value, text) in options {
                    option value=(value) selected[*value == selected] { (text) }
                }
            }
        }
    }
}

/// A filter that the user types.
pub(crate) fn input(name: &str, label: &str, value: &str, example: &str) -> Markup {
    html! {
        div.pair {
            label for=(name) { (label) }
            input id=(name) name=(name) value=(value) placeholder=(example);
        }
    }
}

/// The field for words to search for.
pub(crate) fn search(value: &str) -> Markup {
    html! {
        div.pair {
            label for="q" { "Search" }
            input id="q" name="q" type="search" value=(value);
        }
    }
}

/// A page's text that asks before a command is sent.
pub(crate) struct Confirmation<'a> {
    pub(crate) title: &'a str,
    /// What the command will do, and to how many items.
    pub(crate) text: Markup,
    /// The route that receives the form, and its fields.
    pub(crate) action: &'a str,
    pub(crate) fields: &'a Fields<'a>,
    pub(crate) label: &'a str,
    /// The page to return to without a change.
    pub(crate) back: &'a str,
}

impl Confirmation<'_> {
    pub(crate) fn render(&self, session: &Session) -> Markup {
        html! {
            h1 { (self.title) }
            (self.text)
            div.commands {
                (crate::layout::primary_button(session, self.action, self.fields, self.label))
                a href=(self.back) { "Go back without a change" }
            }
        }
    }
}

/// Returns a number with its noun, for example "1 job" or "3 jobs".
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_has_only_parameters_with_a_value() {
        assert_eq!(address("/a", &[("x", ""), ("y", "1&2"), ("z", "3")]), "/a?y=1%262&z=3");
        assert_eq!(address("/a?n=1", &[("x", "2")]), "/a?n=1&x=2");
        assert_eq!(address("/a", &[]), "/a");
    }

    #[test]
    fn count_uses_the_plural_for_other_numbers_than_one() {
        assert_eq!(
            [count(0, "job"), count(1, "job"), count(2, "job")],
            ["0 jobs", "1 job", "2 jobs"]
        );
    }
}
