//! Collects title, text, links and metadata from the tokens of a page.

use std::cell::RefCell;

use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult};
use scraper::Html;

use super::text::{Flow, one_line};
use super::tree::TreeMaker;
use super::{Extract, TooHard};

/// Maximum number of links of a page; further links are ignored.
const LINKS_MAX: usize = 2000;
const META_ENTRIES_MAX: usize = 50;
const META_BYTES_MAX: usize = 1000;
const TITLE_BYTES_MAX: usize = 500;

/// What a page contains, before its links are resolved to absolute URLs.
#[derive(Default)]
pub(super) struct Raw {
    /// The title, text, metadata and directives of the page, and its links as the page has them.
    pub(super) extract: Extract,
    pub(super) base: Option<String>,
    pub(super) canonical: Option<String>,
    pub(super) tree: Option<Result<Html, TooHard>>,
}

/// Receives the tokens of a page.
pub(super) struct PageSink(RefCell<State>);

#[derive(Default)]
struct State {
    /// The name of this crawler in robots directives.
    name: String,
    raw: Raw,
    main: Flow,
    /// Text in menus, sidebars and footers, which is used only if the page has no other text.
    aside: Flow,
    /// The enclosing element whose text is ignored, such as `script`.
    hidden: Option<String>,
    asides: Vec<String>,
    title: Option<String>,
    tree: Option<TreeMaker>,
}

impl PageSink {
    pub(super) fn new(name: &str, with_tree: bool) -> Self {
        let tree = with_tree.then(TreeMaker::new);
        Self(RefCell::new(State { name: name.to_owned(), tree, ..State::default() }))
    }

    pub(super) fn finish(self) -> Raw {
        let state = self.0.into_inner();
        let text = if state.main.is_empty() { state.aside } else { state.main }.into_text();
        let extract = Extract { text, ..state.raw.extract };
        Raw { extract, tree: state.tree.map(TreeMaker::finish), ..state.raw }
    }
}

