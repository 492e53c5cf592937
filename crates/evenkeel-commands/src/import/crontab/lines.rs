//! Parses the lines of a crontab.

use std::borrow::Cow;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Line<'a> {
    Blank,
    Comment(&'a str),
    /// A variable that applies to the crontab entries below it.
    Variable {
        name: String,
        value: String,
    },
    Entry {
        /// A cron expression whose fields are separated by single spaces, or [`AT_BOOT`].
        expression: Cow<'a, str>,
        user: Option<&'a str>,
        command: &'a str,
    },
    Unreadable(String),
}

/// Expression of a crontab entry that runs when the machine starts.
pub(super) const AT_BOOT: &str = "@reboot";

pub(super) fn read(line: &str, system: bool) -> Line<'_> {
    let line = line.trim();
    match line.chars().next() {
        None => Line::Blank,
        Some('#') => Line::Comment(line.trim_start_matches('#').trim()),
        Some('@') => nickname(line, system),
        Some(c) if c.is_ascii_digit() || matches!(c, '*' | '-' | '~' | '?') => fields(line, system),
        Some(_) => variable(line),
    }
}

fn nickname(line: &str, system: bool) -> Line<'_> {
    let (name, rest) = word(line).unwrap_or((line, ""));
    if name.eq_ignore_ascii_case(AT_BOOT) {
        return entry(AT_BOOT.into(), rest, system);
    }
    // Some cron implementations accept `@every 30m`, in which the second word is the interval.
    if name.eq_ignore_ascii_case("@every")
        && let Some((length, rest)) = word(rest)
    {
        return entry(format!("{name} {length}").into(), rest, system);
    }
    entry(name.into(), rest, system)
}

fn fields(line: &str, system: bool) -> Line<'_> {
    // Some cron implementations treat a `-` at the beginning of a crontab entry as "do not log".
    let mut rest = line.strip_prefix('-').filter(|rest| !rest.is_empty()).unwrap_or(line);
    let mut fields = Vec::with_capacity(5);
    for _ in 0..5 {
        let Some((field, after)) = word(rest) else {
            let why = "write 5 fields and then the command: minute, hour, day of the month, month, \
                       day of the week";
            return Line::Unreadable(why.into());
        };
        fields.push(field);
        rest = after;
    }
    entry(fields.join(" ").into(), rest, system)
}

fn entry<'a>(expression: Cow<'a, str>, rest: &'a str, system: bool) -> Line<'a> {
    if !system {
        return Line::Entry { expression, user: None, command: rest };
    }
    match word(rest) {
        // BSD cron allows a group or a login class after the user name of an entry.
        Some((user, command)) => match user.split([':', '/']).next().unwrap_or_default() {
            user if is_user_name(user) => Line::Entry { expression, user: Some(user), command },
            _ => Line::Unreadable(format!(
                "{user:?} is in the place of the user in a system crontab; if this is the crontab of \
                 one user, use --system=false"
            )),
        },
        None => Line::Unreadable(
            "an entry of a system crontab must name a user before the command".into(),
        ),
    }
}

pub(super) fn is_user_name(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && text.chars().all(legal)
}

fn variable(line: &str) -> Line<'_> {
    let unreadable = || {
        let why = "the line is neither an entry, nor a comment, nor a variable like NAME=value";
        Line::Unreadable(why.into())
    };
    let Some((name, value)) = line.split_once('=') else { return unreadable() };
    let (name, value) = (unquoted(name.trim()), unquoted(value.trim()));
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(legal) {
        return unreadable();
    }
    Line::Variable { name: name.into(), value: value.into() }
}

fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| (&text[..end], text[end..].trim_start()))
}

fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    text
}

/// True if a comment can be used as the name of a job. Commented-out entries, headings and
/// decorative lines are not used as job names.
pub(super) fn is_a_name(comment: &str) -> bool {
    const LONGEST: usize = 80;
    let words: Vec<&str> = comment.split_whitespace().collect();
    let is_headings = words.starts_with(&["m", "h"]) || words.contains(&"dow");
    let is_entry =
        matches!(read(comment, false), Line::Entry { command, .. } if !command.is_empty());
    let has_letters = comment.chars().any(char::is_alphabetic);
    let is_variable = matches!(read(comment, false), Line::Variable { .. });
    has_letters
        && !is_headings
        && !is_entry
        && !is_variable
        && comment.chars().count() <= LONGEST
        && !comment.chars().any(char::is_control)
}
