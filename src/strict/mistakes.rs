//! What people get wrong who write YAML, by its name: the parser says only what it makes of it.

use super::read::{Unreadable, UnreadableKind};

/// Names two mistakes of whoever writes YAML, of which the parser says only what it makes of them.
pub(super) fn named(text: &str, unreadable: Unreadable) -> Unreadable {
    if unreadable.kind != UnreadableKind::Syntax {
        return unreadable;
    }
    if let Some(at) = text.find(|character| !is_printable(character)) {
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let number = u32::from(text[at..].chars().next().unwrap_or_default());
        let message =
            format!("the character U+{number:04X} may not stand in YAML; in double quotes it is \\u{number:04X}");
        let (line, column) = (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1);
        return Unreadable { message, line, column, ..unreadable };
    }
    let unreadable = at_its_beginning(unreadable);
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t', '-']).len();
    let is_tabbed = |line: &str| line[..indent(line)].contains('\t');
    // The parser may notice it at the line behind.
    let lines = text.lines().enumerate().skip(unreadable.line.saturating_sub(2)).take(2);
    let Some((tabbed, line)) = lines.filter(|(_, line)| is_tabbed(line)).last() else { return unreadable };
    let message = format!("a tab indents this line, which YAML does by spaces alone: {}", unreadable.message);
    let column = line.find('\t').unwrap_or_default() + 1;
    Unreadable { message, line: tabbed + 1, column, ..unreadable }
}

/// What is never closed is noticed at the end of the text, and mended where it begins.
fn at_its_beginning(unreadable: Unreadable) -> Unreadable {
    let begun = || {
        let (said, begun) = unreadable.message.rsplit_once(" at line ")?;
        let (line, column) = begun.split_once(" column ")?;
        let is_open = said.contains(" end of stream at line ");
        is_open.then_some((format!("{said} that begins here"), line.parse().ok()?, column.parse().ok()?))
    };
    match begun() {
        Some((message, line, column)) => Unreadable { message, line, column, ..unreadable },
        None => unreadable,
    }
}

/// What may stand in YAML 1.1 as it is, and what serde_yaml takes beside: `c-printable` of its specification.
fn is_printable(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' => true,
        other => other >= '\u{a0}' && !matches!(other, '\u{feff}' | '\u{fffe}' | '\u{ffff}'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict::read::{Limits, yaml};

    #[test]
    fn common_mistakes_are_named_where_they_stand() {
        let check = |text: &str, place: (usize, usize), said: &str| {
            let error = yaml(text.as_bytes(), &Limits::of_bytes(1000)).unwrap_err();
            assert_eq!((error.kind, error.line, error.column), (UnreadableKind::Syntax, place.0, place.1), "{text:?}");
            assert!(error.message.contains(said), "{text:?}: {}", error.message);
        };
        check("name: nul\ntitle: T\nd: Do\0es\n", (3, 6), "the character U+0000 may not stand in YAML");
        check("a: \u{1b}[1m", (1, 4), "U+001B");
        check("a:\n\t- b: c\n", (2, 1), "a tab indents this line");
        check("a:\n- b: c\n\td: e\n", (3, 1), "a tab indents this line");
        check("a: [1\nb: 2\n", (2, 2), "");
        check(
            "a: 1\nb: \"x\nc: 2\n",
            (2, 4),
            "end of stream at line 4 column 1, while scanning a quoted scalar that begins here",
        );
        check("a: 'x", (1, 4), "unexpected end of stream");
    }
}