impl TokenSink for PageSink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut state = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(text) => state.text(&text),
            Token::TagToken(tag) => return state.tag(tag),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl State {
    fn text(&mut self, text: &str) {
        if let Some(title) = &mut self.title {
            if title.len() < 4 * TITLE_BYTES_MAX {
                title.push_str(text);
            }
        } else if self.hidden.is_none() {
            if self.asides.is_empty() { &mut self.main } else { &mut self.aside }.push(text);
        }
        if let Some(tree) = &mut self.tree {
            tree.text(text);
        }
    }

    fn tag(&mut self, tag: Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        let flow = if self.asides.is_empty() { &mut self.main } else { &mut self.aside };
        match name {
            "td" | "th" => flow.space(),
            _ if is_block(name) => flow.break_line(),
            _ => {}
        }
        let mut next = TokenSinkResult::Continue;
        match tag.kind {
            TagKind::StartTag => {
                next = self.start(name, &tag);
                if let Some(tree) = &mut self.tree {
                    tree.start(tag);
                }
            }
            TagKind::EndTag => {
                self.end(name);
                if let Some(tree) = &mut self.tree {
                    tree.end(&tag);
                }
            }
        }
        next
    }

    fn start(&mut self, name: &str, tag: &Tag) -> TokenSinkResult<()> {
        match name {
            "a" | "area" => self.link(tag, "href"),
            "frame" | "iframe" => self.link(tag, "src"),
            "base" => self.raw.base = self.raw.base.take().or_else(|| attribute(tag, "href")),
            "link" if rel_has(tag, "canonical") && self.raw.canonical.is_none() => {
                self.raw.canonical = attribute(tag, "href");
            }
            "meta" => self.meta(tag),
            "html" => {
                let lang = attribute(tag, "lang").and_then(|lang| one_line(&lang, 50));
                self.note("lang", lang);
            }
            "title" if self.hidden.is_none() && self.raw.extract.title.is_none() => {
                self.title = Some(String::new());
            }
            // A menu without an end tag ends where the main content of the page begins.
            "main" | "article" => self.asides.clear(),
            _ if is_aside(name) && !tag.self_closing && self.asides.len() < 100 => {
                self.asides.push(name.to_owned());
            }
            _ => {}
        }
        if self.hidden.is_none() && is_hidden(name) && !(tag.self_closing && name == "svg") {
            self.hidden = Some(name.to_owned());
        }
        match name {
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "xmp" | "iframe" | "noembed" | "noframes" => {
                TokenSinkResult::RawData(RawKind::Rawtext)
            }
            "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            "plaintext" => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        }
    }

    fn end(&mut self, name: &str) {
        if name == "title"
            && let Some(title) = self.title.take()
        {
            self.raw.extract.title = one_line(&title, TITLE_BYTES_MAX);
        }
        if self.hidden.as_deref() == Some(name) {
            self.hidden = None;
        } else if let Some(at) = self.asides.iter().rposition(|aside| aside == name) {
            self.asides.truncate(at);
        }
    }

    fn link(&mut self, tag: &Tag, from: &str) {
        if self.raw.extract.links.len() < LINKS_MAX
            && !rel_has(tag, "nofollow")
            && let Some(link) = attribute(tag, from)
        {
            self.raw.extract.links.push(link);
        }
    }

    fn meta(&mut self, tag: &Tag) {
        let Some(content) = attribute(tag, "content") else { return };
        let is_refresh =
            attribute(tag, "http-equiv").is_some_and(|key| key.eq_ignore_ascii_case("refresh"));
        if is_refresh {
            if let Some((_, target)) = content.split_once('=')
                && self.raw.extract.links.len() < LINKS_MAX
            {
                self.raw.extract.links.push(target.trim().trim_matches(['"', '\'']).to_owned());
            }
            return;
        }
        let key = ["name", "property", "itemprop"].iter().find_map(|key| attribute(tag, key));
        let Some(key) = key.map(|key| key.trim().to_ascii_lowercase()) else { return };
        let value = one_line(&content, META_BYTES_MAX);
        match key.as_str() {
            "robots" => self.raw.extract.directives.read(&content),
            _ if key.eq_ignore_ascii_case(&self.name) => self.raw.extract.directives.read(&content),
            "description" | "keywords" | "author" => self.note(&key, value),
            "article:published_time"
            | "og:published_time"
            | "datepublished"
            | "date"
            | "dc.date"
            | "dc.date.issued"
            | "dcterms.created" => self.note("published", value),
            _ if key.starts_with("og:") && key.len() <= 50 => self.note(&key, value),
            _ => {}
        }
    }

    /// Records metadata. If a key occurs twice, the first value is kept.
    fn note(&mut self, key: &str, value: Option<String>) {
        let metadata = &mut self.raw.extract.metadata;
        if let Some(value) = value
            && metadata.len() < META_ENTRIES_MAX
            && !metadata.contains_key(key)
        {
            metadata.insert(key.to_owned(), value.into());
        }
    }
}

fn attribute(tag: &Tag, name: &str) -> Option<String> {
    tag.attrs.iter().find(|a| &*a.name.local == name).map(|a| a.value.to_string())
}

fn rel_has(tag: &Tag, wanted: &str) -> bool {
    attribute(tag, "rel").is_some_and(|rel| {
        rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case(wanted))
    })
}

/// True for HTML elements without readable text, such as scripts.
#[rustfmt::skip]
fn is_hidden(name: &str) -> bool {
    matches!(
        name,
        "script" | "style" | "noscript" | "template" | "svg" | "iframe" | "noembed" |
        "noframes" | "object" | "canvas" | "select" | "button" | "textarea"
    )
}

/// True for HTML elements that often repeat on every page of a site, such as menus.
fn is_aside(name: &str) -> bool {
    matches!(name, "nav" | "footer" | "aside")
}

#[rustfmt::skip]
fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address" | "article" | "aside" | "blockquote" | "body" | "br" | "dd" | "details"
        | "div" | "dl" | "dt" | "fieldset" | "figcaption" | "figure" | "footer" | "form" |
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "header" | "hr" | "li" | "main" | "nav"
        | "ol" | "option" | "p" | "pre" | "section" | "summary" | "table" | "tbody" |
        "thead" | "tr" | "ul"
    )
}
