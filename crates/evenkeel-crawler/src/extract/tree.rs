//! A simple tree of the elements of a page, for CSS selectors.
//!
//! Browsers repair bad markup in ways that can turn a small page into a huge tree of elements. This
//! module only closes elements whose end tag is often left out, and otherwise takes tags in page
//! order. The size of the tree is proportional to the size of the page, and its depth is bounded.

use ego_tree::NodeId;
use html5ever::QualName;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::Tag;
use scraper::node::{Element, Text};
use scraper::{ElementRef, Html, Node};
use serde_json::{Map, Value};

use super::text::one_line;
use super::{Budget, TooHard};
use crate::fields::{FIELD_BYTES_MAX, FIELD_VALUES_MAX, FIELDS_BYTES_MAX, Field};

/// Maximum depth of the tree of elements; deeper elements become siblings.
const DEPTH_MAX: usize = 512;
/// Maximum number of elements, attributes and texts in the tree. Each node of the tree takes 100 to
/// 200 bytes of memory, however short its text in the page is.
pub(super) const NODES_MAX: usize = 250_000;

pub(super) struct TreeMaker {
    html: Html,
    /// The open elements, from the document to the current element.
    open: Vec<(NodeId, Box<str>)>,
    nodes_left: usize,
    is_too_large: bool,
}

impl TreeMaker {
    pub(super) fn new() -> Self {
        let html = Html::new_document();
        let open = vec![(html.tree.root().id(), "".into())];
        Self { html, open, nodes_left: NODES_MAX, is_too_large: false }
    }

    pub(super) fn start(&mut self, tag: Tag) {
        let name: Box<str> = (&*tag.name).into();
        self.close_implied(&name);
        if self.open.len() >= DEPTH_MAX {
            self.open.pop();
        }
        let is_void = is_void(&name);
        let size = 1 + tag.attrs.len();
        let element = Element::new(QualName::new(None, html5ever::ns!(html), tag.name), tag.attrs);
        let id = self.append(Node::Element(element), size);
        if let Some(id) = id
            && !is_void
        {
            self.open.push((id, name));
        }
    }

    pub(super) fn end(&mut self, tag: &Tag) {
        if let Some(at) = self.open.iter().rposition(|(_, name)| **name == *tag.name) {
            self.open.truncate(at.max(1));
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.append(Node::Text(Text { text: StrTendril::from(text) }), 1);
    }

    pub(super) fn finish(self) -> Result<Html, TooHard> {
        if self.is_too_large { Err(TooHard) } else { Ok(self.html) }
    }

    fn append(&mut self, node: Node, size: usize) -> Option<NodeId> {
        if self.is_too_large || size > self.nodes_left {
            self.is_too_large = true;
            return None;
        }
        self.nodes_left -= size;
        let (parent, _) = self.open.last()?;
        Some(self.html.tree.get_mut(*parent)?.append(node).id())
    }

    /// Closes elements whose end tag is optional; for example, a `<li>` closes an open `<li>` of
    /// the same list.
    fn close_implied(&mut self, name: &str) {
        let (closes, within): (&[&str], &[&str]) = match name {
            "li" => (&["li"], &["ul", "ol", "menu"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl"]),
            "tr" => (&["tr"], &["table", "tbody", "thead", "tfoot"]),
            "td" | "th" => (&["td", "th"], &["tr", "table"]),
            "option" => (&["option"], &["select", "datalist", "optgroup"]),
            "tbody" | "thead" | "tfoot" => (&["tbody", "thead", "tfoot"], &["table"]),
            "p" | "div" | "ul" | "ol" | "dl" | "table" | "h1" | "h2" | "h3" | "h4" | "h5"
            | "h6" | "section" | "article" | "form" | "pre" | "blockquote" | "main" | "nav"
            | "header" | "footer" | "aside" | "hr" => {
                // A paragraph is closed only if it is the direct parent, because a paragraph can
                // contain only inline elements.
                if self.open.last().is_some_and(|(_, open)| **open == *"p") {
                    self.open.pop();
                }
                return;
            }
            _ => return,
        };
        for at in (1..self.open.len()).rev() {
            let open = &*self.open[at].1;
            if closes.contains(&open) {
                self.open.truncate(at);
                return;
            }
            if within.contains(&open) {
                return;
            }
        }
    }
}

#[rustfmt::skip]
fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area" | "base" | "br" | "col" | "embed" | "hr" | "img" | "input" | "link" |
        "meta" | "param" | "source" | "track" | "wbr" | "frame"
    )
}

/// Returns the values that the job's fields have in this page.
pub(super) fn select(
    html: &Html,
    fields: &[Field],
    budget: Budget,
) -> Result<Map<String, Value>, TooHard> {
    let mut found = Map::new();
    let mut bytes_left = FIELDS_BYTES_MAX;
    for field in fields {
        let mut values = Vec::new();
        for node in html.tree.root().descendants() {
            let Some(element) = ElementRef::wrap(node) else { continue };
            // The time limit is checked for each element, because a single match can take long.
            budget.check()?;
            if !field.selector.matches(&element) {
                continue;
            }
            let value = match &field.attribute {
                Some(name) => element.value().attr(name).and_then(|v| one_line(v, FIELD_BYTES_MAX)),
                None => text_of(element),
            };
            let Some(value) = value else { continue };
            let Some(left) = bytes_left.checked_sub(value.len()) else { break };
            bytes_left = left;
            values.push(Value::from(value));
            if values.len() >= if field.all { FIELD_VALUES_MAX } else { 1 } {
                break;
            }
        }
        let value = if field.all { Some(Value::Array(values)) } else { values.pop() };
        found.insert(field.name.clone(), value.unwrap_or(Value::Null));
    }
    Ok(found)
}

fn text_of(element: ElementRef<'_>) -> Option<String> {
    let mut text = String::new();
    for part in element.text() {
        text.push_str(part);
        if text.len() > 2 * FIELD_BYTES_MAX {
            break;
        }
    }
    one_line(&text, FIELD_BYTES_MAX)
}
